//go:build runtimes

package claude_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
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
				if !strings.Contains(m.Content, "<task-notification>") { // the end of a sub-agent asks for nothing to be done again
					n = 0
				}
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
			r := live(t, serve(t, modeltest.Config{Script: calls(modeltest.CallOf("Read", args{"file_path": "a.txt"}), c.call)}), claude.Config{})
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

// TestStoppingATurnEndsWhatRunsInTheBackground begins a command in one turn and interrupts the next.
func TestStoppingATurnEndsWhatRunsInTheBackground(t *testing.T) {
	t.Parallel()
	behind := modeltest.CallOf("Bash", args{"command": "touch begun; tail -f /dev/null", "description": "watch", "run_in_background": true})
	first, second := calls(behind), calls(bash("touch second; tail -f /dev/null"))
	r := live(t, serve(t, modeltest.Config{Script: func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		if prompted(r.Messages) == "first" {
			return first(ctx, r)
		}
		return second(ctx, r)
	}}), claude.Config{})
	o := begin(t, r, folder(t), asking, yes)
	o.turn("first", runner.Completed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		scenario{stop: "second"}.awaitStop(o)
	}()
	res, err := o.Turn(ctx, runner.Input{Turn: "turn", Text: "second"})
	if err != nil || res.Outcome != runner.Interrupted {
		t.Fatalf("result %+v, error %v", res, err)
	}
	o.await("the end of the command in the background", func(e runner.Event) bool {
		return e.Kind == runner.BackgroundEvent && e.Background.Ended && e.Background.Title == "watch"
	})
	if o.gone() == nil || len(o.asked()) != 2 {
		t.Errorf("%d questions\n%s", len(o.asked()), o.story())
	}
	select {
	case <-o.gone():
		t.Error("the process had to be ended")
	default:
	}
}
