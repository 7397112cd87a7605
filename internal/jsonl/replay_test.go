package jsonl_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"drawbridge/internal/jsonl"
)

// step is one frame of a recording, in one form for the three that they have.
type step struct {
	ours  bool
	frame json.RawMessage
}

func recording(t *testing.T, file string) (steps []step) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return steps
		}
		var l struct {
			Dir        string
			Frame, Msg json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		s := step{frame: append(l.Frame, l.Msg...)}
		switch l.Dir {
		case ">", "c2a", "in":
			s.ours = true
		case "<", "a2c", "out":
		default:
			continue // remarks
		}
		if s.frame[0] == '{' {
			steps = append(steps, s)
		}
	}
}

// TestRecordedConversations plays what real programs said, lets a peer say what we said, and compares each frame.
func TestRecordedConversations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file    string
		dialect jsonl.Dialect
	}{
		{"codex-approvals", jsonl.RPC{}},
		{"claude-approval", jsonl.Control{}},
		{"opencode-edit", jsonl.RPC{Version: "2.0"}},
		{"gemini-cancel", jsonl.RPC{Version: "2.0"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			replay(t, c.dialect, recording(t, "testdata/"+c.file+".jsonl"))
		})
	}
}

func replay(t *testing.T, dialect jsonl.Dialect, steps []step) {
	answers := map[jsonl.ID]chan jsonl.Message{}
	for _, s := range steps {
		if m, err := dialect.Decode(s.frame); err == nil && !s.ours && m.Kind == jsonl.Request {
			answers[m.ID] = make(chan jsonl.Message, 1)
		}
	}
	var notified []string
	c := converse(t, func(p *jsonl.PeerConfig, _ *jsonl.LinesConfig) {
		p.Dialect = dialect
		p.Request = func(ctx context.Context, m jsonl.Message) (any, error) {
			select {
			case a := <-answers[m.ID]:
				if a.Error != nil {
					return nil, a.Error
				}
				return a.Result, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		p.Notification = func(_ context.Context, m jsonl.Message) { notified = append(notified, m.Method+string(m.Params)) }
	})
	ids := map[jsonl.ID]jsonl.ID{} // of the recording's requests, to those of this one
	calls := map[jsonl.ID]<-chan error{}
	count, requests, want := int64(0), 0, []string{}
	for _, s := range steps {
		m, err := dialect.Decode(s.frame)
		if err != nil {
			t.Fatalf("%.200s: %v", s.frame, err)
		}
		switch {
		case s.ours && m.Kind == jsonl.Request:
			count++
			ids[m.ID] = dialect.ID(count)
			var params any
			if m.Params != nil {
				params = m.Params
			}
			calls[m.ID] = c.async(t.Context(), m.Method, params, nil)
			m.ID = ids[m.ID]
			c.expect(t, dialect, m)
		case s.ours && m.Kind == jsonl.Answer:
			requests++
			answers[m.ID] <- m
			c.expect(t, dialect, m)
		case s.ours:
			done := make(chan error, 1)
			go func() { done <- c.Send(s.frame) }()
			if got := c.program.next(); !same(got, string(s.frame)) {
				t.Errorf("sent %s, want %s", got, s.frame)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		case m.Kind == jsonl.Answer:
			recorded := m.ID
			m.ID = ids[recorded]
			c.program.say(encoded(t, dialect, m))
			if err := <-calls[recorded]; (err != nil) != (m.Error != nil) {
				t.Errorf("call ended with %v, want %v", err, m.Error)
			}
		default:
			if m.Kind == jsonl.Notification {
				want = append(want, m.Method+string(m.Params))
			}
			c.program.say(string(s.frame))
		}
	}
	c.program.exit()
	wantError(t, <-c.ended, io.EOF)
	if fmt.Sprint(notified) != fmt.Sprint(want) || len(want) < 3 || requests == 0 || count == 0 {
		t.Errorf("%d calls, %d requests answered, %d notifications handled, want %d, in order", count, requests, len(notified), len(want))
	}
}

func encoded(t *testing.T, dialect jsonl.Dialect, m jsonl.Message) string {
	t.Helper()
	frame, err := dialect.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (c *conversation) expect(t *testing.T, dialect jsonl.Dialect, m jsonl.Message) {
	t.Helper()
	if got, want := c.program.next(), encoded(t, dialect, m); !same(got, want) {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func FuzzDialects(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"x","params":{}}`, `{"jsonrpc":"2.0","id":"a","result":null}`, `{"id":1,"error":{"code":1,"message":"m"}}`,
		`{"method":"$/cancel_request","params":{"requestId":1}}`, `{"type":"system","subtype":"init"}`, `[]`, `null`, `{"id":1}`,
		`{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","input":{}}}`,
		`{"type":"control_response","response":{"subtype":"error","request_id":"1","error":"e","error_code":"c"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":7}}`, `{"type":"control_cancel_request","request_id":"1"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, d := range []jsonl.Dialect{jsonl.RPC{}, jsonl.RPC{Version: "2.0"}, jsonl.Control{}} {
			m, err := d.Decode(frame)
			if err == nil && !json.Valid(frame) {
				t.Fatalf("%T: %q was understood", d, frame)
			}
			if err != nil || m.Kind == jsonl.Notification {
				continue
			}
			if !json.Valid([]byte(m.ID)) {
				t.Fatalf("%T: id %q of %s", d, m.ID, frame)
			}
			// What was understood and is said again is understood in the same way.
			again, err := d.Encode(m)
			if err != nil {
				continue // params that are no object, say
			}
			b, err := json.Marshal(again)
			if err != nil {
				t.Fatalf("%T: %s: %v", d, frame, err)
			}
			n, err := d.Decode(b)
			if err != nil || n.Kind != m.Kind || !same(string(n.ID), string(m.ID)) || n.Method != m.Method || (n.Error == nil) != (m.Error == nil) {
				t.Fatalf("%T: %s became %s: %+v, %+v, %v", d, frame, b, m, n, err)
			}
		}
	})
}
