package desk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// terminal is what a hook can see of the terminal that it was started from. An agent does not tell its hook that a person
// has answered there: it may let it run until its time is over. So the hook looks at what the agent writes about itself.
type terminal struct {
	session string // the agent's id
	tool    string
	input   json.RawMessage
	// status is the file in which the agent says what it waits for, transcript that of the conversation; empty if there is
	// none.
	status, transcript string

	waited int   // how often in a row the agent was seen not to wait
	seen   bool  // it was seen waiting
	start  int64 // how long the transcript was when the hook began: a result before that is another call's
	size   int64 // how long it was when it was looked at last
}

// terminal finds out what there is to look at. Nothing is where the agent ends its hook by itself.
func (c *Client) terminal(raw []byte) *terminal {
	t := &terminal{}
	if c.c.Agent != Claude {
		return t
	}
	var in struct {
		Session    string          `json:"session_id"`
		Transcript string          `json:"transcript_path"`
		Tool       string          `json:"tool_name"`
		Input      json.RawMessage `json:"tool_input"`
	}
	if json.Unmarshal(raw, &in) != nil {
		return t
	}
	t.session, t.transcript, t.tool, t.input = in.Session, in.Transcript, in.Tool, in.Input
	folder := c.c.Getenv("CLAUDE_CONFIG_DIR")
	if home := c.c.Getenv("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, ".claude")
	}
	if pid, err := strconv.Atoi(c.c.Getenv("CLAUDE_PID")); err == nil && folder != "" {
		t.status = filepath.Join(folder, "sessions", strconv.Itoa(pid)+".json")
	}
	if info, err := os.Stat(t.transcript); err == nil {
		t.start, t.size = info.Size(), info.Size()
	}
	t.moved() // it may wait already
	return t
}

// own is what an agent says of its session.
type own struct {
	Session string `json:"sessionId"` //nolint:tagliatelle // the spelling is the program's own
	Name    string `json:"name"`
	Status  string `json:"status"`
}

func (t *terminal) own() (own, bool) {
	if t.status == "" {
		return own{}, false
	}
	b, err := os.ReadFile(t.status)
	var o own
	if err != nil || json.Unmarshal(b, &o) != nil || o.Session != t.session {
		return own{}, false
	}
	return o, true
}

// name is that of the session, as its person knows it; empty if it has none.
func (t *terminal) name() string {
	o, _ := t.own()
	return o.Name
}

// watch calls answered once the terminal was, and returns then or when ctx ends.
func (t *terminal) watch(ctx context.Context, every time.Duration, answered func()) {
	if t.status == "" && t.transcript == "" {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if t.moved() || t.concluded() {
			answered()
			return
		}
	}
}

// moved reports whether the agent does not wait any more. It has to be seen twice: between two questions of one agent it
// does not wait for a moment.
func (t *terminal) moved() bool {
	o, ok := t.own()
	switch {
	case !ok:
		return false
	case o.Status == "waiting":
		t.seen, t.waited = true, 0
		return false
	case t.seen:
		t.waited++
	}
	return t.waited >= 2
}

// maxTail is how much of the end of a conversation is looked at.
const maxTail = 1 << 20

// concluded reports whether the conversation has a result for the call. It tells a call by what is called: a hook is not
// told its id.
func (t *terminal) concluded() bool {
	if t.transcript == "" {
		return false
	}
	info, err := os.Stat(t.transcript)
	if err != nil || !info.Mode().IsRegular() || info.Size() == t.size {
		return false
	}
	t.size = info.Size()
	f, err := os.Open(t.transcript)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	at := max(0, info.Size()-maxTail)
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTail))
	if err != nil {
		return false
	}
	call, done := "", false
	for line := range bytes.Lines(b) {
		at += int64(len(line))
		var entry struct {
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		var parts []struct {
			Type  string          `json:"type"`
			ID    string          `json:"id"`
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
			Of    string          `json:"tool_use_id"`
		}
		if json.Unmarshal(line, &entry) != nil || json.Unmarshal(entry.Message.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			switch {
			case p.Type == "tool_use" && p.Name == t.tool && sameJSON(p.Input, t.input):
				call, done = p.ID, false // the latest one is what is asked about
			case p.Type == "tool_result" && call != "" && p.Of == call && at > t.start:
				done = true
			}
		}
	}
	return done
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err == nil && err2 == nil && bytes.Equal(p, q)
}
