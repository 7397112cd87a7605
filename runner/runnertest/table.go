package runnertest

import (
	"context"
	"fmt"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// deed is an action that the table speaks of, and what of it can be seen afterwards.
type deed struct {
	name       string
	categories []policy.Category // by the design, not by what the runtime says
	line       func(file string) string
	seen       func(e *exam, l *log, file string) bool
}

func deeds() []deed {
	exists := func(e *exam, _ *log, file string) bool { return e.exists(file) }
	return []deed{
		{
			"read",
			[]policy.Category{policy.Read},
			func(string) string { return "read plain.txt" },
			func(_ *exam, l *log, _ string) bool { return strings.Contains(l.said(), "plain words") },
		},
		{
			"read a secret",
			[]policy.Category{policy.Secret},
			func(string) string { return "read .env" },
			func(_ *exam, l *log, _ string) bool { return strings.Contains(l.said(), "hidden words") },
		},
		{
			"write",
			[]policy.Category{policy.Write},
			func(file string) string { return "write " + file + " text" }, exists,
		},
		{
			"write what is protected",
			[]policy.Category{policy.Protected},
			func(file string) string { return "write .github/workflows/" + file + ".yml text" },
			func(e *exam, _ *log, file string) bool { return e.exists(".github/workflows/" + file + ".yml") },
		},
		{
			"run",
			[]policy.Category{policy.Terminal},
			func(file string) string { return "run touch " + file }, exists,
		},
		{
			"publish",
			[]policy.Category{policy.Terminal, policy.Publish},
			func(file string) string { return "run touch " + file + "; git push nowhere" }, exists,
		},
	}
}

// table tries each deed in each mode and interaction, with a person who says yes and with one who says no. The mode
// changes under the open session, which therefore has to ask for it afresh.
func (e *exam) table() {
	e.put("plain.txt", "plain words\n")
	e.put(".env", "hidden words\n")
	c, err := e.restart().Probe(e.Context())
	if err != nil {
		e.Fatalf("probe: %v", err)
	}
	yes := false
	l := e.open(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		if yes {
			return allow(ctx, q)
		}
		return refuse(ctx, q)
	})
	n := 0
	for _, i := range []policy.Interaction{policy.Default, policy.Plan} {
		if i == policy.Plan && !c.Plan {
			continue // probe demands the reason
		}
		for _, m := range policy.Modes() {
			for _, d := range deeds() {
				for _, yes = range []bool{true, false} {
					n++
					l.set(runner.Policy{Mode: c.Modes[m], Interaction: i})
					l.try(d, yes, fmt.Sprintf("file%d", n))
				}
			}
		}
	}
}

// try does one deed and compares what was asked and done with the table.
func (l *log) try(d deed, yes bool, file string) {
	l.exam.Helper()
	l.turn(d.line(file))
	_, questions := l.seen()

	verdict := policy.Decide(l.policy.Mode, l.policy.Interaction, d.categories...)
	person := verdict == policy.Ask || verdict == policy.Review
	done := verdict == policy.Allow || person && yes
	if got := d.seen(l.exam, l, file); got != done || (len(questions) > 0) != person {
		l.exam.Errorf("%s, %s, %s (the table says %s, the person %v): %d questions, done %v",
			l.policy.Mode, l.policy.Interaction, d.name, verdict, yes, len(questions), got)
	}
}
