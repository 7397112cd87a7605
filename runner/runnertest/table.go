package runnertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"drawbridge/policy"
	"drawbridge/runner"
)

// Outcome is what becomes of an action.
type Outcome string

// The outcomes, loosest first. They are the verdicts of the table as they are seen from outside.
const (
	Ran      Outcome = "ran"      // without anybody being asked
	Reviewed Outcome = "reviewed" // asked, and a reviewer may answer
	Asked    Outcome = "asked"    // asked, and only a person may answer
	Refused  Outcome = "refused"  // without anybody being asked
)

// looser reports whether o lets more happen than other.
func (o Outcome) looser(other Outcome) bool {
	order := []Outcome{Ran, Reviewed, Asked, Refused}
	return slices.Index(order, o) < slices.Index(order, other)
}

// outcomeOf is the outcome that a verdict comes to.
func outcomeOf(v policy.Verdict) Outcome {
	switch v {
	case policy.Allow:
		return Ran
	case policy.Review:
		return Reviewed
	case policy.Ask:
		return Asked
	case policy.Deny:
	}
	return Refused
}

// server is one on loopback that remembers what it was asked for.
func (e *exam) server() (url string, reached func(path string) bool) {
	var mu sync.Mutex
	var paths []string
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.Fatalf("%v", err)
	}
	s := &http.Server{ReadHeaderTimeout: e.patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.Path)
		http.NotFound(w, r)
	})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	e.Cleanup(func() {
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			e.Errorf("serve: %v", err)
		}
	})
	return "http://" + l.Addr().String(), func(path string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(paths, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
	}
}

// tableParts is in how many sessions at a time the table is tried: in one, an agent spends most of the time on waiting.
const tableParts = 4

// table tries each deed in each mode and interaction. The mode changes under the open session, which therefore has to ask
// for it afresh.
func (e *exam) table() {
	c := e.capability()
	var mu sync.Mutex
	var all []Deed
	lines := map[string]Line{}
	e.split(tableParts, func(n int, part *exam) {
		deeds, seen := part.cells(n)
		mu.Lock()
		defer mu.Unlock()
		all = deeds
		for _, l := range seen {
			lines[l.Deed] = l
		}
	})
	report := Report{V: reportVersion, Version: c.Version, Looser: c.Looser, Stricter: c.Stricter, Reviews: e.reviewStates()}
	for _, name := range slices.Sorted(maps.Keys(unreached(all))) {
		why := c.Why[unreached(all)[name]]
		if why == "" {
			e.Errorf("nothing is tried for the category %s, and Probe gives no reason under %q", name, unreached(all)[name])
		}
		report.Unreached = append(report.Unreached, Unreached{name, why})
	}
	for _, d := range all {
		line, ok := lines[d.Name]
		if !ok {
			e.Fatalf("%q was not tried to its end", d.Name)
		}
		report.Lines = append(report.Lines, line)
	}
	for _, d := range slices.Concat(c.Looser, c.Stricter) {
		if d.What == "" {
			e.Errorf("the difference in %s has no words", d.Category)
		}
	}
	e.stale(report)
	e.golden(report)
}

// cells tries, in one session, every deed of a part of the table. What is seen of each has to be what the table says, or a
// difference that Probe names. It returns the deeds of all parts as well.
func (e *exam) cells(part int) (all []Deed, lines []Line) {
	outside := filepath.Join(folder(e), "outside.txt")
	e.putFile(outside, "outside words\n")
	e.put("plain.txt", "plain words\n")
	e.put(".env", "hidden words\n")
	c := e.capability()
	url, reached := e.server()
	all = e.deedsOf(outside, url, reached)
	t := &trial{exam: e}
	t.log = e.open(t.answer)
	for n := part; n < len(all); n += tableParts {
		d := all[n]
		line := Line{Deed: d.Name, Category: d.Category, Seen: map[policy.Interaction]map[policy.Mode]Seen{}}
		for _, i := range []policy.Interaction{policy.Default, policy.Plan} {
			if i == policy.Plan && !c.Plan {
				continue // probe demands the reason
			}
			line.Seen[i] = map[policy.Mode]Seen{}
			for _, m := range policy.Modes() {
				seen := t.try(d, runner.Policy{Mode: c.Modes[m], Interaction: i})
				line.Seen[i][m] = seen
				e.compare(c, d, m, i, seen.Outcome)
			}
		}
		lines = append(lines, line)
	}
	return all, lines
}

// compare holds what was seen in a cell against the table.
func (e *exam) compare(c runner.Capability, d Deed, m policy.Mode, i policy.Interaction, seen Outcome) {
	e.Helper()
	want := outcomeOf(policy.Decide(m, i, d.categories()...))
	covered := func(list []runner.Difference) bool {
		return slices.ContainsFunc(list, func(x runner.Difference) bool { return x.Covers(m, i, d.Category) })
	}
	switch {
	case seen.looser(want) && !covered(c.Looser):
		e.Errorf("%s, %s, %s: %s, but the table says %s, and no difference is named", m, i, d.Name, seen, want)
	case want.looser(seen) && !covered(c.Stricter) && (c.Modes[m] == m || c.Why[string(m)] == ""):
		e.Errorf("%s, %s, %s: %s, which is stricter than the table's %s, and nothing explains it", m, i, d.Name, seen, want)
	}
}

// stale complains of looser cells that Probe names and that were not seen to be looser.
func (e *exam) stale(r Report) {
	e.Helper()
	for _, d := range r.Looser {
		if d.Part { // no deed of the table's
			continue
		}
		for _, i := range []policy.Interaction{policy.Default, policy.Plan} {
			for _, m := range policy.Modes() {
				if d.Covers(m, i, d.Category) && i == policy.Default && !r.looser(d.Category, m, i) {
					e.Errorf("%s, %s, %s is named as looser than the table, and is not", m, i, d.Category)
				}
			}
		}
		if d.Plan && !slices.ContainsFunc(policy.Modes(), func(m policy.Mode) bool { return r.looser(d.Category, m, policy.Plan) }) {
			e.Errorf("plan, %s is named as looser than the table, and is not", d.Category)
		}
	}
}

// trial is the table being tried in one session.
type trial struct {
	exam *exam
	log  *log
	yes  bool
	n    int
}

// answer is a person who says what is to be tried.
func (t *trial) answer(ctx context.Context, q runner.Question) (runner.Answer, error) {
	if !t.yes {
		return refuse(ctx, q)
	}
	a, err := allow(ctx, q)
	for _, query := range q.Queries {
		if len(query.Options) == 2 {
			a.Answers = map[string][]string{query.ID: {query.Options[1].Label}}
		}
	}
	return a, err
}

// try does one deed, with a person who says yes, and once more with one who says no if a person was asked.
func (t *trial) try(d Deed, p runner.Policy) Seen {
	t.exam.Helper()
	t.yes = true
	questions, verdicts, done := t.do(d, p)
	by := "runtime"
	if len(verdicts) > 0 {
		by = "gate"
	}
	switch {
	case len(questions) == 0 && done:
		return Seen{Ran, by}
	case len(questions) == 0:
		return Seen{Refused, by}
	case !done:
		t.exam.Errorf("%s, %s, %s: it was allowed and not done; asked as %+v; told: %.500s", p.Mode, p.Interaction, d.Name, questions[0].Categories, t.log.told())
	}
	t.yes = false
	if questions, _, done := t.do(d, p); done || len(questions) == 0 {
		t.exam.Errorf("%s, %s, %s: a person was asked %d times and said no; done %v", p.Mode, p.Interaction, d.Name, len(questions), done)
	}
	if slices.Contains(verdicts, policy.Ask) {
		return Seen{Asked, by}
	}
	return Seen{Reviewed, by}
}

func (t *trial) do(d Deed, p runner.Policy) ([]runner.Question, []policy.Verdict, bool) {
	t.exam.Helper()
	t.n++
	file := fmt.Sprintf("file%d", t.n)
	if d.Given {
		t.exam.put(file, "given\n")
	}
	t.log.set(p)
	t.log.turn(d.Line(file))
	done := d.Done
	if done == nil {
		done = func(w Witness) bool { return w.Exists(w.File) }
	}
	t.log.mu.Lock()
	verdicts := slices.Clone(t.log.verdicts)
	t.log.mu.Unlock()
	_, questions := t.log.seen()
	return questions, verdicts, done(Witness{File: file, Told: t.log.told(), Exists: t.exam.exists})
}

// told is all that was said and put out.
func (l *log) told() string {
	events, _ := l.seen()
	var b strings.Builder
	for _, e := range events {
		if e.Kind == runner.ItemCompleted && e.Item != nil {
			b.WriteString(e.Item.Text + "\n" + e.Item.Output + "\n")
		}
	}
	return b.String()
}
