package bridge

import (
	"errors"
	"testing"
	"time"

	"drawbridge/runner"
)

func TestQuietHours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q        *Quiet
		now, end string
	}{
		"none":                {nil, "2026-12-01T03:00:00Z", ""},
		"at night":            {&Quiet{22 * 60, 8 * 60, "Europe/Berlin"}, "2026-12-01T23:00:00Z", "2026-12-02T07:00:00Z"},
		"before midnight":     {&Quiet{22 * 60, 8 * 60, "Europe/Berlin"}, "2026-12-01T21:30:00Z", "2026-12-02T07:00:00Z"},
		"by day":              {&Quiet{22 * 60, 8 * 60, "Europe/Berlin"}, "2026-12-01T12:00:00Z", ""},
		"at noon":             {&Quiet{12 * 60, 13 * 60, "UTC"}, "2026-12-01T12:30:00Z", "2026-12-01T13:00:00Z"},
		"just over":           {&Quiet{12 * 60, 13 * 60, "UTC"}, "2026-12-01T13:00:00Z", ""},
		"a zone that is none": {&Quiet{12 * 60, 13 * 60, "Nowhere"}, "2026-12-01T12:30:00Z", "2026-12-01T13:00:00Z"},
		"no length":           {&Quiet{60, 60, "UTC"}, "2026-12-01T01:00:00Z", ""},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		end, quiet := c.q.Until(now)
		if quiet != (c.end != "") || quiet && end.UTC().Format(time.RFC3339) != c.end {
			t.Errorf("%s: quiet %v until %s, want %q", name, quiet, end.UTC(), c.end)
		}
	}
}

// TestLackingIsKnownFromAnswers: what a person refused is decided, what nobody decided is lacking.
func TestLackingIsKnownFromAnswers(t *testing.T) {
	t.Parallel()
	no := func(s runner.Source) runner.Answer { return runner.Answer{Decision: runner.Denied, Source: s} }
	for name, c := range map[string]struct {
		answers []runner.Answer
		err     error
		items   []runner.Item
		want    bool
	}{
		"nothing asked":          {},
		"allowed":                {answers: []runner.Answer{{Decision: runner.Allowed, Source: runner.SourceUser}}},
		"a person said no":       {answers: []runner.Answer{no(runner.SourceUser)}},
		"withdrawn":              {answers: []runner.Answer{{Decision: runner.Withdrawn, Source: runner.SourceRuntime}}},
		"nobody answered":        {answers: []runner.Answer{no(runner.SourceTimeout)}, want: true},
		"the table":              {answers: []runner.Answer{no(runner.SourceRule)}, want: true},
		"the reviewer":           {answers: []runner.Answer{no(runner.SourceReviewer)}, want: true},
		"both":                   {answers: []runner.Answer{no(runner.SourceUser), no(runner.SourceTimeout)}, want: true},
		"the gate failed":        {answers: []runner.Answer{{}}, err: errors.New("broken"), want: true},
		"the runtime refused":    {items: []runner.Item{{Kind: runner.ItemCommand, Status: runner.ItemRefused}}, want: true},
		"a command failed":       {items: []runner.Item{{Kind: runner.ItemCommand, Status: runner.ItemFailed, Text: "permission denied"}}},
		"words about permission": {items: []runner.Item{{Kind: runner.ItemMessage, Text: "I was not allowed to do this."}}},
	} {
		var s Summary
		for _, a := range c.answers {
			s.answer(runner.Question{Kind: runner.KindTool, Tool: "x"}, a, c.err)
		}
		for _, it := range c.items {
			s.item(it)
		}
		if s.Lacking() != c.want {
			t.Errorf("%s: %v, with %+v", name, s.Lacking(), s)
		}
	}
	if (*Summary)(nil).Lacking() {
		t.Error("a turn of which nothing is known lacks nothing")
	}
}
