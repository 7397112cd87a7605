package bench_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/approvals"
	"drawbridge/bot"
	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/store/redis"
	"drawbridge/internal/store/storetest"
	"drawbridge/internal/telegramtest"
	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

const (
	// many is how many schedules BenchmarkSchedules keeps, whose next time is far.
	many = 10_000
	// crowd is how many schedules of BenchmarkBurst are due at the same moment.
	crowd = 500
	// places is how many tasks a host runs at a time, unless configured; rooms is how many folders it has, for each to have one.
	places = 4
	// working is how long a task of BenchmarkBurst takes its agent.
	working = 200 * time.Millisecond
)

// open opens a configuration's store, as the program does.
func open(b *testing.B, c config.Config) store.DB {
	b.Helper()
	var db store.DB
	var err error
	if url := c.RedisURL.Reveal(); url == "" {
		db, err = bolt.Open(filepath.Join(c.DataDir, "drawbridge.db"), bolt.Options{})
	} else {
		db, err = redis.Open(b.Context(), url, redis.Options{Prefix: "drawbridge:{" + c.Namespace + "}:"})
	}
	if err != nil {
		b.Fatal(err)
	}
	return db
}

func load(b *testing.B, dir string, env []string, role config.Role) config.Config {
	b.Helper()
	c, err := config.Load(env, filepath.Join(dir, "drawbridge.toml"))
	if err == nil {
		c, err = c.For(role)
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// planner is a gateway's rules over a store, for what people plan.
type planner struct {
	db    store.DB
	chats *bridge.Chats
	tasks *task.Service
}

func newPlanner(db store.DB) planner {
	p := planner{db: db}
	gate := approvals.New(approvals.Config{DB: db})
	p.chats = bridge.NewChats(bridge.ChatsConfig{DB: db, Logger: slog.New(slog.DiscardHandler), Approvals: gate, DefaultRuntime: "scripted"})
	p.tasks = task.New(task.Config{DB: db, Chats: p.chats, Approvals: gate})
	return p
}

func (p planner) update(b *testing.B, f func(t *store.Txn) error) {
	b.Helper()
	if err := store.Update(b.Context(), p.db, f); err != nil {
		b.Fatal(err)
	}
}

// planMany plans 10,000 things that are far away, in the store of a program that does not run yet.
func planMany(b *testing.B, c config.Config) {
	b.Helper()
	db := open(b, c)
	p := newPlanner(db)
	project := bridge.Project{Name: "shop", Folder: filepath.Join(filepath.Dir(c.DataDir), "shop")}
	p.update(b, func(t *store.Txn) error {
		t.Add(approvals.HostsIndex, "bench", 1)
		return store.Put(t, "from:bench:hello", bridge.Hello{V: 1, Host: "bench", Projects: []bridge.Project{project}, Runtimes: map[string]runner.Capability{"scripted": {}}})
	})
	for chat := range many / task.MaxSchedules {
		p.update(b, func(t *store.Txn) error {
			key := strconv.Itoa(-5000 - chat)
			if _, err := p.chats.SetProject(t, key, project.Name); err != nil {
				return err
			}
			now, err := t.Now()
			if err != nil {
				return err
			}
			for range task.MaxSchedules {
				work := task.Work{Steps: []string{"Look whether anything has changed since the last time, and say what."}, By: strconv.FormatInt(ada, 10)}
				spec := task.Spec{Every: 24 * time.Hour, From: now}
				if _, err := p.tasks.AddSchedule(t, key, task.NewSchedule{Work: work, Spec: spec}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBurst is a moment at which 500 schedules are due, on two hosts that each have a place for four tasks, of which
// each takes its agent 200 ms: how long it takes until all were run, against what the places would allow, and what a tap in
// another chat takes meanwhile, as in BenchmarkTap, against before. One operation is one such moment.
func BenchmarkBurst(b *testing.B) {
	b.Run("redis", func(b *testing.B) { benchmarkBurst(b, storetest.StartRedis(b, storetest.RedisOptions{}).URL()) })
}

func benchmarkBurst(b *testing.B, redisURL string) {
	t := startTelegram(b)
	returned, ended := make(chan time.Time, 1), make(chan time.Time, crowd)
	enough := make(chan struct{})
	agent := func() runner.Runtime {
		return runnertest.New("scripted", func(ctx context.Context, s *runnertest.Scripted, in runner.Input) (runner.Result, error) {
			if !strings.Contains(in.Text, "ask") {
				select {
				case <-ctx.Done():
				case <-time.After(working): // an agent works
				}
				ended <- time.Now()
				return runner.Result{Outcome: runner.Completed}, nil
			}
			for i := 0; ; i++ {
				select {
				case <-enough:
					return runner.Result{Outcome: runner.Completed}, nil
				default:
				}
				a := s.Ask(runner.Question{
					Kind: runner.KindCommand, Title: "Run a command", Command: fmt.Sprintf("make step-%d", i), Folder: s.Folder(),
					Categories: []policy.Category{policy.Terminal},
				})
				at := time.Now()
				if !a.Allows() {
					return runner.Result{Outcome: runner.Broken, Reason: a.Describe()}, errors.New(a.Describe())
				}
				returned <- at
			}
		})
	}
	p := startTwoHosts(b, t.url, redisURL, agent)
	await(b, "a poll", t.polled)
	tap := func() time.Duration {
		card := await(b, "a card", t.cards)
		<-time.After(reading)
		t.act("/sim/taps", map[string]any{"chat": ada, "from": ada, "message_id": card, "button": "Allow", "wait": 0})
		left := await(b, "the tap's update", t.tapped)
		return await(b, "the end of Ask", returned).Sub(left)
	}
	t.act("/sim/messages", map[string]any{"chat": ada, "from": ada, "text": "ask"})
	var before, meanwhile []time.Duration
	var took time.Duration
	for b.Loop() {
		for range taps / 2 {
			before = append(before, tap())
		}
		due := p.planCrowd(b)
		last := due
		for done := 0; done < crowd; {
			if time.Since(due) > 4*patience {
				b.Fatalf("only %d of %d were run", done, crowd)
			}
			meanwhile = append(meanwhile, tap())
			for more := true; more; {
				select {
				case at := <-ended:
					last = at
					done++
				default:
					more = false
				}
			}
		}
		took = last.Sub(due)
	}
	close(enough)
	tap() // the question that waits
	report(b, "before-", before)
	report(b, "", meanwhile)
	ideal := working * crowd / (2 * places)
	b.ReportMetric(took.Seconds(), "all-s")
	b.ReportMetric(float64(took)/float64(ideal), "times-ideal")
}

// planCrowd plans 500 things for one moment, in chats of several owners and all folders, and returns the moment.
func (p planner) planCrowd(b *testing.B) time.Time {
	b.Helper()
	due := time.Now().Add(5 * time.Second)
	for i, person := range []int64{telegramtest.GraceID, telegramtest.LinusID, telegramtest.MalloryID} {
		p.update(b, func(t *store.Txn) error {
			key := bot.ChatRef{ID: person}.Key()
			for n := i; n < crowd; n += 3 {
				work := task.Work{
					Steps: []string{"work"}, By: strconv.FormatInt(person, 10), Execution: task.Auto, Follow: task.FollowOff,
					Host: fmt.Sprint("h", n%2+1), Project: fmt.Sprint("room-", n/2%places), Runtime: "scripted",
				}
				if _, err := p.tasks.AddSchedule(t, key, task.NewSchedule{Work: work, Spec: task.Spec{At: due}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return due
}

// startTwoHosts runs a gateway and two hosts in this process until the benchmark ends, and returns what plans for them.
func startTwoHosts(b *testing.B, telegram, redisURL string, agent func() runner.Runtime) planner {
	b.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var running sync.WaitGroup
	b.Cleanup(func() { cancel(); running.Wait() })
	var p planner
	for _, name := range []string{"h1", "h2", ""} {
		dir, role := folder(b), config.RoleHost
		env := settings(b, dir, telegram, "http://127.0.0.1:1/v1", redisURL)
		env = append(slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "DRAWBRIDGE_OWNERS=") }), fmt.Sprintf("DRAWBRIDGE_OWNERS=%d,%d,%d,%d", ada, telegramtest.GraceID, telegramtest.LinusID, telegramtest.MalloryID))
		if name == "" {
			role = config.RoleGateway
		}
		c := load(b, dir, env, role)
		if name != "" {
			c.HostName = name
			if name == "h2" {
				c.Projects = nil // the chat in which is tapped is in shop, which only one host has
			}
			for i := range places {
				room := filepath.Join(dir, fmt.Sprint("room-", i))
				if err := os.MkdirAll(room, 0o700); err != nil {
					b.Fatal(err)
				}
				c.Projects = append(c.Projects, config.Project{Name: filepath.Base(room), Path: room})
			}
		}
		c.Runtimes, c.DefaultRuntime = nil, "scripted"
		o := app.Options{Config: c, Role: role, Logger: errorsOnly(b), Pace: bot.DefaultPace().Faster(1e6), Runtimes: []runner.Runtime{agent()}}
		ready := make(chan struct{})
		o.Ready = func() { close(ready) }
		running.Go(func() {
			if err := app.Run(ctx, o); err != nil {
				b.Error(err)
			}
		})
		await(b, "the start", ready)
		if role == config.RoleGateway {
			db := open(b, c)
			b.Cleanup(func() {
				if err := db.Close(); err != nil {
					b.Error(err)
				}
			})
			p = newPlanner(db)
		}
	}
	for _, person := range []int64{ada, telegramtest.GraceID, telegramtest.LinusID, telegramtest.MalloryID} {
		p.update(b, func(t *store.Txn) error {
			_, err := p.chats.SetProject(t, bot.ChatRef{ID: person}.Key(), "shop")
			return err
		})
	}
	return p
}
