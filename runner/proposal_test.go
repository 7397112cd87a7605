package runner_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
)

func TestParseProposal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 8<<10)
	for name, c := range map[string]struct {
		in   string
		want runner.Proposal
		says string // a part of the error
	}{
		"now":        {`{"title":" Tidy up ","steps":["a","b "]}`, runner.Proposal{Title: "Tidy up", Steps: []string{"a", "b"}}, ""},
		"cron":       {`{"title":"t","steps":["a"],"when":"cron 0 9 * * 1-5"}`, runner.Proposal{Title: "t", Steps: []string{"a"}, When: "cron", Time: "0 9 * * 1-5"}, ""},
		"every":      {`{"title":"t","steps":["a"],"when":" every 2h until 22:00 ","mode":"auto"}`, runner.Proposal{Title: "t", Steps: []string{"a"}, When: "every", Time: "2h until 22:00", Mode: policy.Auto}, ""},
		"longest":    {`{"title":"t","steps":["` + long + `"]}`, runner.Proposal{Title: "t", Steps: []string{long}}, ""},
		"no JSON":    {`{`, runner.Proposal{}, "do not fit"},
		"no object":  {`["t"]`, runner.Proposal{}, "do not fit"},
		"null":       {`null`, runner.Proposal{}, "no title"},
		"two":        {`{"title":"t","steps":["a"]} {}`, runner.Proposal{}, "behind"},
		"unknown":    {`{"title":"t","steps":["a"],"auto_approve":true}`, runner.Proposal{}, "auto_approve"},
		"no title":   {`{"title":"","steps":["a"]}`, runner.Proposal{}, "no title"},
		"two lines":  {`{"title":"a\nb","steps":["a"]}`, runner.Proposal{}, "longer than a line"},
		"no steps":   {`{"title":"t","steps":[]}`, runner.Proposal{}, "no steps"},
		"empty step": {`{"title":"t","steps":["a"," "]}`, runner.Proposal{}, "step 2 is empty"},
		"too long":   {`{"title":"t","steps":["` + long + `x"]}`, runner.Proposal{}, "step 1 has 8193 bytes"},
		"too many":   {`{"title":"t","steps":[` + strings.Repeat(`"a",`, 20) + `"a"]}`, runner.Proposal{}, "21 steps"},
		"a mode":     {`{"title":"t","steps":["a"],"mode":"yolo"}`, runner.Proposal{}, "no such mode"},
		"a word":     {`{"title":"t","steps":["a"],"when":"tomorrow"}`, runner.Proposal{}, "begins with cron"},
		"no time":    {`{"title":"t","steps":["a"],"when":"at"}`, runner.Proposal{}, "no time behind"},
		"no UTF-8":   {"{\"title\":\"\xff\",\"steps\":[\"a\"]}", runner.Proposal{}, "UTF-8"},
	} {
		got, err := runner.ParseProposal(json.RawMessage(c.in))
		if c.says != "" {
			if !errors.Is(err, runner.ErrProposal) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Title != c.want.Title || !slices.Equal(got.Steps, c.want.Steps) || got.When != c.want.When || got.Time != c.want.Time || got.Mode != c.want.Mode {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestProposalSchema: the schema is JSON, and what it names is what is read.
func TestProposalSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]struct {
			Type string   `json:"type"`
			Enum []string `json:"enum"`
		} `json:"properties"`
		Additional *bool `json:"additionalProperties"` //nolint:tagliatelle // JSON Schema's
	}
	if err := json.Unmarshal(runner.ProposalSchema(), &schema); err != nil || schema.Additional == nil || *schema.Additional {
		t.Fatalf("%+v, %v", schema, err)
	}
	all := map[string]any{}
	for name, one := range schema.Properties {
		all[name] = "cron 0 9 * * *"
		switch {
		case one.Type == "array":
			all[name] = []string{"a"}
		case len(one.Enum) > 0:
			all[name] = one.Enum[0]
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := runner.ParseProposal(b); err != nil || p.When == "" || p.Mode == "" {
		t.Errorf("%+v, %v", p, err)
	}
	var modes []string
	for _, m := range policy.Modes() {
		modes = append(modes, string(m))
	}
	if !slices.Equal(schema.Properties["mode"].Enum, modes) {
		t.Errorf("the schema's modes are %v", schema.Properties["mode"].Enum)
	}
}

// TestAQuestionWithoutAProposal: a question as an older host wrote it reads as it did, and one with a proposal keeps it.
func TestAQuestionWithoutAProposal(t *testing.T) {
	t.Parallel()
	var old runner.Question
	if err := json.Unmarshal([]byte(`{"kind":"command","command":"ls","categories":["terminal"]}`), &old); err != nil || old.Proposal != nil {
		t.Fatalf("%+v, %v", old, err)
	}
	if b, err := json.Marshal(old); err != nil || strings.Contains(string(b), "proposal") {
		t.Errorf("%s, %v", b, err)
	}
	q := runner.Proposal{Title: "t", Steps: []string{"a"}, When: runner.ProposedAt, Time: "18:30"}.Question()
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var back runner.Question
	if err := json.Unmarshal(b, &back); err != nil || back.Proposal == nil || back.Proposal.Time != "18:30" || !policy.HumanOnly(back.Categories...) {
		t.Errorf("%s: %+v, %v", b, back, err)
	}
}

// FuzzProposal: whatever is read can be read again from what is kept of it, is within the bounds, and human-only.
func FuzzProposal(f *testing.F) {
	f.Add([]byte(`{"title":"t","steps":["a"],"when":"in 20m","mode":"auto"}`))
	f.Add([]byte(`{"title":"t","steps":["` + "\u202e" + `"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := runner.ParseProposal(in)
		if err != nil {
			if !errors.Is(err, runner.ErrProposal) {
				t.Fatal(err)
			}
			return
		}
		b, err := json.Marshal(p.Question())
		if err != nil {
			t.Fatal(err)
		}
		var q runner.Question
		if err := json.Unmarshal(b, &q); err != nil || q.Proposal.Check() != nil || !slices.Equal(q.Proposal.Steps, p.Steps) || q.Proposal.Title != p.Title || q.Proposal.Time != p.Time {
			t.Fatalf("%+v is kept as %+v: %v", p, q.Proposal, err)
		}
		if !policy.HumanOnly(q.Categories...) {
			t.Fatal("it is not human-only")
		}
	})
}
