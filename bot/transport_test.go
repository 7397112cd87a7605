package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/telegramtest"

	"github.com/go-telegram/bot/models"
)

const (
	ada   = telegramtest.AdaID
	grace = telegramtest.GraceID
	group = telegramtest.GroupID
	forum = telegramtest.ForumID
)

// rig is the strict Bot API, a store, and a client of the first.
type rig struct {
	t    *testing.T
	db   store.DB
	url  string
	api  *API
	log  *slog.Logger
	tape *tape
}

func newRig(t *testing.T, rates telegramtest.Rates) *rig {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return newRigOn(t, db, rates)
}

func newRigOn(t *testing.T, db store.DB, rates telegramtest.Rates) *rig {
	t.Helper()
	log := &tape{t: t}
	r := &rig{t: t, db: db, log: slog.New(log), tape: log}
	sim := telegramtest.New(telegramtest.Config{Rates: rates, Logger: r.log})
	srv := httptest.NewServer(sim)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = sim.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		srv.CloseClientConnections()
		srv.Close()
	})
	r.url = srv.URL
	r.api = r.newAPI()
	return r
}

func (r *rig) newAPI() *API {
	r.t.Helper()
	a, err := NewAPI(APIConfig{Token: telegramtest.DefaultToken, URL: r.url})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(a.Close)
	return a
}

// tape fails the test on an Error line, and keeps the others.
type tape struct {
	t *testing.T

	mu       sync.Mutex
	lines    []string
	tolerate bool
}

func (l *tape) Enabled(context.Context, slog.Level) bool { return true }
func (l *tape) WithAttrs(a []slog.Attr) slog.Handler     { return &tapeWith{l, a} }
func (l *tape) WithGroup(string) slog.Handler            { return l }

func (l *tape) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if r.Level >= slog.LevelError && !l.tolerate {
		l.t.Error(line)
	}
	return nil
}

func (l *tape) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

type tapeWith struct {
	*tape

	attrs []slog.Attr
}

func (l *tapeWith) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(l.attrs...)
	return l.tape.Handle(ctx, r)
}

// sim calls the control interface.
func (r *rig) sim(method, path string, in, out any) {
	r.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			r.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+"/sim/"+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("sim %s: %d %s %v", path, resp.StatusCode, b, err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			r.t.Fatalf("sim %s: %v in %s", path, err, b)
		}
	}
}

type object = map[string]any

func (r *rig) say(chat, from int64, text string) int {
	r.t.Helper()
	var out struct {
		ID int `json:"message_id"`
	}
	r.sim("POST", "messages", object{"chat": chat, "from": from, "text": text}, &out)
	return out.ID
}

func (r *rig) fault(f object) {
	r.t.Helper()
	r.sim("POST", "faults", f, nil)
}

type seen struct {
	ID      int    `json:"message_id"`
	From    int64  `json:"from"`
	Topic   int    `json:"topic"`
	Text    string `json:"text"`
	Edits   int    `json:"edits"`
	Silent  bool   `json:"silent"`
	ReplyTo int    `json:"reply_to"`
	Deleted bool   `json:"deleted"`
	Buttons [][]struct {
		Text string `json:"text"`
	} `json:"buttons"`
	Document *struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	} `json:"document"`
}

// chat is what the bot wrote in a chat and did not delete.
func (r *rig) chat(id int64) []seen {
	r.t.Helper()
	var all, out []seen
	r.sim("GET", "chats/"+strconv.FormatInt(id, 10)+"/messages", nil, &all)
	for _, m := range all {
		if m.From == r.api.ID() && !m.Deleted {
			out = append(out, m)
		}
	}
	return out
}

func texts(ms []seen) []string {
	out := []string{}
	for _, m := range ms {
		out = append(out, m.Text)
	}
	return out
}

type simCall struct {
	Method     string  `json:"method"`
	Parameters object  `json:"parameters"`
	Time       float64 `json:"time"`
	OK         bool    `json:"ok"`
	ErrorCode  int     `json:"error_code"`
}

func (r *rig) calls(method string) []simCall {
	r.t.Helper()
	var all, out []simCall
	r.sim("GET", "calls", nil, &all)
	for _, c := range all {
		if c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// until waits for something that other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(60 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// run starts a service and returns what ends it; the test ends it otherwise. Its error fails the test.
func (r *rig) run(f func(context.Context) error) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("service: %v", err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// ledger is a handler whose effect is in the store: how often each text took effect, in which order by chat.
type ledger struct {
	mu    sync.Mutex
	order map[ChatRef][]string
	calls atomic.Int64
	// before, if set, runs first and may fail the handling.
	before func(t *store.Txn, d *Delivery) error
}

func (l *ledger) Handle(t *store.Txn, d *Delivery) error {
	l.calls.Add(1)
	if l.before != nil {
		if err := l.before(t, d); err != nil {
			return err
		}
	}
	said := words(d)
	n, _, err := store.Get[int](t, "g:test:"+said)
	if err != nil {
		return err
	}
	d.After(func(context.Context) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.order == nil {
			l.order = map[ChatRef][]string{}
		}
		l.order[d.Chat] = append(l.order[d.Chat], said)
	})
	return store.Put(t, "g:test:"+said, n+1)
}

func words(d *Delivery) string {
	out := ""
	for n, u := range d.Updates {
		if n > 0 {
			out += "|"
		}
		switch {
		case u.Message != nil:
			out += u.Message.Text + u.Message.Caption
		case u.CallbackQuery != nil:
			out += "tap " + u.CallbackQuery.Data
		default:
			out += fmt.Sprint(u.ID)
		}
	}
	return out
}

func (l *ledger) in(chat int64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.order[ChatRef{ID: chat}])
}

// effects is how often said took effect.
func (r *rig) effects(said string) int {
	r.t.Helper()
	_, docs, err := r.db.Read(r.t.Context(), "g:test:"+said)
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	if docs[0].Rev != "" {
		if err := json.Unmarshal(docs[0].Value, &n); err != nil {
			r.t.Fatal(err)
		}
	}
	return n
}

func (r *rig) inbox(h Handler, change ...func(*InboxConfig)) *Inbox {
	cfg := InboxConfig{
		DB: r.db, Handler: h, Logger: r.log, Retry: 5 * time.Millisecond, Merge: 300 * time.Millisecond,
		Lane: func(u *models.Update) Lane {
			if u.CallbackQuery != nil || u.Message != nil && u.Message.Text == "/stop" {
				return LaneControl
			}
			return LaneOrdinary
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	return NewInbox(cfg)
}

func (r *rig) poller(i *Inbox) *Poller {
	return &Poller{API: r.api, Inbox: i, Logger: r.log, Wait: 2 * time.Second, Retry: 5 * time.Millisecond}
}

func polling(p *Poller) func(context.Context) error {
	return func(ctx context.Context) error { return p.Run(ctx, 0) }
}

// quick is a pace that no test waits for.
func quick() Pace {
	r := []Rate{{N: 1000, Per: time.Second}}
	return Pace{Private: r, Group: r, All: r, Live: time.Millisecond, LiveGroup: time.Millisecond}
}

func (r *rig) outbox(change ...func(*OutboxConfig)) *Outbox {
	cfg := OutboxConfig{DB: r.db, API: r.api, Logger: r.log, Pace: quick(), Retry: 5 * time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	return NewOutbox(cfg)
}

// put puts messages into the outbox in one commit.
func (r *rig) put(o *Outbox, ms ...Outgoing) {
	r.t.Helper()
	err := store.Update(r.t.Context(), r.db, func(t *store.Txn) error {
		for _, m := range ms {
			if err := o.Put(t, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func send(chat int64, text string) Outgoing {
	return Outgoing{Chat: ChatRef{ID: chat}, Kind: KindSend, Text: text}
}

func edit(chat int64, slot, text string) Outgoing {
	return Outgoing{Chat: ChatRef{ID: chat}, Kind: KindEdit, Slot: slot, Text: text}
}

func slotted(chat int64, slot, text string) Outgoing {
	return Outgoing{Chat: ChatRef{ID: chat}, Kind: KindSend, Slot: slot, Text: text}
}

// meet makes the bot known to a person, as Telegram requires before it may write to them, and forgets the update.
func (r *rig) meet(people ...int64) {
	r.t.Helper()
	for _, p := range people {
		r.say(p, p, "hello")
	}
	raws, err := r.api.Updates(r.t.Context(), 0, 0, 100)
	if err != nil || len(raws) == 0 {
		r.t.Fatal(len(raws), err)
	}
	_, id, _ := updateID(raws[len(raws)-1])
	if _, err := r.api.Updates(r.t.Context(), id+1, 0, 100); err != nil {
		r.t.Fatal(err)
	}
}

// size is the number of members of an index.
func (r *rig) size(index string) int {
	r.t.Helper()
	items, err := r.db.Range(r.t.Context(), index, -store.MaxScore, store.MaxScore, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(items)
}

// flaky is a store that can be away, or lose the answer to a commit.
type flaky struct {
	store.DB

	down  atomic.Bool
	after func(store.Batch) error // nil, or what a commit that happened returns
}

func (f *flaky) Read(ctx context.Context, keys ...string) (time.Time, []store.Doc, error) {
	if f.down.Load() {
		return time.Time{}, nil, fmt.Errorf("test: %w", store.ErrUnavailable)
	}
	return f.DB.Read(ctx, keys...)
}

func (f *flaky) Commit(ctx context.Context, b store.Batch) error {
	if f.down.Load() {
		return fmt.Errorf("test: %w", store.ErrUnavailable)
	}
	err := f.DB.Commit(ctx, b)
	if err == nil && f.after != nil {
		err = f.after(b)
	}
	return err
}

var errTest = errors.New("test: refused")
