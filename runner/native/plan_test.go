package native_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// tree is all that there is below a folder: kinds, permissions, times, contents and where links lead.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d", strings.TrimPrefix(path, dir), info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			b.WriteString(" -> " + to)
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", text)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// person answers as the table says, under a policy that the test sets, and allows whatever may be asked.
type person struct {
	mu     sync.Mutex
	policy runner.Policy
	denied int
}

func (p *person) now() runner.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policy
}

func (p *person) Ask(_ context.Context, q runner.Question) (runner.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if policy.Decide(p.policy.Mode, p.policy.Interaction, q.Categories...) == policy.Deny {
		p.denied++
		return runner.Answer{Decision: runner.Denied, Source: runner.SourceRule}, nil
	}
	return runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser}, nil
}

// deeds are calls each of which changes something below a folder that holds the workspace, ws, and what lies outside.
func deeds(dir string) map[string]modeltest.Call {
	outside := filepath.Join(dir, "outside")
	shell := func(line string) modeltest.Call { return modeltest.CallOf("shell", args{"command": line}) }
	list := map[string]modeltest.Call{
		"write a new file":              modeltest.CallOf("write_file", args{"path": "sub/new.txt", "content": "new\n"}),
		"write an old file":             modeltest.CallOf("write_file", args{"path": "old.txt", "content": "other\n"}),
		"edit a file":                   modeltest.CallOf("edit", args{"path": "old.txt", "old": "words", "new": "others"}),
		"write a protected file":        modeltest.CallOf("write_file", args{"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"}),
		"delete a file":                 shell("rm old.txt"),
		"delete a folder":               shell("rm -rf full"),
		"delete outside":                shell("rm " + outside + "/old.txt"),
		"run a command":                 shell("echo more >> old.txt"),
		"run a command that seems read": shell("cat old.txt | tee copy.txt"),
		"run a command outside":         shell("touch " + outside + "/new.txt"),
		"run a command through a link":  shell("echo x > out/new.txt"),
		"change permissions":            shell("chmod 600 old.txt"),
		"run in the background":         shell("{ echo x > behind.txt; } & wait"),
		"detach in the background":      shell("nohup sh -c 'echo x > behind.txt' > /dev/null 2>&1 & wait"),
		"commit":                        shell("git init -q . && git add -A"),
		"write to the home of commands": shell(`echo x > "$HOME/x"`),
	}
	if _, err := exec.LookPath("setsid"); err == nil {
		list["run in a session of its own"] = shell("setsid sh -c 'echo x > " + outside + "/behind.txt' & wait")
	}
	return list
}

// scene makes the folder that deeds are done to.
func scene(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range []string{"ws/old.txt", "ws/full/a.txt", "ws/.git/config", "outside/old.txt", "data/home/.profile"} {
		write(t, dir, p, "words\n")
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "ws", "out")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// trees are the parts of a scene that a deed can change. The conversation, which grows with each message, is not.
func trees(t *testing.T, dir string) string {
	t.Helper()
	return tree(t, filepath.Join(dir, "ws")) + tree(t, filepath.Join(dir, "outside")) + tree(t, filepath.Join(dir, "data", "home"))
}

// do lets the model make the calls in one session on a scene, and returns when nothing of it runs any more.
func do(t *testing.T, dir string, p *person, calls ...modeltest.Call) *modeltest.Server {
	t.Helper()
	srv := serve(t, modeltest.Config{Script: calling(calls...)})
	r := runtime(t, native.Config{BaseURL: srv.URL(), Data: filepath.Join(dir, "data")})
	s := open(t, r, runner.Options{Folder: filepath.Join(dir, "ws"), Gate: p, Policy: p.now}, nil)
	s.turn(t, "go", runner.Completed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return srv
}

// TestPlanChangesNothing compares, byte for byte, the workspace and what lies outside it, after a model in plan has called
// everything that changes something, in each mode, though none of it was offered.
func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	for _, m := range policy.Modes() {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			dir := scene(t)
			var calls []modeltest.Call
			for _, c := range deeds(dir) {
				calls = append(calls, c)
			}
			before := trees(t, dir)
			p := &person{policy: runner.Policy{Mode: m, Interaction: policy.Plan}}
			srv := do(t, dir, p, calls...)
			if after := trees(t, dir); after != before {
				t.Errorf("something was changed: before\n%s\nafter\n%s", before, after)
			}
			if p.denied != len(calls) {
				t.Errorf("the gate refused %d of %d calls", p.denied, len(calls))
			}
			requests := srv.Requests()
			for i, told := range results(requests[len(requests)-1]) {
				if !strings.HasPrefix(told, "Not done. The chat's mode does not allow this.") {
					t.Errorf("of %v the model was told %q", calls[i], told)
				}
			}
			for _, tool := range requests[0].Tools {
				if tool == "edit" || tool == "write_file" || tool == "shell" {
					t.Errorf("%s was offered", tool)
				}
			}
		})
	}
}

// TestEachDeedChangesSomething holds TestPlanChangesNothing to deeds that would be seen.
func TestEachDeedChangesSomething(t *testing.T) {
	t.Parallel()
	for name := range deeds("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := scene(t)
			before := trees(t, dir)
			do(t, dir, &person{policy: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}}, deeds(dir)[name])
			if trees(t, dir) == before {
				t.Error("nothing was changed")
			}
		})
	}
}

// TestPlanHoldsFromTheNextCallOn: the chat begins to plan in the middle of an answer with two calls.
func TestPlanHoldsFromTheNextCallOn(t *testing.T) {
	t.Parallel()
	dir := scene(t)
	p := &person{policy: runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}}
	srv := serve(t, modeltest.Config{Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
		if r.N > 1 {
			return modeltest.Reply{Text: strings.Join(r.Tools, " ")}
		}
		return modeltest.Reply{Calls: []modeltest.Call{
			modeltest.CallOf("shell", args{"command": "touch first"}), modeltest.CallOf("shell", args{"command": "touch second"}),
		}}
	}})
	gate := runner.GateFunc(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		a, err := p.Ask(ctx, q)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.policy.Interaction = policy.Plan
		return a, err
	})
	s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{Folder: filepath.Join(dir, "ws"), Gate: gate, Policy: p.now}, nil)
	s.turn(t, "go", runner.Completed)
	if left := tree(t, filepath.Join(dir, "ws")); !strings.Contains(left, "first") || strings.Contains(left, "second") {
		t.Errorf("the workspace holds\n%s", left)
	}
	if said := s.said(t); strings.Contains(said, "shell") || !strings.Contains(said, "submit_plan") {
		t.Errorf("afterwards the model is offered %s", said)
	}
}
