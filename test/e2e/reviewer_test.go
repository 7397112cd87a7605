package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// judging is a model that works as others do and is the reviewer as well: it allows what is named fine, refuses what is
// named bad, and talks nonsense about the rest.
func judging() modeltest.Script {
	work := modeltest.Follow(hands())
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		rules, facts := r.Messages[0].Content, r.Messages[len(r.Messages)-1].Content
		if !strings.HasPrefix(rules, "You decide, in place of a person,") {
			return work(ctx, r)
		}
		_, rest, _ := strings.Cut(rules, `{"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		var f struct {
			Command string `json:"command"`
			Request string `json:"request"`
		}
		document := strings.TrimSuffix(strings.TrimPrefix(facts, "<facts>"), "</facts>")
		if err := json.Unmarshal([]byte(document), &f); err != nil || !strings.Contains(f.Request, f.Command) {
			return modeltest.Reply{Text: "What is this?"}
		}
		switch {
		case strings.Contains(f.Command, "fine"):
			return modeltest.Reply{Text: fmt.Sprintf(`{"id":%q,"decision":"allow","reason":"It was asked for."}`, id)}
		case strings.Contains(f.Command, "bad"):
			return modeltest.Reply{Text: fmt.Sprintf(`{"id":%q,"decision":"deny","reason":"It looks bad."}`, id)}
		}
		return modeltest.Reply{Text: "allow"}
	}
}

// TestAReviewerDecidesInAuto: in auto what the reviewer allows runs unasked, what it refuses or does not understand is asked,
// and a push is asked without it.
func TestAReviewerDecidesInAuto(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{model: judging()})
	w.env["DRAWBRIDGE_REVIEWER_URL"], w.env["DRAWBRIDGE_REVIEWER_MODEL"], w.env["DRAWBRIDGE_REVIEWER_KEY"] = w.model.URL(), "judge", modelKey
	w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/mode auto"), "the reviewer, the model judge, decides about commands")
	prompt := me.say("run echo fine > fine.txt\nrun echo bad > bad.txt\nrun echo odd > odd.txt\nrun git push origin main")
	card := me.card(prompt, "echo bad")
	w.holds("fine.txt", "fine\n")
	if !strings.Contains(card.Text, "The reviewer refused this: It looks bad.") {
		t.Errorf("the card does not say that the reviewer refused it:\n%s", card.Text)
	}
	me.tap(card.ID, "Allow")
	card = me.card(card.ID, "echo odd")
	w.holds("bad.txt", "bad\n")
	if !strings.Contains(card.Text, "No reviewer's verdict: The reviewer's answer could not be understood.") {
		t.Errorf("the card does not say that there is no verdict:\n%s", card.Text)
	}
	me.tap(card.ID, "Deny")
	card = me.card(card.ID, "git push")
	w.holds("odd.txt", "")
	if strings.Contains(card.Text, "eviewer") {
		t.Errorf("a reviewer was asked about a push:\n%s", card.Text)
	}
	me.tap(card.ID, "Deny")
	me.ends(prompt, "Done in")
	for _, r := range w.model.Requests() {
		if r.Model == "judge" && (len(r.Tools) != 0 || strings.Contains(r.Messages[1].Content, `"command":"git push`)) {
			t.Errorf("the reviewer was asked %+v", r)
		}
	}
}
