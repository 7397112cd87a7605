package jsonl

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Recorder writes every frame of a conversation to a file, a line of JSON each: "t" when it was read or about to be
// written, "dir" in (from the program) or out, and "frame", or "raw" where it is not JSON, or "skipped" with the size of
// one that was too large. It is safe for concurrent use, and a nil one records nothing.
//
// It records secrets too: who sends or receives any must not use it.
type Recorder struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewRecorder makes a Recorder. Closing w is the caller's.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{w: w} }

// Err is why recording stopped: the first error of the writer. The conversation itself is not disturbed by it.
func (r *Recorder) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

type recorded struct {
	Time    time.Time       `json:"t"`
	Dir     string          `json:"dir"`
	Frame   json.RawMessage `json:"frame,omitempty"`
	Raw     string          `json:"raw,omitempty"`
	Skipped int64           `json:"skipped,omitempty"`
}

func (r *Recorder) frame(dir string, b []byte) {
	if r == nil {
		return
	}
	line := recorded{Dir: dir}
	if json.Valid(b) {
		line.Frame = b
	} else {
		line.Raw = string(b)
	}
	r.write(line)
}

func (r *Recorder) skipped(size int64) {
	if r != nil {
		r.write(recorded{Dir: "in", Skipped: size})
	}
}

func (r *Recorder) write(line recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	line.Time = time.Now().UTC()
	b, err := encode(line)
	if err == nil {
		_, err = r.w.Write(b)
	}
	r.err = err
}
