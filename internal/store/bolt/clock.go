package bolt

import (
	"sync"
	"time"
)

// clock makes a time that never goes backwards out of one that may. When the wall clock steps back, the store's time
// goes on from where it was at the wall clock's pace, so that deadlines still come; a wall clock that is ahead again
// is followed at once.
type clock struct {
	wall func() time.Time

	mu   sync.Mutex
	last time.Time // what now returned
	seen time.Time // what wall returned then; zero before the first call
}

// now has the precision of microseconds, as Redis has, so that a score made of it compares equal to it.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.wall().Round(0).Truncate(time.Microsecond)
	t := w
	if t.Before(c.last) {
		t = c.last
		if !c.seen.IsZero() && w.After(c.seen) {
			t = t.Add(w.Sub(c.seen))
		}
	}
	c.last, c.seen = t, w
	return t
}
