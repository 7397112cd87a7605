package process

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// Capture is an io.Writer that keeps the head and the tail of what is written and counts the rest, so that a program's
// output costs the same however much there is. It is safe for concurrent use. Its methods never fail.
type Capture struct {
	mu    sync.Mutex
	limit int // bytes of each of the two halves
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	total int64
}

// NewCapture makes a Capture that keeps at most limit bytes, half of them from the end.
func NewCapture(limit int) *Capture { return &Capture{limit: max(1, limit/2)} }

// Write takes all of b.
func (c *Capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	c.total += int64(n)
	if room := c.limit - len(c.head); room > 0 {
		k := min(room, len(b))
		c.head = append(c.head, b[:k]...)
		b = b[k:]
	}
	if len(b) > c.limit {
		b = b[len(b)-c.limit:]
	}
	if room := c.limit - len(c.tail); room > 0 {
		k := min(room, len(b))
		c.tail = append(c.tail, b[:k]...)
		b = b[k:]
	}
	for len(b) > 0 {
		k := copy(c.tail[c.next:], b)
		c.next = (c.next + k) % c.limit
		b = b[k:]
	}
	return n, nil
}

// Total is how many bytes were written.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// String is all that was written, or its head and tail with a line between them that says how much was left out.
// Characters are not cut in two.
func (c *Capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := append(append([]byte(nil), c.tail[c.next:]...), c.tail[:c.next]...)
	left := c.total - int64(len(c.head)) - int64(len(tail))
	if left == 0 {
		return string(c.head) + string(tail)
	}
	head := c.head
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		if b := head[len(head)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(head[len(head)-i:]) {
				left += int64(i)
				head = head[:len(head)-i]
			}
			break
		}
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
		left++
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, left, tail)
}
