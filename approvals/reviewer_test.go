package approvals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/chatapi"
	"drawbridge/internal/modeltest"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// verdict is an answer of a model in the one form that counts.
func verdict(decision, reason string) modeltest.Script {
	return func(_ context.Context, r modeltest.Request) modeltest.Reply {
		b, err := json.Marshal(map[string]string{"id": askedID(r), "decision": decision, "reason": reason})
		if err != nil {
			panic(err)
		}
		return modeltest.Reply{Text: string(b), Usage: modeltest.Usage{Input: 700, Cached: 500, Output: 30}}
	}
}

// askedID is the id that the model was told to answer with.
func askedID(r modeltest.Request) string {
	_, after, _ := strings.Cut(r.Messages[0].Content, `{"id":"`)
	id, _, _ := strings.Cut(after, `"`)
	return id
}

// model runs a model server until the test ends.
func model(t testing.TB, c modeltest.Config) *modeltest.Server {
	t.Helper()
	s, err := modeltest.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); g.Wait() })
	return s
}

// judge is the reviewer of the program, with short waits.
func judge(t testing.TB, url string) *approvals.ModelReviewer {
	t.Helper()
	transport := &http.Transport{}
	client, err := chatapi.New(chatapi.Config{
		BaseURL: url, Key: "reviewers-key", Attempts: 2, Backoff: time.Millisecond, MaxWait: time.Second, MaxBody: 1 << 20, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return approvals.NewModelReviewer(client, "small-1")
}

// steps notes what Reviewed commits, and what reviews take.
type steps struct {
	mu   sync.Mutex
	list []runner.Review
	cost runner.Usage
}

func (s *steps) on(c *approvals.Config) {
	c.Reviewed = func(t *store.Txn, run approvals.Run, r runner.Review) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, r)
		return store.Put(t, "from:box:reviewed:"+run.ID+fmt.Sprint(len(s.list)), r)
	}
	c.ReviewCost = func(_ approvals.Run, u runner.Usage) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cost.Input += u.Input
		s.cost.Cached += u.Cached
		s.cost.Output += u.Output
	}
}

// states are the steps so far, in words.
func (s *steps) states() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.list {
		word := r.State
		if r.Asked {
			word += ", asked"
		}
		if r.Source != runner.ReviewerOurs {
			word += " by " + r.Source
		}
		out = append(out, word)
	}
	return strings.Join(out, "; ")
}

func (s *steps) last() runner.Review {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[len(s.list)-1]
}

// TestReviewerIsNotBypass loses the reviewer in every way there is. In the foreground the question ends in a person's hands,
// and the card says why; in the background it is refused.
func TestReviewerIsNotBypass(t *testing.T) {
	t.Parallel()
	say := func(text string) modeltest.Script {
		return func(_ context.Context, r modeltest.Request) modeltest.Reply {
			return modeltest.Reply{Text: strings.ReplaceAll(text, "ID", askedID(r))}
		}
	}
	fault := func(f modeltest.Fault) modeltest.Script {
		return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
			reply := verdict("allow", "fine")(ctx, r)
			reply.Fault = f
			return reply
		}
	}
	const form = `{"id":"ID","decision":"allow","reason":"fine"}`
	for name, test := range map[string]struct {
		model   modeltest.Script
		nowhere bool // nothing listens at the address
		none    bool // there is no reviewer at all
		state   string
		why     string
	}{
		"there is none":               {none: true, state: "unavailable", why: "There is no reviewer."},
		"nobody listens":              {nowhere: true, state: "unavailable", why: "The reviewer's model could not be asked."},
		"it is silent":                {model: fault(modeltest.Fault{Silence: true}), state: "timeout", why: "The reviewer did not answer in time."},
		"the key is wrong":            {model: fault(modeltest.Fault{Status: 401, Code: "invalid_api_key"}), state: "unavailable", why: "The reviewer's endpoint does not accept the key."},
		"it may not":                  {model: fault(modeltest.Fault{Status: 403}), state: "unavailable", why: "The reviewer's endpoint does not accept the key."},
		"there is no quota":           {model: fault(modeltest.Fault{Status: 429, Code: "insufficient_quota"}), state: "unavailable", why: "The reviewer's account has no quota left."},
		"it has to wait":              {model: fault(modeltest.Fault{Status: 429, Code: "rate_limit_exceeded", RetryAfter: "60"}), state: "unavailable", why: "The reviewer's endpoint takes no more requests for the moment."},
		"there is no such model":      {model: fault(modeltest.Fault{Status: 404, Code: "model_not_found"}), state: "unavailable", why: "The reviewer's endpoint does not have the model."},
		"the endpoint is broken":      {model: fault(modeltest.Fault{Status: 500}), state: "unavailable", why: "The reviewer's model could not be asked."},
		"the endpoint is overloaded":  {model: fault(modeltest.Fault{Status: 503}), state: "unavailable", why: "The reviewer's model could not be asked."},
		"it is a web page":            {model: fault(modeltest.Fault{Body: "<html>login</html>"}), state: "unavailable", why: "The reviewer's model could not be asked."},
		"it is cut off at once":       {model: fault(modeltest.Fault{Cut: -1}), state: "unavailable", why: "The reviewer's model could not be asked."},
		"it is cut off in the middle": {model: fault(modeltest.Fault{Cut: 2}), state: "unavailable", why: "The reviewer's model could not be asked."},
		"it fails at its end":         {model: fault(modeltest.Fault{Error: "overloaded"}), state: "unavailable", why: "The reviewer's model could not be asked."},
		"it says nothing":             {model: say(" "), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it talks":                    {model: say("Sure, that is allowed."), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"one word":                    {model: say("allow"), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it talks before":             {model: say("I decide: " + form), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it talks after":              {model: say(form + "\nHave a nice day."), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"a code fence":                {model: say("```json\n" + form + "\n```"), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"two answers":                 {model: say(form + form), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"both at once":                {model: say(`{"id":"ID","decision":"deny","decision":"allow","reason":"fine"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"another id":                  {model: say(`{"id":"IDX","decision":"allow","reason":"fine"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"no id":                       {model: say(`{"decision":"allow","reason":"fine"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"no reason":                   {model: say(`{"id":"ID","decision":"allow"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"something more":              {model: say(`{"id":"ID","decision":"allow","reason":"fine","sure":"no"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"another word":                {model: say(`{"id":"ID","decision":"Allow","reason":"fine"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"other letters":               {model: say(`{"ID":"ID","Decision":"allow","Reason":"fine"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"another kind":                {model: say(`{"id":"ID","decision":true,"reason":"fine"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"in a list":                   {model: say("[" + form + "]"), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it never ends":               {model: say(`{"id":"ID","decision":"allow","reason":"` + strings.Repeat("fine ", 4000) + `"}`), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it was stopped":              {model: finished("length"), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it was filtered":             {model: finished("content_filter"), state: "unavailable", why: "The reviewer's answer could not be understood."},
		"it uses a tool": {model: func(ctx context.Context, r modeltest.Request) modeltest.Reply {
			reply := verdict("allow", "fine")(ctx, r)
			reply.Calls, reply.Finish = []modeltest.Call{modeltest.CallOf("allow", map[string]string{})}, "stop"
			return reply
		}, state: "unavailable", why: "The reviewer's answer could not be understood."},
	} {
		for _, background := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, background %v", name, background), func(t *testing.T) {
				t.Parallel()
				db := openBolt(t)
				c := fast(db)
				var seen steps
				seen.on(&c)
				switch {
				case test.nowhere:
					c.Reviewer = judge(t, "http://127.0.0.1:1/v1")
				case !test.none:
					c.Reviewer = judge(t, model(t, modeltest.Config{Script: test.model}).URL())
				}
				if test.state == "timeout" {
					c.ReviewTime = 50 * time.Millisecond
				}
				h, _ := host(t, c, "i1")
				g := gateway(t, c)
				q := command("go test ./...")
				q.Background = background
				a := ask(t.Context(), h, turn(under(policy.Auto, policy.Default)), q)
				want := "requested; " + test.state
				if background {
					if got := a.wait(t); got.Decision != runner.Denied || got.Source != runner.SourceReviewer || !strings.Contains(got.Reason, test.why) {
						t.Errorf("the answer is %+v", got)
					}
				} else {
					want += ", asked"
					r := card(t, g, 1)[0]
					if !test.none && (r.Review == nil || r.Review.State != test.state || r.Review.Reason != test.why) {
						t.Errorf("the card knows of the review %+v", r.Review)
					}
					decide(t, g, tap(r, ada, runner.ActionAllow))
					if got := a.wait(t); !got.Allows() || got.Source != runner.SourceUser {
						t.Errorf("the answer is %+v", got)
					}
				}
				if test.none { // nothing was requested, and where a person is asked there is nothing to tell
					want = map[bool]string{true: test.state}[background]
				}
				if got := seen.states(); got != want {
					t.Errorf("the steps are %q, want %q", got, want)
				}
			})
		}
	}
}

// finished ends a verdict with a reason other than that it was complete.
func finished(why string) modeltest.Script {
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		reply := verdict("allow", "fine")(ctx, r)
		reply.Finish = why
		return reply
	}
}

// TestAReviewersWordIsTold follows a yes and a no to everybody who has to know of it.
func TestAReviewersWordIsTold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		decision   string
		background bool
		steps      string
		audit      string
	}{
		"allowed":                   {decision: "allow", steps: "requested; approved", audit: "allowed reviewer"},
		"allowed in the background": {decision: "allow", background: true, steps: "requested; approved", audit: "allowed reviewer"},
		"denied":                    {decision: "deny", steps: "requested; denied, asked", audit: "denied user"},
		"denied in the background":  {decision: "deny", background: true, steps: "requested; denied", audit: "denied reviewer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openBolt(t)
			c := fast(db)
			var seen steps
			seen.on(&c)
			c.Reviewer = judge(t, model(t, modeltest.Config{Script: verdict(test.decision, "It is\nwhat was\u202e asked.")}).URL())
			h, _ := host(t, c, "i1")
			g := gateway(t, c)
			q := command("go test ./...")
			q.Background, q.Item, q.Title = test.background, "item-1", "Run the tests"
			a := ask(t.Context(), h, turn(under(policy.Auto, policy.Default)), q)
			const reason = "It is what was asked."
			if test.decision == "deny" && !test.background {
				r := card(t, g, 1)[0]
				if r.Review == nil || r.Review.State != runner.ReviewDenied || r.Review.Reason != reason || !r.Review.Asked {
					t.Errorf("the card knows of the review %+v", r.Review)
				}
				decide(t, g, tap(r, ada, runner.ActionDeny))
				if got := a.wait(t); got.Decision != runner.Denied || got.Source != runner.SourceUser {
					t.Errorf("the answer is %+v", got)
				}
			} else if got := a.wait(t); got.Allows() != (test.decision == "allow") || got.Source != runner.SourceReviewer || got.Reason != reason {
				t.Errorf("the answer is %+v", got)
			}
			if got := seen.states(); got != test.steps {
				t.Errorf("the steps are %q, want %q", got, test.steps)
			}
			if r := seen.last(); r.Item != "item-1" || r.Title != "Run the tests" || r.Reason != reason {
				t.Errorf("the last step is %+v", r)
			}
			if want := (runner.Usage{Input: 700, Cached: 500, Output: 30}); seen.cost != want {
				t.Errorf("it took %+v, want %+v", seen.cost, want)
			}
			lines, err := g.Audit(t.Context(), time.Time{}, 0)
			if err != nil || len(lines) != 1 {
				t.Fatalf("%d audit lines, %v", len(lines), err)
			}
			if l := lines[0]; string(l.Decision)+" "+string(l.Source) != test.audit || l.HasReason != (l.Source == runner.SourceReviewer) {
				t.Errorf("the audit line is %+v", l)
			}
			for _, line := range raw(t, db) {
				if strings.Contains(line, "what was") {
					t.Errorf("the audit line holds the model's words: %s", line)
				}
			}
		})
	}
}

// TestHumanOnlyStaysHuman asks a reviewer that allows everything about what only a person may decide, along with what it
// might: its model hears nothing of it, and a person decides, in the background too.
func TestHumanOnlyStaysHuman(t *testing.T) {
	t.Parallel()
	s := model(t, modeltest.Config{Script: verdict("allow", "fine")})
	db := openBolt(t)
	c := fast(db)
	c.Reviewer = judge(t, s.URL())
	h, _ := host(t, c, "i1")
	g := gateway(t, c)
	reviewed := []policy.Category{policy.Terminal, policy.Network, policy.Fetch, policy.ReadOutside}
	for _, never := range []policy.Category{policy.Credential, policy.Publish, policy.Payment, policy.Question, policy.Secret, policy.Protected, policy.System, policy.Delete, policy.Unknown} {
		for _, with := range reviewed {
			for _, background := range []bool{false, true} {
				q := tool("mcp__x", with, never)
				q.Background = background
				a := ask(t.Context(), h, turn(under(policy.Auto, policy.Default)), q)
				decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionDeny))
				if got := a.wait(t); got.Source != runner.SourceUser {
					t.Errorf("%s with %s, background %v: the answer is %+v", never, with, background, got)
				}
			}
		}
	}
	for _, line := range []string{"git push", "npm publish", "cat .env", "cd x && git push --force"} {
		a := ask(t.Context(), h, turn(under(policy.Auto, policy.Default)), command(line))
		decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionDeny))
		if got := a.wait(t); got.Source != runner.SourceUser {
			t.Errorf("%s: the answer is %+v", line, got)
		}
	}
	// The reviewer holds to it also when it is asked past the table.
	for _, never := range []policy.Category{policy.Credential, policy.Publish, policy.Payment, policy.Question, policy.Secret, policy.Delete} {
		v, err := judge(t, s.URL()).Review(t.Context(), approvals.ReviewRequest{
			Run: turn(under(policy.Auto, policy.Default)), Question: command("make"), Categories: []policy.Category{policy.Terminal, never},
			Policy: runner.Policy{Mode: policy.Auto, Interaction: policy.Default},
		})
		if err == nil || v.Decision == runner.Allowed {
			t.Errorf("%s: the reviewer says %+v, %v", never, v, err)
		}
	}
	for _, p := range []runner.Policy{{}, {Mode: policy.ApprovalRequired, Interaction: policy.Default}, {Mode: policy.Auto, Interaction: policy.Plan}, {Mode: policy.FullAccess, Interaction: policy.Default}} {
		v, err := judge(t, s.URL()).Review(t.Context(), approvals.ReviewRequest{
			Run: turn(under(policy.Auto, policy.Default)), Question: command("make"), Categories: []policy.Category{policy.Terminal}, Policy: p,
		})
		if err == nil || v.Decision == runner.Allowed {
			t.Errorf("under %+v the reviewer says %+v, %v", p, v, err)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("the model was asked %d times: %+v", n, s.Requests()[0])
	}
}

// TestAReviewThatIsNotRecordedCountsForNothing loses the commit of each step: nobody learns of the review, so nothing may
// come of it.
func TestAReviewThatIsNotRecordedCountsForNothing(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{runner.ReviewRequested, runner.ReviewApproved} {
		for _, background := range []bool{false, true} {
			db := openBolt(t)
			c := fast(db)
			c.Reviewer = reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed}}
			c.Reviewed = func(_ *store.Txn, _ approvals.Run, r runner.Review) error {
				if r.State == lost {
					return store.ErrUnavailable
				}
				return nil
			}
			h, _ := host(t, c, "i1")
			g := gateway(t, c)
			q := command("make")
			q.Background = background
			a := ask(t.Context(), h, turn(under(policy.Auto, policy.Default)), q)
			if !background {
				decide(t, g, tap(card(t, g, 1)[0], ada, runner.ActionDeny))
			}
			if got := a.wait(t); got.Allows() {
				t.Errorf("%s lost, background %v: the answer is %+v", lost, background, got)
			}
		}
	}
}

// counting is a reviewer that takes a minute of patience and notes how many are asked of it at once.
type counting struct {
	takes time.Duration

	mu        sync.Mutex
	now, most map[string]int
}

func (c *counting) Review(ctx context.Context, r approvals.ReviewRequest) (approvals.ReviewVerdict, error) {
	c.mu.Lock()
	c.now[r.Run.Session]++
	c.most[r.Run.Session] = max(c.most[r.Run.Session], c.now[r.Run.Session])
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now[r.Run.Session]--
		c.mu.Unlock()
	}()
	select {
	case <-time.After(c.takes):
		return approvals.ReviewVerdict{Decision: runner.Allowed}, nil
	case <-ctx.Done():
		return approvals.ReviewVerdict{}, context.Cause(ctx)
	}
}

// TestReviewsOfASessionAreBounded asks for many at once, in two sessions: each has two at a time, and neither waits for the
// other.
func TestReviewsOfASessionAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		c := slow(db)
		who := &counting{takes: 2 * time.Second, now: map[string]int{}, most: map[string]int{}}
		c.Reviewer = who
		h, _ := host(t, c, "i1")
		begin := time.Now()
		var all []*asked
		for i := range 6 {
			for _, session := range []string{"s1", "s2"} {
				run := turn(under(policy.Auto, policy.Default))
				run.Session = session
				all = append(all, ask(t.Context(), h, run, command(fmt.Sprintf("make %d", i))))
			}
		}
		for _, a := range all {
			if got := a.wait(t); got.Source != runner.SourceReviewer || !got.Allows() {
				t.Errorf("the answer is %+v", got)
			}
		}
		if took := time.Since(begin); took != 6*time.Second {
			t.Errorf("six reviews of 2 s, two at a time, took %s", took)
		}
		if who.most["s1"] != 2 || who.most["s2"] != 2 {
			t.Errorf("at the same time there were %v", who.most)
		}
	})
}

// TestASlowReviewerHandsOverInTime asks three at once of a reviewer that never answers: after twenty seconds all three are
// with a person, the one too that had to wait for its place.
func TestASlowReviewerHandsOverInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openBolt(t)
		c := slow(db)
		var seen steps
		seen.on(&c)
		c.Reviewer = reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed}, hang: true}
		h, _ := host(t, c, "i1")
		g := gateway(t, c)
		var all []*asked
		for i := range 3 {
			all = append(all, ask(t.Context(), h, turn(under(policy.Auto, policy.Default)), command(fmt.Sprintf("make %d", i))))
		}
		time.Sleep(19 * time.Second)
		synctest.Wait()
		if rs, err := g.Pending(t.Context(), ""); err != nil || len(rs) != 0 {
			t.Errorf("before the time is over %d wait for a person, %v", len(rs), err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		rs, err := g.Pending(t.Context(), "")
		if err != nil || len(rs) != 3 {
			t.Fatalf("after 20 s %d wait for a person, %v", len(rs), err)
		}
		for _, r := range rs {
			if r.Review == nil || r.Review.State != runner.ReviewTimeout {
				t.Errorf("the card knows of the review %+v", r.Review)
			}
			decide(t, g, tap(r, ada, runner.ActionDeny))
		}
		for _, a := range all {
			if got := a.wait(t); got.Source != runner.SourceUser {
				t.Errorf("the answer is %+v", got)
			}
		}
		if got := strings.Count(seen.states(), "timeout, asked"); got != 3 {
			t.Errorf("the steps are %q", seen.states())
		}
	})
}

// TestAStopEndsAReview ends the turn while the reviewer thinks: the question is withdrawn and no card is left.
func TestAStopEndsAReview(t *testing.T) {
	t.Parallel()
	db := openBolt(t)
	c := fast(db)
	began := make(chan struct{})
	c.Reviewer = reviewer{verdict: approvals.ReviewVerdict{Decision: runner.Allowed}, hang: true, before: sync.OnceFunc(func() { close(began) })}
	h, _ := host(t, c, "i1")
	g := gateway(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	a := ask(ctx, h, turn(under(policy.Auto, policy.Default)), command("make"))
	<-began
	cancel()
	if got := a.wait(t); got.Decision != runner.Withdrawn {
		t.Errorf("the answer is %+v", got)
	}
	card(t, g, 0)
}

// TestAReviewerHasNoToolsAndNoMemory looks at what is sent: two messages, no tools, a fresh id each time, and the key
// nowhere in it.
func TestAReviewerHasNoToolsAndNoMemory(t *testing.T) {
	t.Parallel()
	s := model(t, modeltest.Config{Script: verdict("allow", "fine"), Models: []string{"small-1"}, Key: "reviewers-key"})
	c := fast(openBolt(t))
	c.Reviewer = judge(t, s.URL())
	h, _ := host(t, c, "i1")
	run := turn(under(policy.Auto, policy.Default))
	run.Request = "Please run the tests."
	var ids []string
	for range 3 {
		if got := ask(t.Context(), h, run, command("go test ./...")).wait(t); !got.Allows() {
			t.Fatalf("the answer is %+v", got)
		}
	}
	for _, r := range s.Requests() {
		if len(r.Tools) != 0 || len(r.Messages) != 2 || r.Messages[0].Role != "system" || r.Messages[1].Role != "user" {
			t.Errorf("the request is %+v", r)
		}
		want := "<facts>\n" + `{"kind":"command","categories":["terminal"],"background":false,"folder":".","command":"go test ./...","request":"Please run the tests."}` + "\n</facts>"
		if r.Messages[1].Content != want {
			t.Errorf("the model is shown\n%s\nwant\n%s", r.Messages[1].Content, want)
		}
		ids = append(ids, askedID(r))
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 3 || len(ids[0]) < 20 {
		t.Errorf("the ids are %q", ids)
	}
}
