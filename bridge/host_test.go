package bridge

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// withTurn makes the host's runtime do what f does.
func withTurn(f runnertest.TurnFunc) hostOption {
	return func(c *HostConfig) { c.Runtimes = []runner.Runtime{runnertest.New("script", f)} }
}

func TestPanicOfARuntimeFailsItsTurnAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", func(c *HostConfig) {
		c.Logger = silent() // the panic is logged as an error, which it is
		withTurn(func(_ context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
			if in.Text == "bang" {
				panic("a runtime's bug")
			}
			s.Say("fine")
			return runner.Result{Outcome: runner.Completed}, nil
		})(c)
	})
	h.prompt("7", "u:1", "bang")
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Broken || strings.Contains(r.Reason, "bug") {
		t.Errorf("result %+v", r)
	}
	h.prompt("7", "u:2", "go on")
	if r := h.shown.ended(t, "t.u:2"); r.Outcome != runner.Completed {
		t.Errorf("the next turn: %+v", r)
	}
}

func TestFilesReachTheHostWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	got := make(chan runner.Input, 1)
	h.host("laptop", withTurn(func(_ context.Context, _ *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		got <- in
		return runner.Result{Outcome: runner.Completed}, nil
	}))
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000) // more than three pieces
	blob, err := PutBlob(t.Context(), h.db, "laptop", "../../../etc/pass wd", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if blob.Pieces != 4 || blob.Size != len(content) {
		t.Errorf("blob %+v", blob)
	}
	h.update(func(tx *store.Txn) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = h.chats.Prompt(tx, "7", Prompt{ID: "u:1", Text: "look", Files: []Blob{blob}, At: now})
		return err
	})
	in := <-got
	if len(in.Files) != 1 {
		t.Fatalf("files %v", in.Files)
	}
	b, err := os.ReadFile(in.Files[0].Path)
	if err != nil || !bytes.Equal(b, content) {
		t.Errorf("%d bytes arrived of %d, %v", len(b), len(content), err)
	}
	if name := filepath.Base(in.Files[0].Path); name != "1-pass_wd" {
		t.Errorf("stored as %q", name)
	}
	info, err := os.Stat(in.Files[0].Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestTooLargeFileIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	_, err := PutBlob(t.Context(), h.db, "laptop", "big", bytes.NewReader(make([]byte, MaxBlob+1)))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

// TestDisownedHostStops covers a host that was only paused: a gateway has ended its turn, so it must neither go on nor be
// allowed anything.
func TestDisownedHostStops(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	answers := make(chan runner.Answer, 1)
	started, goOn := make(chan struct{}), make(chan struct{})
	var inside atomic.Int32
	h.host("laptop", withTurn(func(ctx context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
		if inside.Add(1) != 1 {
			t.Error("two turns of a chat ran at once")
		}
		defer inside.Add(-1)
		if in.Text == "next" {
			return runner.Result{Outcome: runner.Completed}, nil
		}
		close(started)
		<-goOn
		answers <- s.Edit("a.txt", "x")
		<-ctx.Done()
		<-time.After(10 * beat) // it takes its time to stop
		return runner.Result{}, ctx.Err()
	}))
	h.mode("7", policy.FullAccess) // even then
	h.prompt("7", "u:1", "work")
	<-started
	h.update(func(tx *store.Txn) error {
		_, err := h.chats.end(tx, "laptop", "7", "t.u:1", runner.Result{Outcome: runner.Interrupted})
		return err
	})
	close(goOn)
	if a := <-answers; a.Allows() {
		t.Error("a turn that was taken away was allowed to write")
	}
	if _, err := os.Stat(filepath.Join(h.folder, "a.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it has written")
	}
	h.prompt("7", "u:2", "next")
	if r := h.shown.ended(t, "t.u:2"); r.Outcome != runner.Completed {
		t.Errorf("the turn after it: %+v", r)
	}
}

func TestIdleSessionIsClosedAndResumed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop", func(c *HostConfig) { c.SessionIdle = 2 * beat })
	h.prompt("7", "u:1", "turns")
	h.shown.ended(t, "t.u:1")
	<-time.After(20 * beat)
	h.prompt("7", "u:2", "turns")
	h.shown.ended(t, "t.u:2")
	es := h.shown.until(t, "text", func([]Entry) bool { return true })
	if b := said(es, "t.u:2"); !strings.Contains(b, "2") {
		t.Errorf("the second turn says %q: not resumed", b)
	}
}

func TestMigratedChatKeepsItsModeAndGivesNoGrants(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.mode("-5", policy.AutoAcceptEdits)
	h.update(func(tx *store.Txn) error { return h.chats.SetInteraction(tx, "-5", policy.Plan) })
	h.update(func(tx *store.Txn) error {
		ok, err := h.chats.Migrate(tx, "-5", "-1005")
		if !ok {
			t.Error("nothing was moved")
		}
		return err
	})
	if c := h.chat("-1005"); c.Mode != policy.AutoAcceptEdits || c.Interaction != policy.Plan {
		t.Errorf("the supergroup is in %s, %s", c.Mode, c.Interaction)
	}
	if c := h.chat("-5"); c.Mode != policy.ApprovalRequired {
		t.Errorf("the old key is in %s", c.Mode)
	}
}

func TestChatWithoutAModeHasTheDefaultAndAnUnknownOneTheStrictest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	chats := NewChats(ChatsConfig{DB: h.db, Logger: silent(), Approvals: h.gateway, DefaultMode: policy.Auto})
	const later = `{"v":9,"id":"1","mode":"auto-accept-edits","later":{"field":["x",1]}}`
	for stored, want := range map[string]policy.Mode{
		`{"v":1,"id":"1"}`:                      policy.Auto,
		`{"v":1,"id":"1","mode":"yolo"}`:        policy.ApprovalRequired,
		`{"v":1,"id":"1","mode":"full-access"}`: policy.FullAccess,
		later:                                   policy.AutoAcceptEdits,
	} {
		if err := h.db.Commit(t.Context(), store.Batch{Rev: store.NewRev(), Put: map[string][]byte{chatKey("1"): []byte(stored)}}); err != nil {
			t.Fatal(err)
		}
		c, err := chats.Read(t.Context(), "1")
		if err != nil || c.Mode != want {
			t.Errorf("%s reads as %q (%v), want %q", stored, c.Mode, err, want)
		}
	}
}

func TestWithoutAProjectNothingIsTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t) // no host has said hello
	err := store.Update(t.Context(), h.db, func(tx *store.Txn) error {
		_, err := h.chats.Prompt(tx, "7", Prompt{ID: "u:1", Text: "x", At: time.Now()})
		return err
	})
	if !errors.Is(err, ErrNoProject) {
		t.Errorf("error %v, want ErrNoProject", err)
	}
	err = store.Update(t.Context(), h.db, func(tx *store.Txn) error { _, err := h.chats.SetProject(tx, "7", "nowhere"); return err })
	if !errors.Is(err, ErrNoProject) {
		t.Errorf("a project that nobody has: %v", err)
	}
}

// TestNewSessionEndsItsGrants: what was granted for a session is gone with it.
func TestNewSessionEndsItsGrants(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "write a.txt one\nwrite a.txt two")
	id := h.shown.asked(t, 1)
	if o := h.tap("7", id, runner.ActionAllowSession); !o.Won {
		t.Fatalf("tap: %+v", o)
	}
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Completed {
		t.Fatalf("the second write was not granted: %+v", r)
	}
	h.update(func(tx *store.Txn) error { return h.chats.New(tx, "7") })
	h.prompt("7", "u:2", "write a.txt three")
	h.shown.asked(t, 2)
	h.update(func(tx *store.Txn) error { _, err := h.chats.Stop(tx, "7", time.Time{}, false); return err })
	h.shown.ended(t, "t.u:2")
}

// TestFollowerHandlesEachEntryOnce lets two followers race for one log, each of which loses every other commit.
func TestFollowerHandlesEachEntryOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	counter := projection(func(tx *store.Txn, e Entry) error {
		key := "g:seen:" + e.Event.Text
		n, _, err := store.Get[int](tx, key)
		if err != nil {
			return err
		}
		return store.Put(tx, key, n+1)
	})
	h.stop[0]() // the house's own follower
	for range 2 {
		f := NewFollower(FollowerConfig{DB: h.db, Chats: h.chats, Approvals: h.gateway, Projection: counter, Reread: beat, Logger: silent()})
		h.start(f.Run)
	}
	log := NewLog(h.db, "laptop")
	const n = 120
	for i := range n {
		err := log.Append(t.Context(), Entry{Chat: "7", Event: runner.Event{Kind: runner.Notice, Text: string(rune('A'+i%26)) + string(rune('a'+i/26))}})
		if err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "all entries", func() bool {
		_, docs, err := h.db.Read(t.Context(), cursorKey("laptop"), headKey("laptop"))
		if err != nil {
			t.Fatal(err)
		}
		cur, err1 := decode[cursor](docs[0].Value)
		end, err2 := decode[head](docs[1].Value)
		return err1 == nil && err2 == nil && cur.Seq == end.Seq
	})
	for i := range n {
		_, docs, err := h.db.Read(t.Context(), "g:seen:"+string(rune('A'+i%26))+string(rune('a'+i/26)))
		if err != nil || string(docs[0].Value) != "1" {
			t.Fatalf("entry %d was handled %s times, %v", i, docs[0].Value, err)
		}
	}
}

type projection func(*store.Txn, Entry) error

func (p projection) Project(t *store.Txn, e Entry) error { return p(t, e) }
func (projection) Live(Live)                             {}

// TestAskOfATurnThatWasStopped: the stop withdraws the open question, and a tap that comes later is told so.
func TestAskOfATurnThatWasStopped(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.prompt("7", "u:1", "write a.txt x")
	id := h.shown.asked(t, 1)
	h.update(func(tx *store.Txn) error { _, err := h.chats.Stop(tx, "7", time.Time{}, false); return err })
	if r := h.shown.ended(t, "t.u:1"); r.Outcome != runner.Interrupted {
		t.Errorf("result %+v", r)
	}
	if o := h.tap("7", id, runner.ActionAllow); o.Won || o.Refused != approvals.RefusedWithdrawn {
		t.Errorf("a tap after the stop: %+v", o)
	}
}

// TestOwnerMovesPublishOutOfHumanOnly: for one project, by configuration, and nowhere else.
func TestOwnerMovesPublishOutOfHumanOnly(t *testing.T) {
	t.Parallel()
	for _, ordinary := range []bool{false, true} {
		h := newHouse(t)
		h.host("laptop", func(c *HostConfig) { c.Projects[0].PublishIsOrdinary = ordinary })
		h.mode("7", policy.FullAccess)
		h.prompt("7", "u:1", "run git push\nsay after")
		if !ordinary {
			id := h.shown.asked(t, 1)
			h.tap("7", id, runner.ActionDeny)
		}
		h.shown.ended(t, "t.u:1")
		h.shown.mu.Lock()
		asked := 0
		for _, e := range h.shown.entries {
			if e.Event.Kind == runner.RequestOpened {
				asked++
			}
		}
		h.shown.mu.Unlock()
		if want := map[bool]int{false: 1, true: 0}[ordinary]; asked != want {
			t.Errorf("publish is ordinary %v: asked %d times, want %d", ordinary, asked, want)
		}
	}
}

// stubborn is a runtime whose sessions hold a policy of their own for the length of a turn.
type stubborn struct {
	runner.Runtime
	applied bool
	told    chan runner.Policy
}

type stubbornSession struct {
	runner.Session
	r *stubborn
}

func (r *stubborn) Open(ctx context.Context, o runner.Options) (runner.Session, error) {
	s, err := r.Runtime.Open(ctx, o)
	return stubbornSession{s, r}, err
}

func (s stubbornSession) SetPolicy(_ context.Context, p runner.Policy) (bool, error) {
	s.r.told <- p
	return s.r.applied, nil
}

// TestTurnThatCannotBeTightenedIsInterrupted: lowering takes effect in running turns, if need be by ending them.
func TestTurnThatCannotBeTightenedIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		h := newHouse(t)
		r := &stubborn{Runtime: runnertest.New("script", nil), applied: applied, told: make(chan runner.Policy, 8)}
		h.host("laptop", func(c *HostConfig) { c.Runtimes = []runner.Runtime{r} })
		h.mode("7", policy.Auto)
		h.prompt("7", "u:1", "ask ready?|yes")
		id := h.shown.asked(t, 1)
		h.mode("7", policy.FullAccess) // looser waits for the next turn
		h.mode("7", policy.AutoAcceptEdits)
		if p := <-r.told; p.Mode != policy.AutoAcceptEdits {
			t.Errorf("told %v", p)
		}
		if applied {
			if o, err := h.gateway.Decide(t.Context(), approvals.Tap{
				ID: id, Chat: "7", Person: approvals.Person{ID: 1, Role: approvals.Owner}, Answers: map[string][]string{"q": {"yes"}}, Token: "x",
			}); err != nil || !o.Won {
				t.Fatalf("answer: %+v %v", o, err)
			}
		}
		want := map[bool]runner.Outcome{false: runner.Interrupted, true: runner.Completed}[applied]
		if res := h.shown.ended(t, "t.u:1"); res.Outcome != want {
			t.Errorf("applied %v: result %+v, want %s", applied, res, want)
		}
	}
}

// away is a store that can be taken away from the host.
type away struct {
	store.DB
	gone atomic.Bool
}

func (a *away) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	if a.gone.Load() {
		return time.Time{}, nil, store.ErrUnavailable
	}
	return a.DB.Read(ctx, keys...)
}

// TestShortOutageCostsNoTurn: an ask waits for a store that restarts, and is then answered by the mode as it is.
func TestShortOutageCostsNoTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := &away{DB: h.db}
	answers := make(chan runner.Answer, 1)
	h.host("laptop", func(c *HostConfig) { c.DB, c.Logger = db, silent() },
		withTurn(func(_ context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
			db.gone.Store(true)
			time.AfterFunc(300*time.Millisecond, func() { db.gone.Store(false) })
			answers <- s.Edit("a.txt", "x")
			return runner.Result{Outcome: runner.Completed}, nil
		}))
	h.mode("7", policy.FullAccess)
	h.prompt("7", "u:1", "work")
	if a := <-answers; !a.Allows() {
		t.Errorf("the ask was refused: %+v", a)
	}
	h.shown.ended(t, "t.u:1")
}

// TestTurnWithoutAnOrderIsAllowedNothing, also in the moment before the host has noticed that it was taken away.
func TestTurnWithoutAnOrderIsAllowedNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	host := NewHost(HostConfig{DB: h.db, Name: "laptop", Log: NewLog(h.db, "laptop"), Logger: silent()})
	order := Order{Turn: "t.u:1", Chat: "7"}
	h.update(func(tx *store.Txn) error {
		if err := store.Put(tx, orderKey("laptop", order.Turn), order); err != nil {
			return err
		}
		return store.Put(tx, mirrorKey("laptop", "7"), Mirror{V: Version, Mode: policy.FullAccess, Interaction: policy.Default})
	})
	if p, err := host.policy(t.Context(), order); err != nil || p.Mode != policy.FullAccess {
		t.Errorf("while it is ordered: %v, %v", p, err)
	}
	h.update(func(tx *store.Txn) error { tx.Delete(orderKey("laptop", order.Turn)); return nil })
	if p, err := host.policy(t.Context(), order); !errors.Is(err, errDisowned) {
		t.Errorf("once it was taken away: %v, %v", p, err)
	}
}
