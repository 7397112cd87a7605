package bot

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
	"drawbridge/internal/telegramtest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"

	"github.com/go-telegram/bot/models"
)

const (
	linus   = telegramtest.LinusID
	mallory = telegramtest.MalloryID
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// talk is a whole gateway and a host with the scripted runtime, over the strict Bot API.
type talk struct {
	*rig

	db        *flaky
	people    *People
	chats     *bridge.Chats
	approvals *approvals.Service
	tasks     *task.Service
	out       *Outbox
	in        *Inbox
	bot       *Bot
	folder    string
	options   talkOptions
	stopHost  func()
}

// talkOptions change what newTalk sets up.
type talkOptions struct {
	nobody   bool          // nobody is listed
	mode     policy.Mode   // of chats that have none
	projects []string      // beside demo
	noHost   bool          // no host runs
	deadline time.Duration // of approvals
	turn     runnertest.TurnFunc
	capable  func(*runner.Capability)
	reviewer string // the model that reviews on the host
	update   func(*OutboxConfig)
}

const (
	talkBeat = 50 * time.Millisecond
	talkDead = 2 * time.Second
)

func newTalk(t *testing.T, o talkOptions) *talk {
	t.Helper()
	db := &flaky{DB: storetest.OpenBolt(t)}
	k := &talk{rig: newRigOn(t, db, off), db: db, folder: t.TempDir(), options: o}
	pc := PeopleConfig{DB: db, Owners: []int64{ada}, Operators: []int64{grace}, Viewers: []int64{linus}}
	if o.nobody {
		pc = PeopleConfig{DB: db}
	}
	k.people = NewPeople(pc)
	k.approvals = approvals.New(approvals.Config{
		DB: db, Logger: k.log, Beat: talkBeat, DeadAfter: talkDead, Reread: 2 * talkBeat, SweepEvery: talkBeat,
		Decided: func(t *store.Txn, r approvals.Record, d approvals.Decision) error { return k.bot.Decided(t, r, d) },
		Make: func(t *store.Txn, r approvals.Record, d approvals.Decision) (string, error) {
			return k.bot.Make(t, r, d)
		},
	})
	k.chats = bridge.NewChats(bridge.ChatsConfig{
		DB: db, Logger: k.log, Approvals: k.approvals, DefaultMode: o.mode, DefaultProject: "demo", DefaultRuntime: "script",
	})
	k.out = k.outbox(func(c *OutboxConfig) {
		c.DB, c.Reread = db, 2*talkBeat
		c.OnMigrated = func(t *store.Txn, from, to int64) error { return k.bot.Migrated(t, from, to) }
		c.OnDropped = func(t *store.Txn, m Outgoing, reason string) error { return k.bot.Dropped(t, m, reason) }
		c.Blob = func(ctx context.Context, name string) ([]byte, error) { return k.bot.Blob(ctx, name) }
		if o.update != nil {
			o.update(c)
		}
	})
	acker := NewAcker(AckerConfig{API: k.newAPI(), Logger: k.log})
	k.tasks = task.New(task.Config{
		DB: db, Chats: k.chats, Approvals: k.approvals, Next: later{k}, Logger: k.log, Pace: 2 * talkBeat,
		Notify: func(t *store.Txn, e task.Event) error { return k.bot.Worked(t, e) },
		May:    func(t *store.Txn, chat, by string) (bool, error) { return k.bot.MayWork(t, chat, by) },
	})
	k.bot = New(Config{
		DB: db, Chats: k.chats, Approvals: k.approvals, Tasks: k.tasks, Outbox: k.out, API: k.api, Acker: acker, People: k.people, Logger: k.log,
	})
	me, err := k.api.Me(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.bot.Named(me.Username)
	if !o.noHost {
		k.stopHost = k.host(o)
	}
	k.in = k.inbox(k.bot, func(c *InboxConfig) { c.DB, c.Lane, c.Reread = db, k.bot.Lane, 2*talkBeat })
	follower := bridge.NewFollower(bridge.FollowerConfig{
		DB: db, Chats: k.chats, Approvals: k.approvals, Projection: k.tasks, Reread: 2 * talkBeat, Logger: k.log,
	})
	for _, run := range []func(context.Context) error{
		k.out.Run, acker.Run, k.in.Run, k.approvals.RunSweep, follower.Run, k.tasks.Run, polling(k.poller(k.in)),
	} {
		k.run(run)
	}
	return k
}

// later is the bot behind the tasks, which are made before it.
type later struct{ *talk }

func (l later) Project(t *store.Txn, e bridge.Entry) error { return l.bot.Project(t, e) }
func (l later) Omitted(t *store.Txn, e bridge.Entry) error { return l.bot.Omitted(t, e) }
func (l later) Live(e bridge.Live)                         { l.bot.Live(e) }

// host starts the host and waits until gateways know it. The returned function ends it.
func (k *talk) host(o talkOptions) (stop func()) {
	k.t.Helper()
	log := bridge.NewLog(k.db, "box")
	incarnation := string(store.NewRev())
	svc := approvals.New(approvals.Config{
		DB: k.db, Host: "box", Incarnation: incarnation, Logger: k.log, Beat: talkBeat, DeadAfter: talkDead, Reread: 2 * talkBeat,
		Opened: log.Opened, Resolved: log.Resolved, Deadline: o.deadline,
	})
	script := runnertest.New("script", o.turn)
	script.Data = filepath.Join(k.t.TempDir(), "sessions")
	if o.capable != nil {
		o.capable(&script.Capability)
	}
	ready := make(chan struct{})
	c := bridge.HostConfig{
		DB: k.db, Name: "box", Incarnation: incarnation, Projects: []bridge.Project{{Name: "demo", Folder: k.folder}},
		Runtimes: []runner.Runtime{script, runnertest.New("other", o.turn)}, Approvals: svc, Log: log, Data: k.t.TempDir(),
		Reviewer: o.reviewer, Reread: 2 * talkBeat, LivePace: talkBeat, Logger: k.log, Ready: func() { close(ready) },
	}
	for _, name := range o.projects {
		c.Projects = append(c.Projects, bridge.Project{Name: name, Folder: k.t.TempDir()})
	}
	ends := []func(){k.run(svc.Run), k.run(bridge.NewHost(c).Run)}
	select {
	case <-ready:
	case <-time.After(60 * time.Second):
		k.t.Fatal("the host does not come up")
	}
	until(k.t, "the first beat", func() bool {
		alive, err := k.approvals.HostAlive(k.t.Context(), "box")
		return err == nil && alive
	})
	until(k.t, "the runtimes", func() (known bool) {
		k.update(func(t *store.Txn) error {
			hello, _, err := k.chats.Hello(t, "box")
			known = hello.Runtimes["script"].State == script.Capability.State
			return err
		})
		return known
	})
	return sync.OnceFunc(func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	})
}

// idle waits until everything that was written is handled, nothing runs and all is sent: what is not there then, never comes.
func (k *talk) idle() {
	k.t.Helper()
	until(k.t, "quiet", func() bool {
		var bot struct {
			Pending int `json:"pending_updates"`
		}
		k.sim("GET", "bot", nil, &bot)
		return bot.Pending == 0 && k.size(inboxIndex) == 0 && k.caughtUp() && k.size("to:box:turns") == 0 && k.size(outboxIndex) == 0 && k.caughtUp()
	})
}

// caughtUp reports whether the gateway has read all of the host's log.
func (k *talk) caughtUp() bool {
	k.t.Helper()
	var head, cursor struct {
		Seq int64 `json:"seq"`
	}
	_, docs, err := k.db.Read(k.t.Context(), "from:box:head", "g:cursor:box")
	if err == nil {
		err = decodeDoc(docs[0], &head)
	}
	if err == nil {
		err = decodeDoc(docs[1], &cursor)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return cursor.Seq >= head.Seq
}

// post lets a person send something beside text.
func (k *talk) post(o object) int {
	k.t.Helper()
	var out struct {
		ID int `json:"message_id"`
	}
	k.sim("POST", "messages", o, &out)
	return out.ID
}

func file(name string, content []byte) object {
	return object{"name": name, "base64": base64.StdEncoding.EncodeToString(content)}
}

// in sends a text to a topic, or as a reply.
func (k *talk) reply(chat, from int64, to int, text string) int {
	k.t.Helper()
	return k.post(object{"chat": chat, "from": from, "text": text, "reply_to": to})
}

// reads waits for a message of the bot with all the parts in a chat, behind the message after.
func (k *talk) reads(chat int64, after int, parts ...string) seen {
	k.t.Helper()
	var found seen
	var all []seen
	limit := time.Now().Add(60 * time.Second)
	for found.ID == 0 {
		all = k.rig.chat(chat)
		for _, m := range all {
			if m.ID > after && holds(m.Text, parts...) {
				found = m
				break
			}
		}
		if found.ID == 0 && time.Now().After(limit) {
			k.t.Fatalf("waited in vain for %q; the chat reads\n%s", parts, strings.Join(texts(all), "\n---\n"))
		}
		if found.ID == 0 {
			<-time.After(5 * time.Millisecond)
		}
	}
	return found
}

func holds(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// becomes waits until a message of the bot holds the parts and has no buttons.
func (k *talk) becomes(chat int64, id int, parts ...string) seen {
	k.t.Helper()
	var m seen
	limit := time.Now().Add(60 * time.Second)
	for {
		m = k.message(chat, id)
		if holds(m.Text, parts...) && (len(m.Buttons) == 0 || slices.Equal(m.labels(), []string{textResume})) {
			return m
		}
		if time.Now().After(limit) {
			k.t.Fatalf("message %d does not become %q; it is %q with the buttons %q", id, parts, m.Text, m.labels())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (k *talk) message(chat int64, id int) seen {
	k.t.Helper()
	for _, m := range k.rig.chat(chat) {
		if m.ID == id {
			return m
		}
	}
	return seen{}
}

// none checks that no message of the bot behind after holds part, once all is quiet.
func (k *talk) none(chat int64, after int, part string) {
	k.t.Helper()
	k.idle()
	for _, m := range k.rig.chat(chat) {
		if m.ID > after && strings.Contains(m.Text, part) {
			k.t.Errorf("the bot said %q", m.Text)
		}
	}
}

func (m seen) labels() []string {
	var out []string
	for _, row := range m.Buttons {
		for _, b := range row {
			out = append(out, b.Text)
		}
	}
	return out
}

func (m seen) has(label string) bool { return slices.Contains(m.labels(), label) }

// tapped is what whoever tapped sees.
type tapped struct {
	Answered bool   `json:"answered"`
	Text     string `json:"text"`
	Alert    bool   `json:"alert"`
}

func (k *talk) tap(chat, from int64, id int, button any) tapped {
	k.t.Helper()
	var out tapped
	k.sim("POST", "taps", object{"chat": chat, "from": from, "message_id": id, "button": button, "wait": 15}, &out)
	if !out.Answered {
		k.t.Errorf("the tap on %v was not answered", button)
	}
	return out
}

// data is what a button sends when it is tapped.
func (k *talk) data(chat int64, id int, label string) string {
	k.t.Helper()
	var all []struct {
		ID      int `json:"message_id"`
		Buttons [][]struct {
			Text string `json:"text"`
			Data string `json:"callback_data"`
		} `json:"buttons"`
	}
	k.sim("GET", "chats/"+strconv.FormatInt(chat, 10)+"/messages", nil, &all)
	for _, m := range all {
		for _, row := range m.Buttons {
			for _, b := range row {
				if m.ID == id && b.Text == label {
					return b.Data
				}
			}
		}
	}
	k.t.Fatalf("message %d has no button %q", id, label)
	return ""
}

type carrier struct {
	ID       int `json:"message_id"`
	Document struct {
		FileID string `json:"file_id"`
	} `json:"document"`
}

// content is the file that a message of the bot carries.
func (k *talk) content(chat int64, id int) string {
	k.t.Helper()
	var all []carrier
	k.sim("GET", "chats/"+strconv.FormatInt(chat, 10)+"/messages", nil, &all)
	i := slices.IndexFunc(all, func(m carrier) bool { return m.ID == id })
	if i < 0 {
		k.t.Fatalf("there is no message %d", id)
	}
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, k.url+"/sim/files/"+all[i].Document.FileID, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		k.t.Fatal(resp.StatusCode, err)
	}
	return string(b)
}

// record reads a chat as it is stored.
func (k *talk) record(chat ChatRef) bridge.Chat {
	k.t.Helper()
	c, err := k.chats.Read(k.t.Context(), chat.Key())
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

func (k *talk) update(f func(t *store.Txn) error) {
	k.t.Helper()
	if err := store.Update(k.t.Context(), k.db, f); err != nil {
		k.t.Fatal(err)
	}
}

// enable makes the bot work in a group, as an owner's /enable does.
func (k *talk) enable(chat int64) {
	k.t.Helper()
	k.update(func(t *store.Txn) error { return k.people.enable(t, ChatRef{ID: chat}, ada) })
}

// exists reports whether a file of the project exists.
func (k *talk) exists(name string) bool {
	_, err := os.Stat(filepath.Join(k.folder, name))
	return err == nil
}

// open waits for the only approval that is open in a chat.
func (k *talk) open(chat int64) approvals.Record {
	k.t.Helper()
	var open []approvals.Record
	until(k.t, "an open approval", func() bool {
		var err error
		if open, err = k.approvals.Pending(k.t.Context(), ChatRef{ID: chat}.Key()); err != nil {
			k.t.Fatal(err)
		}
		return len(open) == 1
	})
	return open[0]
}

func mustText(s string) formatting.Message { return formatting.Message{Text: s} }

// query is a tap as Telegram delivers it.
func query(chat, from int64, message int, data string) *models.CallbackQuery {
	return &models.CallbackQuery{
		ID: rand.Text(), From: models.User{ID: from, FirstName: map[int64]string{ada: "Ada", grace: "Grace"}[from]}, Data: data,
		Message: models.MaybeInaccessibleMessage{Message: &models.Message{ID: message, Chat: models.Chat{ID: chat}}},
	}
}

func (k *talk) items(index string) []store.Item {
	k.t.Helper()
	items, err := k.db.Range(k.t.Context(), index, -store.MaxScore, store.MaxScore, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	return items
}
