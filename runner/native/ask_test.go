package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// asking opens a session whose model asks once and then says what it was told.
func asking(t *testing.T, c native.Config, questions any, answer func(runner.Question) runner.Answer) *session {
	t.Helper()
	c.BaseURL = serve(t, modeltest.Config{Piece: 1000, Script: func(_ context.Context, r modeltest.Request) modeltest.Reply {
		if done := results(r); len(done) > 0 {
			return modeltest.Reply{Text: "Told: " + done[0]}
		}
		return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("ask_user", args{"questions": questions})}}
	}}).URL()
	return open(t, runtime(t, c), runner.Options{Folder: t.TempDir()}, answer)
}

// many are n options with different labels.
func many(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("Option %d", i+1))
	}
	return list
}

func TestQuestionsAreAskedAndAnswered(t *testing.T) {
	t.Parallel()
	s := asking(t, native.Config{}, []args{
		{"id": "db", "question": " Which database?\n", "options": []args{{"label": "Redis", "description": "many hosts"}, {"label": "bbolt"}}, "free": false},
		{"question": "Which checks?", "options": []any{"vet", args{"label": "test"}}, "multiple": true},
		{"question": "Anything else?", "multiple": true, "free": false},
	}, func(q runner.Question) runner.Answer {
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{
			"db": {"bbolt"}, q.Queries[1].ID: {"vet", "test"}, q.Queries[2].ID: {"No,\nthank you"},
		}}
	})
	s.turn(t, "ask", runner.Completed)
	if len(s.questions) != 1 {
		t.Fatalf("the gate was asked %d times", len(s.questions))
	}
	q := s.questions[0]
	want := []runner.Query{
		{ID: "db", Text: "Which database?", Options: []runner.Option{{Label: "Redis", Description: "many hosts"}, {Label: "bbolt"}}},
		{ID: "q2", Text: "Which checks?", Options: []runner.Option{{Label: "vet"}, {Label: "test"}}, Multiple: true, Free: true},
		{ID: "q3", Text: "Anything else?", Free: true},
	}
	if q.Kind != runner.KindQuestion || !q.Has(policy.Question) || len(q.Categories) != 1 || q.Title != "Which database?" || q.Turn != "t" || q.Item == "" ||
		fmt.Sprint(q.Queries) != fmt.Sprint(want) {
		t.Errorf("asked as %+v, want %+v", q, want)
	}
	const told = "The user answered:\n- db (Which database?): bbolt\n- q2 (Which checks?): vet; test\n- q3 (Anything else?): No,\nthank you"
	if said := s.said(t); said != "Told: "+told {
		t.Errorf("the model says %q", said)
	}
	if items := s.completed(runner.ItemQuestion); len(items) != 1 || items[0].ID != q.Item || items[0].Status != runner.ItemDone || items[0].Text != told {
		t.Errorf("the items are %+v", items)
	}
}

func TestQuestionsWithoutAnAnswerLetTheTurnGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer runner.Answer
		says   string
	}{
		"silence":   {runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}, "Told: Nobody answered in time. Go on"},
		"no":        {runner.Answer{Decision: runner.Denied, Source: runner.SourceUser, Reason: "busy"}, "Told: Not answered: the user did not want to answer. Reason: busy"},
		"shutdown":  {runner.Answer{Decision: runner.Denied, Source: runner.SourceShutdown, Reason: "the host stops"}, "Told: Not answered: the question could not be put to anybody. Reason: the host stops"},
		"withdrawn": {runner.Answer{Decision: runner.Withdrawn}, "Told: Not answered: the question was withdrawn."},
		"nothing":   {runner.Answer{}, "Told: Not answered: the question could not be put"},
		"a bare yes": {
			runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{"other": {"x"}}},
			"Told: The user answered:\n- q1 (Why?): (no answer)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := asking(t, native.Config{}, []args{{"question": "Why?"}}, func(runner.Question) runner.Answer { return c.answer })
			s.turn(t, "ask", runner.Completed)
			if said := s.said(t); !strings.HasPrefix(said, c.says) {
				t.Errorf("the model says %q, want %q", said, c.says)
			}
			items := s.completed(runner.ItemQuestion)
			if len(items) != 1 || (items[0].Status == runner.ItemDone) != c.answer.Allows() {
				t.Errorf("the items are %+v", items)
			}
		})
	}
	t.Run("the gate fails", func(t *testing.T) {
		t.Parallel()
		srv := serve(t, modeltest.Config{Script: calling(modeltest.CallOf("ask_user", args{"questions": []args{{"question": "Why?"}}}))})
		s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{
			Folder: t.TempDir(), Gate: runner.GateFunc(func(context.Context, runner.Question) (runner.Answer, error) {
				return runner.Answer{Decision: runner.Allowed, Answers: map[string][]string{"q1": {"because"}}}, errors.New("no gate")
			}),
		}, nil)
		s.turn(t, "ask", runner.Completed)
		if said := s.said(t); strings.Contains(said, "because") || !strings.Contains(said, "could not be put to anybody") {
			t.Errorf("the model says %q", said)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s := asking(t, native.Config{}, []args{{"question": "Why?"}}, func(runner.Question) runner.Answer {
			cancel()
			return runner.Answer{Decision: runner.Allowed, Answers: map[string][]string{"q1": {"too late"}}}
		})
		res, err := s.Turn(ctx, runner.Input{Turn: "t", Text: "ask"})
		items := s.completed(runner.ItemQuestion)
		if err != nil || res.Outcome != runner.Interrupted || len(items) != 1 || items[0].Status != runner.ItemRefused {
			t.Errorf("the turn ended as %+v, %v, with %+v", res, err, items)
		}
	})
}

func TestOddQuestions(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("ä", 300)
	for name, c := range map[string]struct {
		questions any
		wrong     string // what the model is told; empty: it is asked
		ids       string
		options   int
	}{
		"40 options":              {[]args{{"question": "Which?", "options": many(40)}}, "", "q1", 40},
		"none":                    {[]args{{"question": "Which?", "options": []string{}}}, "", "q1", 0},
		"null":                    {[]args{{"question": "Which?", "options": nil}}, "", "q1", 0},
		"label of 300":            {[]args{{"question": "Which?", "options": []string{label, "b"}}}, "", "q1", 2},
		"same ids":                {[]args{{"id": "a", "question": "A?"}, {"id": "a", "question": "B?"}, {"question": "C?"}}, "", "a q2 q3", 0},
		"our ids given":           {[]args{{"question": "A?"}, {"id": "q1", "question": "B?"}}, "", "q1x q1", 0},
		"hostile ids":             {[]args{{"id": "a\nb", "question": "A?"}, {"id": strings.Repeat("x", 65), "question": "B?"}}, "", "q1 q2", 0},
		"ten questions":           {strings.Split(strings.Repeat("?", 10), ""), "the arguments do not fit", "", 0},
		"51 options":              {[]args{{"question": "Which?", "options": many(51)}}, "question 1: there are 51 options", "", 0},
		"label of 301":            {[]args{{"question": "Which?", "options": []string{label + "b"}}}, "question 1: the label of option 1 has 301 characters", "", 0},
		"no label":                {[]args{{"question": "Which?", "options": []args{{"description": "a"}}}}, "question 1: option 1 has no label", "", 0},
		"same labels":             {[]args{{"question": "Which?", "options": []string{"Yes", "No", "yes"}}}, `question 1: options 3 and another one have the same label "yes"`, "", 0},
		"long description":        {[]args{{"question": "Which?", "options": []args{{"label": "a", "description": strings.Repeat("x", 501)}}}}, "the description of option 1", "", 0},
		"empty question":          {[]args{{"question": "A?"}, {"question": " \n"}}, "question 2 is empty", "", 0},
		"long question":           {[]args{{"question": strings.Repeat("x", 2001)}}, "question 1 has 2001 characters", "", 0},
		"no question":             {[]args{}, "there is no question", "", 0},
		"not even a list":         {nil, "there is no question", "", 0},
		"eleven questions":        {append(make([]args, 10), args{"question": "?"}), "these are 11 questions", "", 0},
		"an option that is a sum": {[]args{{"question": "Which?", "options": []int{1}}}, "the arguments do not fit", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := asking(t, native.Config{}, c.questions, nil)
			s.turn(t, "ask", runner.Completed)
			if c.wrong != "" {
				if said := s.said(t); !strings.HasPrefix(said, "Told: Error: ") || !strings.Contains(said, c.wrong) || len(s.questions) > 0 {
					t.Errorf("asked %d times; the model says %q, want %q", len(s.questions), said, c.wrong)
				}
				return
			}
			if len(s.questions) != 1 {
				t.Fatalf("asked %d times; the model says %q", len(s.questions), s.said(t))
			}
			var ids []string
			for _, q := range s.questions[0].Queries {
				ids = append(ids, q.ID)
			}
			if got := strings.Join(ids, " "); got != c.ids || len(s.questions[0].Queries[0].Options) != c.options {
				t.Errorf("the ids are %s, want %s; %d options, want %d", got, c.ids, len(s.questions[0].Queries[0].Options), c.options)
			}
		})
	}
}

// TestASecretAnswerIsTheModelsAlone: no event shows it.
func TestASecretAnswerIsTheModelsAlone(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	data := t.TempDir()
	s := asking(t, native.Config{Data: data}, []args{{"question": "The PIN?", "secret": true}, {"question": "The name?"}}, func(runner.Question) runner.Answer {
		return runner.Answer{Decision: runner.Allowed, Source: runner.SourceUser, Answers: map[string][]string{"q1": {secret}, "q2": {"Ada"}}}
	})
	s.turn(t, "ask", runner.Completed)
	if !s.questions[0].Queries[0].Secret || s.questions[0].Queries[1].Secret {
		t.Errorf("asked as %+v", s.questions[0])
	}
	if said := s.said(t); !strings.Contains(said, secret) {
		t.Errorf("the model was not told: %q", said)
	}
	for _, e := range s.events {
		if e.Item != nil && e.Item.Kind == runner.ItemMessage {
			continue // what the model says of it, it says
		}
		b, err := json.Marshal(e)
		if err != nil || strings.Contains(string(b), secret) {
			t.Errorf("%s shows the secret (%v): %s", e.Kind, err, b)
		}
	}
	if i := s.completed(runner.ItemQuestion); !strings.Contains(i[0].Text, "q1 (The PIN?): (a secret)") || !strings.Contains(i[0].Text, "Ada") {
		t.Errorf("the item is %+v", i)
	}
	info, err := os.Stat(filepath.Join(data, "sessions", s.ResumeToken()+".jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the conversation's file: %v, %v", info, err)
	}
}

func TestTheChecklistIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps any
		want  []runner.Step
		says  string
	}{
		"all states": {
			[]args{{"text": "Read\n it", "state": "done"}, {"text": "b", "state": "completed"}, {"text": "Write it", "state": "in_progress"}, {"text": "d", "state": "pending"}, {"text": "e"}},
			[]runner.Step{{Text: "Read it", Done: true}, {Text: "b", Done: true}, {Text: "Write it", Now: true}, {Text: "d"}, {Text: "e"}},
			"The checklist is shown.",
		},
		"cleared":       {[]args{}, nil, "The checklist is shown."},
		"missing":       {nil, nil, `Error: the argument "steps" is missing`},
		"no text":       {[]args{{"text": " ", "state": "done"}}, nil, "Error: step 1 has no text"},
		"unknown state": {[]args{{"text": "a", "state": "maybe"}}, nil, "Error: step 1 is in no known state"},
		"too long":      {[]args{{"text": strings.Repeat("x", 301)}}, nil, "Error: step 1 has 301 characters"},
		"too many":      {make([]args, 51), nil, "Error: these are 51 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, modeltest.Config{Script: calling(modeltest.CallOf("update_plan", args{"steps": c.steps}))})
			s := open(t, runtime(t, native.Config{BaseURL: srv.URL()}), runner.Options{Folder: t.TempDir()}, nil)
			s.turn(t, "go", runner.Completed)
			if said := s.said(t); !strings.HasPrefix(said, "Last result: "+c.says) {
				t.Errorf("the model says %q, want %q", said, c.says)
			}
			var shown []runner.Event
			for _, e := range s.events {
				if e.Kind == runner.PlanUpdated {
					shown = append(shown, e)
				}
			}
			ok := !strings.HasPrefix(c.says, "Error")
			if (len(shown) == 1) != ok || ok && (shown[0].Turn != "t" || fmt.Sprint(shown[0].Plan) != fmt.Sprint(c.want)) {
				t.Errorf("shown: %+v, want %+v", shown, c.want)
			}
			if len(s.questions) > 0 || ok && len(s.completed(runner.ItemToolCall)) > 0 {
				t.Errorf("it was asked as %+v, shown as %+v", s.questions, s.completed(runner.ItemToolCall))
			}
		})
	}
}
