package bot

import (
	"strings"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/policy"
	"drawbridge/runner"
)

// TestTerminalCards shows the cards of what a terminal asks as well: open, and closed in each way.
func TestTerminalCards(t *testing.T) {
	t.Parallel()
	q := shell("go test ./...", policy.Question)
	q.Terminal = "claude · shop-57"
	r := asked(q)
	f := openFace(r, card{})
	var all strings.Builder
	all.WriteString("== open\n" + drawn(f, cardRows(r, card{}, f)))
	at := time.Date(2026, 3, 4, 15, 6, 0, 0, time.UTC)
	by := func(action string, d runner.Decision) *approvals.Decision {
		return &approvals.Decision{V: 1, Decision: d, Action: action, Source: runner.SourceUser, By: 1001, Name: "Ada", At: at}
	}
	for _, c := range []struct {
		name  string
		state approvals.State
		d     *approvals.Decision
	}{
		{"allowed here", approvals.Handed, by("allow", runner.Allowed)},
		{"denied here", approvals.Handed, by("deny", runner.Denied)},
		{"answered in the terminal", approvals.Withdrawn, nil},
		{"answered in both, the terminal first", approvals.Withdrawn, by("allow", runner.Allowed)},
		{"nobody in time", approvals.Expired, nil},
		{"nobody in time, as swept", approvals.Expired, &approvals.Decision{V: 1, Decision: runner.Denied, Source: runner.SourceTimeout, At: at}},
		{"stopped", approvals.Lost, nil},
		{"killed", approvals.Lost, &approvals.Decision{V: 1, Decision: runner.Denied, Source: runner.SourceShutdown, At: at}},
	} {
		r := asked(q)
		r.State = c.state
		if c.state == approvals.Handed {
			r.Decision = c.d
		}
		all.WriteString("== " + c.name + "\n" + marked(closedFace(r, closingOf(r, approvals.Standing(r, c.d))).Message) + "\n")
	}
	golden(t, "terminal", all.String())
}

// desk is the chat that the host asks in.
func (k *talk) desk() string {
	k.t.Helper()
	chat, err := bridge.DeskChat(k.t.Context(), k.db, "box")
	if err != nil {
		k.t.Fatal(err)
	}
	return chat
}

func TestTheDeskIsWhereItsOwnerSays(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	if got := k.desk(); got != "" {
		t.Errorf("the desk is %q before anybody chose one", got)
	}
	k.reads(grace, k.say(grace, grace, "/desk"), textOwnersOnly)
	k.reads(ada, k.say(ada, ada, "/desk there"), textDeskUsage)
	if got := k.desk(); got != "" {
		t.Errorf("the desk is %q", got)
	}
	k.reads(ada, k.say(ada, ada, "/desk"), textDeskHere)
	if got := k.desk(); got != (ChatRef{ID: ada}).Key() {
		t.Errorf("the desk is %q", got)
	}
	k.reads(ada, k.say(ada, ada, "/desk off"), textDeskOff)
	if got := k.desk(); got != "" {
		t.Errorf("the desk is %q after it was ended", got)
	}
}

// TestTheDeskLeavesAGroupThatIsNotEnabledAnyMore: what a terminal asks is not posted where nobody may answer.
func TestTheDeskLeavesAGroupThatIsNotEnabledAnyMore(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	k.reads(group, k.say(group, ada, "/desk here"), textDeskHere)
	if got := k.desk(); got != (ChatRef{ID: group}).Key() {
		t.Errorf("the desk is %q", got)
	}
	k.reads(group, k.say(group, ada, "/disable"), textGroupGone)
	if got := k.desk(); got != "" {
		t.Errorf("the desk is still %q", got)
	}
}

func TestADeskWithoutAHostSaysSo(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{noHost: true})
	k.reads(ada, k.say(ada, ada, "/desk"), textDeskNone)
}
