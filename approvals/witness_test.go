package approvals

import (
	"testing"
	"time"
)

// TestWitness tells what a process that looks every two seconds may say of the store, with six seconds of silence allowed.
func TestWitness(t *testing.T) {
	t.Parallel()
	type look struct {
		at, now time.Duration // by this process's clock and by the store's
		gap     bool
	}
	steady := func(from, to time.Duration, ahead time.Duration) (l []look) {
		for ; from <= to; from += 2 * time.Second {
			l = append(l, look{at: from, now: from + ahead})
		}
		return l
	}
	s := time.Second
	for name, test := range map[string]struct {
		looks []look
		want  bool
	}{
		"never seen":              {nil, false},
		"seen once":               {steady(0, 0, 0), false},
		"seen for four seconds":   {steady(0, 4*s, 0), false},
		"seen for six seconds":    {steady(0, 6*s, 0), true},
		"an error meanwhile":      {append(append(steady(0, 4*s, 0), look{gap: true}), steady(5*s, 9*s, 0)...), false},
		"long enough after it":    {append(append(steady(0, 4*s, 0), look{gap: true}), steady(5*s, 11*s, 0)...), true},
		"an error at the end":     {append(steady(0, 60*s, 0), look{gap: true}), false},
		"this process stood":      {append(steady(0, 20*s, 0), look{at: 26 * s, now: 26 * s}), false},
		"the machine slept":       {append(steady(0, 20*s, 0), look{at: 22 * s, now: 3600 * s}), false},
		"the store's clock fell":  {append(steady(0, 20*s, 100*s), steady(22*s, 26*s, 0)...), false},
		"the store's clock stood": {append(steady(0, 2*s, 0), look{at: 4 * s, now: 2 * s}, look{at: 6 * s, now: 2 * s}, look{at: 8 * s, now: 2 * s}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{deadAfter: 6 * time.Second}
			here, there := time.Now(), time.Unix(1e9, 0)
			for _, l := range test.looks {
				if l.gap {
					w.gap()
				} else {
					w.saw(here.Add(l.at), there.Add(l.now))
				}
			}
			if got := w.trusted(); got != test.want {
				t.Errorf("trusted is %v, want %v", got, test.want)
			}
		})
	}
}
