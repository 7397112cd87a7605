package bridge

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// earlier is what was stored before there were lanes, tasks, models and kept calls. The file was written by the program of
// that time.
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

// TestEarlierRecordsAreReadAndWrittenTheSame: reading loses nothing of them, and what is written without anything new is
// what was written before.
func TestEarlierRecordsAreReadAndWrittenTheSame(t *testing.T) {
	t.Parallel()
	for name, doc := range earlier(t) {
		kind, _, _ := strings.Cut(name, ":")
		v := map[string]any{
			"chat": &Chat{}, "order": &Order{}, "mirror": &Mirror{}, "turn": &Turn{}, "session": &SessionRecord{}, "hello": &Hello{}, "entry": &Entry{},
		}[kind]
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

// TestEarlierOrderIsHeldToItsChat: what an order of that time does not say loosens nothing.
func TestEarlierOrderIsHeldToItsChat(t *testing.T) {
	t.Parallel()
	docs := earlier(t)
	for name, want := range map[string]runner.Policy{
		"order":        {Mode: policy.AutoAcceptEdits, Interaction: policy.Plan}, // with a limit, and in plan
		"order: plain": {Mode: policy.Auto, Interaction: policy.Default},
	} {
		var o Order
		if err := json.Unmarshal(docs[name], &o); err != nil {
			t.Fatal(err)
		}
		if got := o.policy(Mirror{Mode: policy.Auto, Interaction: policy.Default}); got != want {
			t.Errorf("%s runs under %+v, want %+v", name, got, want)
		}
		if o.held() != o.Chat || o.Prompt.Work != nil || o.Prompt.Kept != "" {
			t.Errorf("%s is read as %+v", name, o)
		}
	}
}

// TestEarlierChatGoesOn with what waits in it, in its mode.
func TestEarlierChatGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", withTurn(planner))
	var c Chat
	if err := json.Unmarshal(earlier(t)["chat"], &c); err != nil {
		t.Fatal(err)
	}
	c.Host, c.Project, c.Folder, c.Runtime, c.Active, c.WaitsFor = "laptop", "demo", h.folder, "script", nil, ""
	h.update(func(tx *store.Txn) error { return store.Put(tx, chatKey("7"), c) })
	h.prompt("7", "u:3", "and then this")
	for _, turn := range []string{"t.u:2", "t.u:3"} {
		h.shown.ended(t, turn)
		if got := said(h.timeline("laptop", "7"), turn); got != string(policy.Auto) {
			t.Errorf("%s ran under %q", turn, got)
		}
	}
}

// The shape of an order as a host of that time reads it.
type earlierOrder struct {
	Turn   string `json:"turn"`
	Chat   string `json:"chat"`
	Folder string `json:"folder"`
	Prompt struct {
		Text  string      `json:"text"`
		Limit policy.Mode `json:"limit"`
		Plan  bool        `json:"plan"`
	} `json:"prompt"`
	Writer bool `json:"writer"`
}

// TestEarlierHostIsNoLooserWithANewerOrder: it knows nothing of lanes and tasks, and holds the work to the lane's own
// record, which is the strictest.
func TestEarlierHostIsNoLooserWithANewerOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stop := h.host("laptop")
	h.mode("7", policy.FullAccess)
	stop()
	var lane Chat
	h.update(func(tx *store.Txn) (err error) {
		if lane, err = h.chats.Lane(tx, Lane{Name: "w", Of: "7", Host: "laptop", Project: "demo", Runtime: "script"}); err != nil {
			return err
		}
		_, err = h.chats.Prompt(tx, lane.ID, Prompt{ID: "k:1", Text: "work", At: time.Now(), Limit: policy.Auto, Work: &Work{Task: "w"}})
		return err
	})
	_, docs, err := h.db.Read(t.Context(), orderKey("laptop", "t.k:1"), mirrorKey("laptop", lane.ID))
	if err != nil {
		t.Fatal(err)
	}
	var o earlierOrder
	var m Mirror
	if err := json.Unmarshal(docs[0].Value, &o); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(docs[1].Value, &m); err != nil {
		t.Fatal(err)
	}
	if o.Chat != lane.ID || o.Folder != h.folder || o.Prompt.Text != "work" || !o.Writer {
		t.Errorf("it is read as %+v", o)
	}
	if got := m.Mode.AtMost(o.Prompt.Limit); got != policy.ApprovalRequired {
		t.Errorf("the work runs under %q there", got)
	}
}
