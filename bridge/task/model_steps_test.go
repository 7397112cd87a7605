package task

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// chances say how often each step is taken.
var chances = map[string]int{
	"mode": 4, "plan": 4, "schedule": 3, "delay": 2, "task": 9, "prompt": 2, "ask": 24, "tap": 16, "end": 14, "wait": 10,
	"kill": 3, "fault": 3, "right": 2, "deal": 12, "deal with a schedule": 3, "settings": 2, "damage": 2, "move": 1,
}

// step does one thing that can happen. What is not possible becomes something that is: each step counts.
func (m *model) step() {
	all := 0
	names := slices.Sorted(maps.Keys(chances))
	for _, name := range names {
		all += chances[name]
	}
	n := m.r.IntN(all)
	name := ""
	for _, name = range names {
		if n -= chances[name]; n < 0 {
			break
		}
	}
	m.did[m.do(name)]++
	m.recover()
}

// recover lets what is in the way of most things pass some steps later: the dead are started again, plan ends, who lost
// the right has it back.
func (m *model) recover() {
	for _, who := range slices.Sorted(maps.Keys(m.dbs)) {
		if m.dbs[who].dies() && m.r.IntN(4) == 0 {
			m.restart(who)
		}
	}
	if m.r.IntN(8) == 0 {
		m.update(func(t *store.Txn) error { return m.k.chats.SetInteraction(t, m.home, policy.Default) })
	}
	if m.r.IntN(5) == 0 {
		m.mu.Lock()
		m.may = true
		m.mu.Unlock()
	}
}

// do does it, and says what it did.
func (m *model) do(name string) string {
	turns := m.running()
	switch name {
	case "ask", "end":
		if len(turns) == 0 {
			return m.do("task")
		}
	case "tap":
		if !m.tap() {
			return m.do("ask")
		}
		return name
	}
	switch name {
	case "mode":
		mode := m.aMode()
		m.update(func(t *store.Txn) error { _, err := m.k.chats.SetMode(t, m.home, mode); return err })
		m.chose("", mode)
	case "plan":
		m.update(func(t *store.Txn) error { return m.k.chats.SetInteraction(t, m.home, policy.Plan) })
	case "schedule", "delay", "task":
		m.make(name)
	case "prompt":
		m.names++
		p := bridge.Prompt{ID: fmt.Sprint("u:", m.names), Text: "hello", By: ada, At: time.Now()}
		m.update(func(t *store.Txn) error { _, err := m.k.chats.Prompt(t, m.home, p); return err })
	case "ask":
		m.act(one(m.r, turns))
	case "end":
		m.finishes(one(m.r, turns))
	case "wait":
		d := one(m.r, []time.Duration{time.Second, time.Minute, 3 * time.Minute, 12 * time.Minute})
		time.Sleep(d) //nolint:forbidigo // in a bubble
	case "kill":
		m.restart(m.draw("gateway 0", "gateway 1", "host h1", "host h2"))
	case "fault":
		db := m.dbs[m.draw("gateway 0", "gateway 1", "host h1", "host h2")]
		db.mu.Lock()
		db.left, db.after = m.r.IntN(41), m.r.IntN(2) == 0
		db.mu.Unlock()
	case "right":
		m.mu.Lock()
		m.may = false
		m.mu.Unlock()
	case "deal":
		return m.deal()
	case "deal with a schedule":
		return m.dealSchedule()
	case "settings":
		set := Settings{Card: m.draw("", "", "-77"), Patience: one(m.r, []time.Duration{0, time.Minute, time.Hour})}
		if m.r.IntN(4) == 0 {
			set.Quiet = &bridge.Quiet{From: m.r.IntN(24 * 60), To: m.r.IntN(24 * 60)}
		}
		m.update(func(t *store.Txn) error { return m.k.tasks.SetSettings(t, m.home, set) })
	case "damage":
		return m.damage()
	case "move":
		return m.move()
	}
	return name
}

func (m *model) restart(who string) {
	db := m.dbs[who]
	db.mu.Lock()
	db.dead = true
	db.mu.Unlock()
	if name, ok := strings.CutPrefix(who, "host "); ok {
		m.hosts[name].stop()
		m.host(name)
		return
	}
	i := int(who[len(who)-1] - '0')
	m.gateways[i].stop()
	m.gateway(i)
}

// make adds a task, or a schedule of one time or of many.
func (m *model) make(what string) {
	m.names++
	id := fmt.Sprintf("w%d", m.names)
	w := Work{
		Steps: []string{"one", "two"}[:1+m.r.IntN(2)], Mode: m.chatIn().AtMost(m.aMode()), By: ada, InChat: m.r.IntN(3) == 0,
		Execution: Execution(m.draw("", "auto", "auto", "review")), Careful: m.r.IntN(3) == 0, Follow: one(m.r, []Follow{"", "", FollowOn, FollowOff}),
		Host: m.draw("h1", "h2"), Project: project, Runtime: "script",
	}
	m.chose(id, w.Mode)
	m.update(func(t *store.Txn) error {
		if what == "task" {
			_, err := m.k.tasks.Add(t, m.home, NewTask{ID: id, Work: w})
			return err
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		spec := Spec{Every: 10 * time.Minute, From: now}
		if what == "delay" {
			spec = Spec{At: now.Add(one(m.r, []time.Duration{time.Minute, 10 * time.Minute}))}
		}
		_, err = m.k.tasks.AddSchedule(t, m.home, NewSchedule{ID: id, Work: w, Spec: spec, Missed: one(m.r, []Missed{Late, Skip})})
		return err
	})
}

// finishes ends a turn in one of the ways in which turns end.
func (m *model) finishes(t *turn) {
	r := completed()
	switch m.draw("completed", "completed", "completed", "failed", "next") {
	case "failed":
		r.Outcome = runner.Broken
	case "next":
		r.Next = &runner.Input{Text: "go on"}
	}
	if strings.HasSuffix(t.id, ":follow-ups") {
		said := one(m.r, []string{
			`{"tasks":[{"title":"a","steps":["x"],"mode":"full-access"},{"title":"b","steps":["y","z"],"mode":"approval-required"}]}`,
			`{"tasks":[{"title":"a","steps":["x"]},{"title":"b","steps":["x"]},{"title":"c","steps":["x"]},{"title":"d","steps":["x"]},{"title":"e","steps":["x"]},{"title":"f","steps":["x"]}]}`,
			`{"tasks":[]}`, `{"tasks":[{"title":"a","steps":["x"],"mode":"yolo"}]}`, "I would say: nothing.",
		})
		t.sink(runner.Event{Kind: runner.ItemCompleted, Item: &runner.Item{ID: "m", Kind: runner.ItemMessage, Text: said}})
		r.Next = nil
	}
	select {
	case t.end <- r:
	default: // it is ending
	}
}

// tap decides an approval, and reports whether there was one.
func (m *model) tap() bool {
	all, err := m.k.approvals.Pending(context.Background(), "")
	if err != nil {
		m.t.Fatal(err)
	}
	if len(all) == 0 {
		return false
	}
	slices.SortFunc(all, func(a, b approvals.Record) int { return strings.Compare(a.Question.Title, b.Question.Title) })
	r := one(m.r, all)
	action := one(m.r, append(r.Question.Actions, runner.Action{ID: runner.ActionAllow, Allows: true}))
	if action.Allows {
		m.mu.Lock()
		m.yes[r.Question.Title] = true
		if action.Grant != "" {
			m.granted[grant(r.Chat, r.ID.Host(), r.Question.Categories[0])] = true
		}
		m.mu.Unlock()
	}
	_, err = m.k.approvals.Decide(context.Background(), approvals.Tap{
		ID: r.ID, Chat: r.Chat, Person: approvals.Person{ID: 11, Name: "Ada", Role: approvals.Owner}, Action: action.ID, Token: string(store.NewRev()),
	})
	if err != nil {
		m.t.Log(err) // its host is dead, say
	}
	return true
}

// list is the chat's tasks, by their ids.
func (m *model) list() (all []Task) {
	m.update(func(t *store.Txn) (err error) { all, err = m.k.tasks.Tasks(t, m.home, Filter{}); return err })
	slices.SortFunc(all, func(a, b Task) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// deal lets a person do something with a task.
func (m *model) deal() string {
	all := m.list()
	if len(all) == 0 {
		return m.do("task")
	}
	task := one(m.r, all)
	do := map[State][]string{
		InReview: {"approve", "approve", "reject", "rerun", "attended"}, Blocked: {"rerun", "attended", "by hand", "skip", "cancel"},
		Done: {"rerun", "attended", "cancel"}, Cancelled: {"rerun"}, Pending: {"cancel", "mode"}, InProgress: {"cancel", "mode", "mode", "mode"},
	}[task.State]
	what := one(m.r, append(do, "mode", "execution"))
	m.origin(task)
	to := m.chatIn().AtMost(m.aMode())
	m.update(func(t *store.Txn) (err error) {
		switch what {
		case "approve":
			_, _, err = m.k.tasks.Approve(t, task.ID, "Ada")
		case "reject":
			_, _, err = m.k.tasks.Reject(t, task.ID, "not so", "Ada")
		case "rerun", "attended":
			_, _, err = m.k.tasks.Rerun(t, task.ID, what == "attended", "Ada")
		case "by hand":
			_, _, err = m.k.tasks.ByHand(t, task.ID, "Ada")
		case "skip":
			_, _, err = m.k.tasks.Skip(t, task.ID, "Ada")
		case "cancel":
			_, _, err = m.k.tasks.Cancel(t, task.ID, "Ada")
		case "execution":
			_, err = m.k.tasks.SetExecution(t, task.ID, one(m.r, []Execution{"", Auto, Review}))
		case "mode":
			_, err = m.k.tasks.SetMode(t, task.ID, to) // up, which is an owner's deliberate step, or down
		}
		return err
	})
	if what == "mode" {
		m.chose(task.ID, to)
	}
	return "a task: " + what
}

// dealSchedule lets a person do something with a schedule.
func (m *model) dealSchedule() string {
	var all []Schedule
	m.update(func(t *store.Txn) (err error) { all, err = m.k.tasks.Schedules(t, m.home); return err })
	if len(all) == 0 {
		return m.do("schedule")
	}
	slices.SortFunc(all, func(a, b Schedule) int { return strings.Compare(a.ID, b.ID) })
	sch := one(m.r, all)
	what := m.draw("pause", "resume", "resume", "now", "now", "mode", "mode", "edit", "delete")
	to := m.chatIn().AtMost(m.aMode())
	m.update(func(t *store.Txn) (err error) {
		switch what {
		case "pause":
			_, _, err = m.k.tasks.Pause(t, sch.ID, WhyAsked)
		case "resume":
			_, _, err = m.k.tasks.Resume(t, sch.ID)
		case "now":
			_, _, err = m.k.tasks.RunNow(t, sch.ID, "Ada")
		case "edit":
			_, err = m.k.tasks.EditSchedule(t, sch.ID, []string{"another"}, nil)
		case "delete":
			_, err = m.k.tasks.DeleteSchedule(t, sch.ID)
		case "mode":
			_, err = m.k.tasks.SetScheduleMode(t, sch.ID, to)
		}
		return err
	})
	if what == "mode" {
		m.chose(sch.ID, to)
	}
	return "a schedule: " + what
}

// damage writes a record as an older or a broken program might have: without the mode, with one that nobody knows, or cut off.
func (m *model) damage() string {
	for _, task := range m.list() {
		m.origin(task) // as long as it can be read
	}
	kind := m.draw("g:task:", "g:schedule:", "to:h1:turn:", "to:h2:turn:", "to:h1:chat:", "to:h2:chat:")
	var keys []string
	for _, key := range m.db.Keys() {
		if strings.HasPrefix(key, kind) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return m.do("task")
	}
	key := one(m.r, keys)
	_, docs, err := m.db.Read(context.Background(), key)
	if err != nil {
		m.t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(docs[0].Value, &doc); err != nil {
		return m.do("task") // it is broken already
	}
	at, field := doc, "mode"
	if strings.Contains(key, ":turn:") {
		at, field = doc["prompt"].(map[string]any), "limit"
	}
	if delete(at, field); m.r.IntN(2) == 0 {
		at[field] = "yolo"
	}
	b, err := json.Marshal(doc)
	if err != nil {
		m.t.Fatal(err)
	}
	if strings.HasPrefix(key, "g:task:") && m.r.IntN(2) == 0 {
		b = b[:len(b)/2]
	}
	if err := m.db.Commit(context.Background(), store.Batch{Rev: store.NewRev(), Put: map[string][]byte{key: b}}); err != nil {
		m.t.Fatal(err)
	}
	return "damage of " + strings.TrimRight(kind, ":")
}

// move makes a supergroup of the group; a message may have been written there before the move was seen.
func (m *model) move() string {
	m.names++
	from, to := m.home, fmt.Sprintf("-2%d", m.names)
	taken := m.r.IntN(3) == 0
	mode := m.aMode()
	m.update(func(t *store.Txn) error {
		if taken {
			if _, err := m.k.chats.SetProject(t, to, project+"@h2"); err != nil {
				return err
			}
			if _, err := m.k.chats.SetMode(t, to, mode); err != nil {
				return err
			}
		}
		if _, err := m.k.chats.Migrate(t, from, to); err != nil {
			return err
		}
		return m.k.tasks.Migrate(t, from, to)
	})
	m.home = to
	m.chose("", m.chatIn())
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.granted, func(what string, _ bool) bool { return strings.HasPrefix(what, from+" ") }) // they do not come along
	return "move"
}
