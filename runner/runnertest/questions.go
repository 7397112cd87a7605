package runnertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

// query is a question as a line of the prompt has it; see modeltest.Asked.
type query struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Options  []string `json:"options,omitempty"`
	Multiple bool     `json:"multiple,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
}

func (e *exam) questionsLine(list ...query) string {
	e.Helper()
	b, err := json.Marshal(list)
	if err != nil {
		e.Fatalf("%v", err)
	}
	return "questions " + string(b)
}

// asking opens a session that asks questions only in plan, as some runtimes can, and answers them in their order.
func (e *exam) asking(answer func(ctx context.Context, q runner.Question) (runner.Answer, error)) *log {
	e.Helper()
	l := e.open(answer)
	i := policy.Default
	if e.capability().Plan {
		i = policy.Plan
	}
	l.set(runner.Policy{Mode: policy.FullAccess, Interaction: i})
	return l
}

// answersTo is a person who answers the queries of a question in their order.
func answersTo(q runner.Question, words ...[]string) runner.Answer {
	a := runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{}}
	for i, w := range words {
		if i < len(q.Queries) {
			a.Answers[q.Queries[i].ID] = w
		}
	}
	return a
}

// answers asks for one option, for words of the person's own, for two things at once and for several options.
func (e *exam) answers() {
	if !e.capability().Questions {
		return // probe demands the reason
	}
	var given [][]string
	l := e.asking(func(_ context.Context, q runner.Question) (runner.Answer, error) { return answersTo(q, given...), nil })
	color := query{ID: "color", Text: "Which color?", Options: []string{"red", "green", "blue"}}
	name := query{ID: "name", Text: "Which name?", Options: []string{"Ada", "Grace"}}
	for what, c := range map[string]struct {
		asked   []query
		given   [][]string
		skipped bool
	}{
		"an option":                {[]query{color}, [][]string{{"green"}}, false},
		"the person's own words":   {[]query{color}, [][]string{{"ultraviolet, \"quoted\", 世界"}}, false},
		"several questions":        {[]query{color, name}, [][]string{{"blue"}, {"Grace"}}, false},
		"one question of two":      {[]query{color, name}, [][]string{{"red"}}, false},
		"several options":          {[]query{{ID: "all", Text: "Which of them?", Options: []string{"one", "two", "three"}, Multiple: true}}, [][]string{{"one", "three"}}, !e.can(e.multiple, runner.WhyMultiple)},
		"options and own words":    {[]query{{ID: "all", Text: "Which of them?", Options: []string{"one", "two", "three"}, Multiple: true}}, [][]string{{"one", "a fourth"}}, !e.multiple},
		"a label in another place": {[]query{color, {ID: "again", Text: "Which color again?", Options: color.Options}}, [][]string{{"red"}, {"blue"}}, false},
	} {
		if c.skipped {
			continue
		}
		given = c.given
		l.set(l.now())
		l.turn("say before it", e.questionsLine(c.asked...), "say after it")
		_, questions := l.seen()
		if len(questions) != 1 || len(questions[0].Queries) != len(c.asked) {
			e.Errorf("%s: asked as %+v", what, questions)
			continue
		}
		for i, q := range questions[0].Queries {
			var labels []string
			for _, o := range q.Options {
				labels = append(labels, o.Label)
			}
			if q.ID == "" || !strings.Contains(q.Text, c.asked[i].Text) || !slices.Equal(labels, c.asked[i].Options) || q.Multiple != c.asked[i].Multiple || !q.Free || q.Secret {
				e.Errorf("%s: %+v was asked as %+v", what, c.asked[i], q)
			}
		}
		said := l.said()
		for _, words := range c.given {
			for _, w := range words {
				// How a result is laid out is the program's own; some write it as JSON.
				if quoted, _ := json.Marshal(w); !strings.Contains(said, w) && !strings.Contains(said, strings.Trim(string(quoted), `"`)) {
					e.Errorf("%s: the agent was not told %q; it said %q", what, w, said)
				}
			}
		}
		if !strings.Contains(said, "after it") {
			e.Errorf("%s: the agent did not go on; it said %q", what, said)
		}
		l.ordered()
	}
}

// unanswered has nobody answer in time, somebody who does not want to, and a gate that fails: each time the agent is told,
// and goes on.
func (e *exam) unanswered() {
	if !e.capability().Questions {
		return // probe demands the reason
	}
	var answer runner.Answer
	var failure error
	l := e.asking(func(context.Context, runner.Question) (runner.Answer, error) { return answer, failure })
	for what, c := range map[string]struct {
		answer runner.Answer
		err    error
		says   string
	}{
		"nobody":      {runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}, nil, "Nobody answered in time"},
		"unwilling":   {runner.Answer{Decision: runner.Denied, Action: runner.ActionDeny, Source: runner.SourceUser, Reason: refusal}, nil, refusal},
		"no gate":     {runner.Answer{}, errNoGate, ""},
		"the zero":    {runner.Answer{}, nil, ""},
		"nothing":     {runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser}, nil, ""},
		"other words": {runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{"no such id": {"left"}}}, nil, ""},
	} {
		answer, failure = c.answer, c.err
		l.set(l.now())
		l.turn("ask Which one?|left|right", "say after it")
		if _, questions := l.seen(); len(questions) != 1 {
			e.Errorf("%s: %d questions", what, len(questions))
		}
		if told := l.said(); !strings.Contains(told, c.says) || !strings.Contains(told, "after it") {
			e.Errorf("%s: the agent was not told, or did not go on; it said %q", what, told)
		}
		l.ordered()
	}
}

// questionWithdrawn interrupts a turn while its question is open. What is answered then is an answer to nothing.
func (e *exam) questionWithdrawn() {
	if !e.capability().Questions {
		return // probe demands the reason
	}
	asked, late := make(chan struct{}, 1), make(chan struct{})
	l := e.asking(func(ctx context.Context, q runner.Question) (runner.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		close(late)
		return answersTo(q, []string{"left"}), nil
	})
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	done := l.begin(ctx, "ask Which one?|left|right", "say unreached")
	await(e, asked, "the question")
	cancel()
	l.ends(done, runner.Interrupted)
	await(e, late, "the late answer")
	if strings.Contains(l.said(), "unreached") {
		e.Errorf("the interrupted turn went on")
	}
	l.ordered()
	l.turn("say still here")
	if said := l.said(); !strings.Contains(said, "still here") || strings.Contains(said, "left") {
		e.Errorf("the session does not go on as it should; it said %q", said)
	}
}

// secretAnswer asks for a secret. It reaches the agent, and stands in no event.
func (e *exam) secretAnswer() {
	if !e.capability().Questions {
		return // probe demands the reason
	}
	if !e.can(e.secrets, runner.WhySecrets) {
		return
	}
	const secret = "hush-4711-never-shown"
	l := e.asking(func(_ context.Context, q runner.Question) (runner.Answer, error) {
		if len(q.Queries) != 1 || !q.Queries[0].Secret {
			e.Errorf("the secret was asked for as %+v", q)
		}
		return answersTo(q, []string{secret}), nil
	})
	l.turn(e.questionsLine(query{ID: "key", Text: "Which key?", Secret: true}))
	events, _ := l.seen()
	b, err := json.Marshal(events)
	if err != nil {
		e.Fatalf("%v", err)
	}
	letters := []rune(secret)
	slices.Reverse(letters)
	if strings.Contains(string(b), secret) {
		e.Errorf("the secret stands in what was told: %s", b)
	}
	if !strings.Contains(l.said(), string(letters)) {
		e.Errorf("the agent was not told the secret; it said %q", l.said())
	}
}
