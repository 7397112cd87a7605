//go:build runtimes && never

package e2e_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
)

var (
	neverSteps = flag.Int("never.steps", 300, "steps of TestRealAgentsNeverPastTheMode")
	neverSeed  = flag.Uint64("never.seed", 0, "which steps TestRealAgentsNeverPastTheMode takes; 0 for others each time")
)

// TestRealAgentsNeverPastTheMode takes 300 random steps with the built program as two gateways and two hosts on a real
// redis-server, whose agents are the native one and the real Codex and Claude Code: changes of mode and plan, schedules,
// tasks, prompts, taps, further runs, and kill -9 of each process. Each thing that an agent does leaves a file of its own.
// A file is there only if a person allowed it, or if the table did under the stricter of the work's mode and the chat's at
// some moment between the agent's wish and the deed.
func TestRealAgentsNeverPastTheMode(t *testing.T) {
	seed := cmp.Or(*neverSeed, rand.Uint64())
	t.Logf("seed %d", seed)
	n := newNever(t, rand.New(rand.NewPCG(seed, 0)))
	began := time.Now()
	for range *neverSteps {
		n.step()
	}
	took := time.Since(began)
	n.settle()
	all := 0
	for _, times := range n.did {
		all += times
	}
	if all != *neverSteps {
		t.Errorf("%d steps were taken", all)
	}
	n.check()
	t.Logf("%d steps in %s: %v", all, took.Round(time.Second), n.did)
}

// never is the world of that test, and what it knows of what may be done.
type never struct {
	*world
	me    seat
	r     *rand.Rand
	alive map[string]*program
	dirs  map[string]string // the folders of the projects, by project@host
	names int
	place string
	did   map[string]int
	plan  bool

	mu    sync.Mutex
	past  []standing             // how the chat stood, oldest first
	bound map[string]policy.Mode // of tasks and prompts, by the name in their text
	acts  map[string]act         // what agents wished to do
	yes   map[string]bool        // what a person allowed
	no    map[string]bool
}

// standing is how the chat stood from a moment on. A change is noted before it is sent and again when it was confirmed:
// between the two, both what was and what will be may be in force.
type standing struct {
	from time.Time
	mode policy.Mode
	plan bool
	also *standing // what may be in force besides
}

// act is something that an agent wished to do.
type act struct {
	of, agent string
	at        time.Time
	does      []policy.Category
}

func newNever(t *testing.T, r *rand.Rand) *never {
	n := &never{
		r: r, alive: map[string]*program{}, dirs: map[string]string{}, did: map[string]int{}, bound: map[string]policy.Mode{},
		acts: map[string]act{}, yes: map[string]bool{}, no: map[string]bool{}, place: "shop@h1",
	}
	n.world = newWorld(t, on{redis: true, model: n.model, env: map[string]string{
		"DRAWBRIDGE_APPROVAL_DEADLINE": "30s", // at this pace 10 seconds
		"DRAWBRIDGE_DEFAULT_RUNTIME":   "native",
	}})
	n.useAll()
	for _, place := range []string{"shop@h1", "web@h1", "shop@h2", "web@h2"} {
		n.dirs[place] = filepath.Join(filepath.Dir(n.project), place)
		if err := os.MkdirAll(n.dirs[place], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []string{"host h1", "host h2", "gateway a", "gateway b"} {
		n.run(who)
	}
	n.me = n.private(ada)
	n.past = []standing{{time.Now(), policy.ApprovalRequired, false, nil}}
	n.says("/project shop@h1", "This chat now works in")
	return n
}

// useAll gives the hosts the native agent and both real ones, at the scripted model.
func (n *never) useAll() {
	n.dir = persistent(n.t)
	n.env["HOME"], n.env["PATH"] = filepath.Join(n.dir, "home"), agents(n.t)+":"+os.Getenv("PATH")
	n.env["DRAWBRIDGE_CONFIG"] = filepath.Join(n.dir, "drawbridge.toml")
	text := fmt.Sprintf("[[runtime]]\nname = \"codex\"\nbase_url = %q\nkey = %q\nlogin = \"\"\nmodel = \"gpt-5.5\"\n"+
		"[[runtime]]\nname = \"claude\"\nbase_url = %q\nkey = %q\nlogin = \"\"\n",
		n.world.model.URL(), modelKey, strings.TrimSuffix(n.world.model.URL(), "/v1"), modelKey)
	if err := os.WriteFile(n.env["DRAWBRIDGE_CONFIG"], []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// run starts a process, or the next one in its place.
func (n *never) run(who string) {
	role, name, _ := strings.Cut(who, " ")
	env := n.environ(role + "-" + name)
	if role == "host" {
		env = append(env, "DRAWBRIDGE_HOST_NAME="+name, fmt.Sprintf("DRAWBRIDGE_PROJECTS=shop=%s,web=%s", n.dirs["shop@"+name], n.dirs["web@"+name]))
	}
	n.alive[who] = start(n.t, who, env, role)
	if role == "host" {
		n.alive[who].logs("host is ready")
	}
}

// wish is what the text of a prompt has an agent do: its name, and one thing after the other.
var wish = regexp.MustCompile(`\bdo ([TPF]\d+)((?: write| run)+)`)

// model is the model of all agents: it carries out the wishes of the last prompt, each under a new name, and proposes a
// follow-up of every other task.
func (n *never) model(_ context.Context, r modeltest.Request) modeltest.Reply {
	var wishes []string
	of, done := "", 0
	for _, m := range r.Messages {
		if m.Role == "tool" {
			done++
		}
		found := wish.FindStringSubmatch(m.Content)
		if m.Role != "user" || found == nil {
			continue
		}
		of, wishes, done = found[1], strings.Fields(found[2]), 0
		if strings.Contains(m.Content, "Answer with one JSON object") {
			wishes = nil
		}
		if strings.Contains(m.Content, "Answer with one JSON object") && strings.HasPrefix(of, "T") {
			return modeltest.Reply{Text: n.follow(of)}
		}
	}
	if done >= len(wishes) || len(r.Tools) == 0 {
		return modeltest.Reply{Text: "That is all of " + of + "."}
	}
	agent := "native"
	switch {
	case strings.HasPrefix(r.Model, "gpt"):
		agent = "codex"
	case r.Model != "scripted":
		agent = "claude"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names++
	name := fmt.Sprintf("m%d_", n.names)
	if wishes[done] == "write" && agent == "native" {
		n.acts[name] = act{of, agent, time.Now(), []policy.Category{policy.Write}}
		return modeltest.Reply{Calls: []modeltest.Call{hands().Write(name, "x\n")}}
	}
	command := "touch " + name
	n.acts[name] = act{of, agent, time.Now(), policy.Classify(command, policy.Workspace{Root: "/w"})}
	if agent == "native" {
		return modeltest.Reply{Calls: []modeltest.Call{hands().Run(command)}}
	}
	return modeltest.Reply{Calls: []modeltest.Call{realHands(agent).Run(command)}}
}

// follow is what a model proposes after a task: something under the mode of the task, whatever it asks for.
func (n *never) follow(of string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names++; n.names%2 == 0 {
		return `{"tasks":[]}`
	}
	name := fmt.Sprintf("F%d", n.names)
	n.bound[name] = n.bound[of]
	return fmt.Sprintf(`{"tasks":[{"title":%q,"steps":["do %s write run"],"mode":"full-access"}]}`, name, name)
}

func (n *never) one(of ...string) string { return of[n.r.IntN(len(of))] }

// says writes to the bot and waits for what it answers.
func (n *never) says(text, answer string) {
	n.t.Helper()
	n.me.hears(n.me.say(text), answer)
}

func (n *never) step() {
	what := n.one("mode", "mode", "plan", "place", "task", "task", "task", "real", "schedule", "schedule", "every", "prompt", "tap", "tap", "tap", "tap", "tap", "again", "kill")
	if n.did["kill"] >= *neverSteps/15 && what == "kill" {
		what = "tap"
	}
	n.did[what]++
	switch what {
	case "mode":
		n.changeMode(policy.Modes()[n.r.IntN(4)])
	case "plan":
		n.changePlan(!n.plan)
	case "place":
		n.place = n.one("shop@h1", "web@h1", "shop@h2", "web@h2")
		n.says("/project "+n.place, "This chat now works in")
	case "task":
		n.task()
	case "real": // a task for one of the real agents, which take longer to begin
		agent := []string{"codex", "claude"}[n.did["real"]%2]
		n.says("/runtime "+agent, "This chat now uses "+agent)
		n.task()
		n.says("/runtime native", "This chat now uses native")
	case "schedule":
		name, flags := n.named("T")
		n.says("/in 1s "+flags+n.wishes(name), "Scheduled: do "+name)
	case "every":
		name, flags := n.named("T")
		n.says("/every 1m "+flags+n.wishes(name), "Scheduled: do "+name)
	case "prompt":
		n.mu.Lock()
		n.names++
		name := fmt.Sprintf("P%d", n.names)
		n.bound[name] = policy.FullAccess
		n.mu.Unlock()
		n.me.say(n.wishes(name))
	case "tap":
		n.tap()
	case "again":
		n.again()
	case "kill":
		who := n.one(slices.Sorted(maps.Keys(n.alive))...)
		n.alive[who].kill()
		n.run(who)
	}
}

func (n *never) task() {
	name, flags := n.named("T")
	n.says(fmt.Sprintf("/task new %s%s\n%s\n%s", flags, name, n.wishes(name), n.wishes(name)), "The task begins as soon as there is a place for it: "+name)
}

// named makes a name for work and the options of its command, and notes what it is held to.
func (n *never) named(kind string) (name, flags string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names++
	name = fmt.Sprintf("%s%d", kind, n.names)
	mode := n.past[len(n.past)-1].mode
	if n.r.IntN(2) == 0 {
		mode = mode.AtMost(policy.Modes()[n.r.IntN(4)])
		flags = "--mode " + string(mode) + " "
	}
	flags += n.one("", "--auto ", "--auto --careful ", "--here ", "--review ", "--follow ")
	n.bound[name] = mode
	return name, flags
}

func (n *never) wishes(name string) string {
	text := "do " + name
	for range 1 + n.r.IntN(3) {
		text += n.one(" write", " run")
	}
	return text
}

// change notes that the chat is about to stand otherwise, and after do that it does.
func (n *never) change(mode policy.Mode, plan bool, do func()) {
	n.mu.Lock()
	was := n.past[len(n.past)-1]
	n.past = append(n.past, standing{time.Now(), mode, plan, &was})
	n.mu.Unlock()
	do()
	n.mu.Lock()
	n.past = append(n.past, standing{time.Now(), mode, plan, nil})
	n.mu.Unlock()
}

func (n *never) changeMode(mode policy.Mode) {
	if n.past[len(n.past)-1].mode == mode {
		n.says("/mode "+string(mode), "in this mode already")
		return
	}
	n.change(mode, n.plan, func() {
		if mode != policy.FullAccess {
			n.says("/mode "+string(mode), "The mode is now "+string(mode))
			return
		}
		asked := n.me.expect(n.me.say("/mode full-access"), "the confirmation", func(m message) bool { return m.has("Use full-access") })
		n.me.tap(asked.ID, "Use full-access")
		n.me.turns(asked.ID, "The mode is now full-access")
	})
}

func (n *never) changePlan(on bool) {
	n.plan = on
	n.change(n.past[len(n.past)-1].mode, on, func() {
		if on {
			n.says("/plan", "This chat only plans now")
			return
		}
		n.says("/plan off", "Planning is over")
	})
}

// made is the name of what a card is about.
var made = regexp.MustCompile(`\bm\d+_`)

// tap answers one of the cards that wait, or ignores it.
func (n *never) tap() {
	var open []message
	for _, m := range n.me.bots(0) {
		if m.has("Deny") && m.has("Allow") && made.MatchString(m.Text) {
			open = append(open, m)
		}
	}
	if len(open) == 0 {
		var seen struct {
			Seq int64 `json:"seq"`
		}
		n.get("/sim/wait?after=0&timeout=0", &seen)
		n.get(fmt.Sprintf("/sim/wait?after=%d&timeout=1", seen.Seq), nil) // until something happens
		return
	}
	card := open[n.r.IntN(len(open))]
	name := made.FindString(card.Text)
	label := n.one("Allow", "Allow", "Deny", "")
	n.mu.Lock()
	switch label {
	case "Allow":
		n.yes[name] = true
	case "Deny":
		n.no[name] = true
	}
	n.mu.Unlock()
	if label == "" {
		return
	}
	n.press(card, label)
}

// press taps a button that was there a moment ago. It may be gone by now, or nobody there to answer at once.
func (n *never) press(m message, label string) {
	n.t.Helper()
	status := n.try(http.MethodPost, "/sim/taps", map[string]any{"chat": n.me.chat, "from": n.me.person, "message_id": m.ID, "button": label, "wait": 1}, nil)
	if status != http.StatusOK && status != http.StatusNotFound {
		n.t.Errorf("a tap on %q has status %d", label, status)
	}
}

// again begins something that has ended anew.
func (n *never) again() {
	all := n.me.bots(0)
	slices.Reverse(all)
	for _, m := range all {
		for _, label := range []string{"Run again and ask me", "Rerun", "Approve", "Leave this step out"} {
			if m.has(label) && n.r.IntN(2) == 0 {
				n.press(m, label)
				return
			}
		}
	}
}

// settle waits until each agent has wished something, and ends the processes.
func (n *never) settle() {
	n.eventually("each agent has wished something", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		seen := map[string]bool{}
		for _, a := range n.acts {
			seen[a.agent] = true
		}
		return len(seen) == 3 || n.did["real"] < 2
	})
	n.changeMode(policy.ApprovalRequired)
	for _, who := range slices.Sorted(maps.Keys(n.alive)) {
		n.alive[who].kill()
	}
	soon(n.t, "nothing of the agents runs", func() bool { return len(under(n.dir))+len(under(filepath.Dir(n.project))) == 0 })
}

// check holds what was done against what may have been.
func (n *never) check() {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[string]int{}
	for _, a := range n.acts {
		seen["wished by "+a.agent]++
	}
	for place, dir := range n.dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			n.t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			info, err := os.Stat(file)
			if err != nil {
				n.t.Fatal(err)
			}
			a, wished := n.acts[name]
			switch {
			case !wished:
				n.t.Errorf("%s in %s was made by nobody", name, place)
				continue
			case n.yes[name]:
				seen["allowed by a person"]++
			case n.allowed(a, info.ModTime()):
				seen["allowed by the table"]++
			default:
				n.t.Errorf("%s (%v) of %s, held to %s, was done by %s at %s, wished at %s; the chat: %s", name, a.does, a.of, n.bound[a.of], a.agent,
					info.ModTime().Format(stamp), a.at.Format(stamp), n.between(a.at, info.ModTime()))
			}
			seen["done by "+a.agent]++
		}
	}
	seen["denied by a person"] = len(n.no)
	n.t.Logf("seen %v", seen)
	for _, what := range []string{"wished by native", "wished by codex", "wished by claude", "done by native", "allowed by a person", "allowed by the table"} {
		if seen[what] == 0 && *neverSteps >= 300 {
			n.t.Errorf("the test shows little: nothing was %s", what)
		}
	}
}

const stamp = "15:04:05.000"

// coarse is how far behind the clock a file's time may be: the kernel gives it by its tick.
const coarse = 20 * time.Millisecond

// stood are the ways in which the chat may have stood between two moments.
func (n *never) stood(from, to time.Time) (out []standing) {
	for i, s := range n.past {
		if s.from.After(to.Add(coarse)) || i+1 < len(n.past) && n.past[i+1].from.Before(from) {
			continue
		}
		if out = append(out, s); s.also != nil {
			out = append(out, *s.also)
		}
	}
	return out
}

func (n *never) allowed(a act, done time.Time) bool {
	return slices.ContainsFunc(n.stood(a.at, done), func(s standing) bool {
		i := policy.Default
		if s.plan {
			i = policy.Plan
		}
		return policy.Decide(s.mode.AtMost(n.bound[a.of]), i, a.does...) == policy.Allow
	})
}

func (n *never) between(from, to time.Time) string {
	var b strings.Builder
	for _, s := range n.stood(from, to) {
		fmt.Fprintf(&b, "%s %s plan=%v; ", s.from.Format(stamp), s.mode, s.plan)
	}
	return b.String()
}
