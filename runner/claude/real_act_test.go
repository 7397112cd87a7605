//go:build runtimes

package claude_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

type args = map[string]any

// calls is a script that makes one call after another, and says the last result.
func calls(list ...modeltest.Call) modeltest.Script {
	return func(_ context.Context, r modeltest.Request) modeltest.Reply {
		n, last := 0, "nothing"
		for _, m := range r.Messages {
			switch m.Role {
			case "user":
				n = 0
			case "tool":
				n, last = n+1, m.Content
			}
		}
		if n >= len(list) {
			return modeltest.Reply{Text: "The last result: " + last}
		}
		return modeltest.Reply{Calls: []modeltest.Call{list[n]}}
	}
}

// open is a session on the real program, with all that it told and asked.
type open struct {
	runner.Session
	t      *testing.T
	folder string
	answer func(q runner.Question) runner.Answer

	mu        sync.Mutex
	policy    runner.Policy
	events    []runner.Event
	questions []runner.Question
}

// yes is a person who allows everything.
func yes(runner.Question) runner.Answer {
	return runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllow, Source: runner.SourceUser}
}

// no is one who allows nothing.
func no(runner.Question) runner.Answer {
	return runner.Answer{Decision: runner.Denied, Action: runner.ActionDeny, Source: runner.SourceUser}
}

// begin opens a session whose gate is the table, and behind it the person.
func begin(t *testing.T, r *claude.Runtime, folder string, p runner.Policy, answer func(runner.Question) runner.Answer) *open {
	t.Helper()
	return resume(t, r, folder, "", p, answer)
}

func resume(t *testing.T, r *claude.Runtime, folder, token string, p runner.Policy, answer func(runner.Question) runner.Answer) *open {
	t.Helper()
	o := &open{t: t, folder: folder, policy: p, answer: answer}
	var err error
	o.Session, err = r.Open(t.Context(), runner.Options{
		Folder: folder, Resume: token, Gate: runner.GateFunc(o.ask), Sink: o.sink, Policy: o.allowed,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *open) sink(e runner.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *open) allowed() runner.Policy {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.policy
}

func (o *open) set(p runner.Policy) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.policy = p
}

func (o *open) ask(_ context.Context, q runner.Question) (runner.Answer, error) {
	p := o.allowed()
	switch policy.Decide(p.Mode, p.Interaction, q.Categories...) {
	case policy.Allow:
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceRule}, nil
	case policy.Deny:
		return runner.Answer{Decision: runner.Denied, Source: runner.SourceRule}, nil
	case policy.Ask, policy.Review:
	}
	o.mu.Lock()
	o.questions = append(o.questions, q)
	o.mu.Unlock()
	return o.answer(q), nil
}

// turn runs a prompt that has to end so, and returns its result.
func (o *open) turn(text string, want runner.Outcome) runner.Result {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	res, err := o.Turn(ctx, runner.Input{Turn: "turn", Text: text})
	if err != nil || res.Outcome != want {
		o.t.Fatalf("the turn ended as %q (%s), error %v; want %q\n%s", res.Outcome, res.Reason, err, want, o.story())
	}
	return res
}

// story is all that was told, for messages.
func (o *open) story() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, e := range o.events {
		if e.Kind == runner.ContentDelta {
			continue
		}
		line, err := json.Marshal(e)
		if err != nil {
			o.t.Error(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func (o *open) asked() []runner.Question {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.questions)
}

// told are the events of a kind.
func (o *open) told(k runner.EventKind) []runner.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.events), func(e runner.Event) bool { return e.Kind != k })
}

func (o *open) put(name, text string) {
	o.t.Helper()
	file := filepath.Join(o.folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		o.t.Fatal(err)
	}
}

func (o *open) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(o.folder, name))
	return err == nil
}

// folder is a workspace without a link in its path.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var asking = runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}

// TestWhatIsShownIsWhatIsWritten tries the corners of Edit and Write in which the program does more than it is told.
func TestWhatIsShownIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	edit := func(old, text string) modeltest.Call {
		return modeltest.CallOf("Edit", args{"file_path": "a.txt", "old_string": old, "new_string": text})
	}
	for name, c := range map[string]struct {
		before string
		call   modeltest.Call
		unseen bool
	}{
		"plain":                 {"one\ntwo\n", edit("one", "1"), false},
		"blanks at the end":     {"one\ntwo\n", edit("one", "1  \n2  "), false},
		"a line taken away":     {"one\ntwo\nthree\n", edit("two", ""), false},
		"part of a line":        {"one two\nthree\n", edit(" two", ""), false},
		"dollars":               {"one\ntwo\n", edit("one", "$& $1 $$ $`"), false},
		"carriage returns":      {"one\r\ntwo\r\n", edit("one\ntwo", "1\n2\n3"), false},
		"mixed line ends":       {"one\r\ntwo\nthree\n", edit("one", "1"), true},
		"quotation marks":       {"“one”\n", edit(`"one"`, `"1"`), true},
		"without a last line":   {"one", edit("one", "1"), false},
		"all of them":           {"a b a\n", modeltest.CallOf("Edit", args{"file_path": "a.txt", "old_string": "a", "new_string": "c", "replace_all": true}), false},
		"tabs":                  {"\tone\n\t\ttwo\n", edit("\tone\n\t\ttwo", "\t1"), false},
		"tags":                  {"<fnr>one</fnr>\n", edit("<fnr>one", "<fnr>1"), false},
		"written over":          {"one\r\ntwo\r\n", modeltest.CallOf("Write", args{"file_path": "a.txt", "content": "new  \nlines\n"}), false},
		"written over, Unicode": {"ä\n", modeltest.CallOf("Write", args{"file_path": "a.txt", "content": "ö\u200b世界\u00a0\n"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := real(t, serve(t, modeltest.Config{Script: calls(modeltest.CallOf("Read", args{"file_path": "a.txt"}), c.call)}), claude.Config{})
			o := begin(t, r, folder(t), asking, yes)
			o.put("a.txt", c.before)
			o.turn("go", runner.Completed)
			q := o.asked()
			if len(q) != 1 {
				t.Fatalf("%d questions\n%s", len(q), o.story())
			}
			if c.unseen {
				if q[0].Kind != runner.KindTool || !strings.Contains(q[0].Title, "cannot be shown") || len(q[0].Arguments) == 0 {
					t.Errorf("asked as %+v", q[0])
				}
				return
			}
			if q[0].Kind != runner.KindFileChange || len(o.told(runner.Notice)) > 0 {
				t.Errorf("asked as %+v\n%s", q[0], o.story())
			}
			after, err := os.ReadFile(filepath.Join(o.folder, "a.txt"))
			if err != nil || string(after) == c.before {
				t.Errorf("nothing was written: %q, %v", after, err)
			}
		})
	}
}
