package approvals_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// earlier is what was stored before records could be kept, silent or of a terminal, and before questions had forms. The
// file was written by the program of that time.
func earlier(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	b, err := os.ReadFile("testdata/earlier.json")
	if err != nil {
		t.Fatal(err)
	}
	var docs map[string]json.RawMessage
	if err := json.Unmarshal(b, &docs); err != nil {
		t.Fatal(err)
	}
	return docs
}

// The shapes that a program of that time reads and writes.
type (
	earlierRecord struct {
		ID          string          `json:"id"`
		Incarnation string          `json:"incarnation"`
		Chat        string          `json:"chat"`
		Question    earlierQuestion `json:"question"`
		Mode        string          `json:"mode"`
		Interaction string          `json:"interaction"`
		Digest      string          `json:"digest"`
		Deadline    time.Time       `json:"deadline"`
		State       string          `json:"state"`
	}
	earlierQuestion struct {
		Kind    string `json:"kind"`
		Command string `json:"command"`
		Queries []struct {
			ID      string `json:"id"`
			Text    string `json:"text"`
			Options []struct {
				Label string `json:"label"`
			} `json:"options"`
		} `json:"queries"`
		Actions []struct {
			ID     string `json:"id"`
			Label  string `json:"label"`
			Allows bool   `json:"allows"`
		} `json:"actions"`
	}
	earlierDecision struct {
		V        int                 `json:"v"`
		ID       string              `json:"id"`
		Decision string              `json:"decision"`
		Action   string              `json:"action,omitempty"`
		Source   string              `json:"source"`
		By       int64               `json:"by,omitempty"`
		Name     string              `json:"name,omitempty"`
		Answers  map[string][]string `json:"answers,omitempty"`
		Digest   string              `json:"digest"`
		At       time.Time           `json:"at"`
	}
)

// decideAsEarlier reads an ask as a gateway of that time and decides it as that one did.
func decideAsEarlier(t *testing.T, db store.DB, id approvals.ID, choose func(r earlierRecord, d *earlierDecision)) {
	t.Helper()
	now, docs, err := db.Read(t.Context(), approvals.AskKey(id))
	if err != nil {
		t.Fatal(err)
	}
	var r earlierRecord
	if err := json.Unmarshal(docs[0].Value, &r); err != nil {
		t.Fatal(err)
	}
	if r.ID != string(id) || r.State != "open" || !r.Deadline.After(now) || r.Mode == "" || r.Interaction == "" {
		t.Fatalf("it is read as %+v", r)
	}
	d := earlierDecision{V: 1, ID: r.ID, Decision: "denied", Source: "user", By: 11, Name: "Ada", Digest: r.Digest, At: now}
	choose(r, &d)
	err = store.Update(t.Context(), db, func(tx *store.Txn) error { return store.Put(tx, approvals.DecisionKey(id), d) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestEarlierRecordsAreReadAndWrittenTheSame: reading loses nothing of them, and what is written without anything new is
// what was written before, so that new fields are optional in both directions.
func TestEarlierRecordsAreReadAndWrittenTheSame(t *testing.T) {
	t.Parallel()
	for name, doc := range earlier(t) {
		kind, _, _ := strings.Cut(name, ":")
		var v any
		switch kind {
		case "record":
			v = &approvals.Record{}
		case "decision":
			v = &approvals.Decision{}
		case "grants":
			v = &approvals.Grants{}
		default:
			t.Fatalf("what is %q?", name)
		}
		if err := json.Unmarshal(doc, v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var was, is any
		if err := json.Unmarshal(doc, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &is); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s is written as\n%s", name, again)
		}
	}
}

// TestEarlierHostsAskIsDecided: an ask without actions has the usual buttons, one with its own keeps them, and a tap
// decides it.
func TestEarlierHostsAskIsDecided(t *testing.T) {
	t.Parallel()
	docs := earlier(t)
	for name, want := range map[string]struct {
		buttons string
		tap     approvals.Tap
	}{
		"record: command without actions": {"allow deny", approvals.Tap{Action: "allow"}},
		"record: plan":                    {"implement implement-mode reject revise", approvals.Tap{Action: "implement"}},
		"record: question":                {"", approvals.Tap{Answers: map[string][]string{"q1": {"this", "that"}, "q2": {"more"}}}},
	} {
		db := openBolt(t)
		g := gateway(t, fast(db))
		var r approvals.Record
		if err := json.Unmarshal(docs[name], &r); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, a := range r.Actions() {
			ids = append(ids, a.ID)
		}
		if got := strings.Join(ids, " "); got != want.buttons {
			t.Errorf("%s has the buttons %q, want %q", name, got, want.buttons)
		}
		err := store.Update(t.Context(), db, func(tx *store.Txn) error {
			now, err := tx.Now()
			if err != nil {
				return err
			}
			r.Created, r.Deadline = now, now.Add(time.Hour)
			if err := store.Put(tx, approvals.BeatKey("box"), approvals.Beat{V: 1, Incarnation: "i1", At: now}); err != nil {
				return err
			}
			return store.Put(tx, approvals.AskKey(r.ID), r)
		})
		if err != nil {
			t.Fatal(err)
		}
		want.tap.ID, want.tap.Chat, want.tap.Person = r.ID, r.Chat, ada
		o := decide(t, g, want.tap)
		if !o.Won || o.Decision.Decision != runner.Allowed || o.Decision.Digest != r.Digest {
			t.Errorf("%s: the tap came to %+v", name, o)
		}
	}
}

// TestEarlierGatewaysDecisionOfANewerAskStands: with an action of the ask's own, and for what that gateway knows nothing of.
func TestEarlierGatewaysDecisionOfANewerAskStands(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c := fast(db)
	h, _ := host(t, c, "i1")
	g := gateway(t, c)
	own := command("make")
	own.Terminal = "claude"
	own.Actions = []runner.Action{{ID: "go-ahead", Label: "Go ahead", Style: "sparkling", Allows: true}, {ID: "leave-it", Label: "Leave it"}}
	most := 3.0
	form := runner.Question{Kind: runner.KindQuestion, Queries: []runner.Query{
		{ID: "n", Text: "How many?", Free: true, Form: &runner.Form{Integer: true, Max: &most}},
	}}
	for _, x := range []struct {
		name   string
		q      runner.Question
		choose func(r earlierRecord, d *earlierDecision)
		want   runner.Answer
	}{
		{"an own action that allows", own, func(r earlierRecord, d *earlierDecision) {
			d.Action, d.Decision = r.Question.Actions[0].ID, "allowed"
		}, runner.Answer{Decision: runner.Allowed, Action: "go-ahead", Source: runner.SourceUser, By: "Ada"}},
		{"an own action that does not", own, func(r earlierRecord, d *earlierDecision) {
			d.Action = r.Question.Actions[1].ID
		}, runner.Answer{Decision: runner.Denied, Action: "leave-it", Source: runner.SourceUser, By: "Ada"}},
		{"an answer to a form", form, func(r earlierRecord, d *earlierDecision) {
			d.Decision, d.Answers = "allowed", map[string][]string{r.Question.Queries[0].ID: {"2"}}
		}, runner.Answer{Decision: runner.Allowed, Answers: map[string][]string{"n": {"2"}}, Source: runner.SourceUser, By: "Ada"}},
		{"the usual one", command("make"), func(r earlierRecord, d *earlierDecision) {
			d.Action, d.Decision = r.Question.Actions[0].ID, "allowed"
		}, runner.Answer{Decision: runner.Allowed, Action: runner.ActionAllow, Source: runner.SourceUser, By: "Ada"}},
		{"a decision that nobody knows", command("make"), func(_ earlierRecord, d *earlierDecision) {
			d.Decision = "perhaps"
		}, runner.Answer{Decision: runner.Denied, Source: runner.SourceUser, By: "Ada"}},
	} {
		run := turn(under(policy.ApprovalRequired, policy.Default))
		run.Wait = func(now time.Time, usual time.Duration) (time.Time, bool) { return now.Add(usual), true } // silent
		a := ask(t.Context(), h, run, x.q)
		r := card(t, g, 1)[0]
		decideAsEarlier(t, db, r.ID, x.choose)
		if got := a.wait(t); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: the answer is %+v, want %+v", x.name, got, x.want)
		}
	}
}

// TestWhatIsNotKnownYetDoesNoHarm: fields and words of a later form neither hide an ask nor let anything through.
func TestWhatIsNotKnownYetDoesNoHarm(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal(earlier(t)["record: command without actions"], &doc); err != nil {
		t.Fatal(err)
	}
	read := func(change func(doc, question map[string]any)) approvals.Record {
		t.Helper()
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var later map[string]any
		if err := json.Unmarshal(b, &later); err != nil {
			t.Fatal(err)
		}
		change(later, later["question"].(map[string]any))
		if b, err = json.Marshal(later); err != nil {
			t.Fatal(err)
		}
		var r approvals.Record
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, x := range map[string]struct {
		change func(doc, question map[string]any)
		want   approvals.Word
	}{
		"unknown fields": {func(d, q map[string]any) {
			d["v"], d["someday"], q["someday"] = 2, map[string]any{"a": 1}, []any{true}
		}, approvals.StandsOpen},
		"an action with unknown fields": {func(_, q map[string]any) {
			q["actions"] = []any{map[string]any{"id": "allow", "label": "Allow", "allows": true, "leads_to": "somewhere"}, map[string]any{"id": "deny", "label": "Deny"}}
		}, approvals.StandsOpen},
		"an unknown state": {func(d, _ map[string]any) { d["state"] = "resting" }, approvals.StandsGone},
	} {
		r := read(x.change)
		if got := approvals.Standing(r, nil).Word; got != x.want {
			t.Errorf("%s: it stands as %q, want %q", name, got, x.want)
		}
		if a := r.Actions(); len(a) != 2 || a[0].ID != runner.ActionAllow || a[1].Allows {
			t.Errorf("%s: the buttons are %+v", name, a)
		}
		if got := approvals.Standing(r, &approvals.Decision{Decision: "perhaps", Source: runner.SourceUser}).Word; got == approvals.StandsAllowed || got == approvals.StandsHandingOver {
			t.Errorf("%s: a decision that is not known lets it through: %q", name, got)
		}
	}
}
