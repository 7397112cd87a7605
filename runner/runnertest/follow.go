package runnertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drawbridge/policy"
	"drawbridge/runner"
)

// Follow is the script that understands its prompt, a line at a time:
//
//	say TEXT               says it
//	long N                 says N characters
//	run COMMAND            asks and runs it in the folder; the output stands in the item
//	together A || B || …   runs the commands at the same time, so that their questions are open at the same time
//	background COMMAND     asks and starts it; it ends with the session
//	tool NAME PATH         asks and calls a tool of ToolServer
//	write PATH TEXT        asks and writes TEXT and a newline to the file
//	read PATH              asks and reads the file, and says what it holds
//	ask QUESTION|A|B       asks a person, and says the answer; without options the person answers in their own words
//	questions JSON         asks a person a list of them, as modeltest.Asked has it, and says the answers
//	propose JSON           proposes a task, with the arguments of runner.ProposeTool, and says what came of it
//	plan TEXT              shows a plan, in which \n begins a new line, and says what was decided
//	sleep DURATION         waits
//	notice TEXT            tells a notice
//	turns                  says how many turns the session has had
//	policy                 says the mode and the interaction
//	fail REASON            ends the turn as failed
//	crash                  ends it with an error
//
// A refused action is said, with what the gate told, and the script goes on. Any other line is said back.
func Follow(ctx context.Context, s *Scripted, in runner.Input) (runner.Result, error) {
	for line := range strings.Lines(in.Text) {
		line = strings.TrimSpace(line)
		if ctx.Err() != nil {
			break
		}
		if line == "" {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch word {
		case "fail":
			return runner.Result{Outcome: runner.Broken, Reason: rest}, nil
		case "crash":
			return runner.Result{}, fmt.Errorf("the script crashed as told %s", rest)
		}
		s.follow(word, rest, line)
	}
	return runner.Result{Outcome: runner.Completed, Usage: runner.Usage{Input: int64(len(in.Text)), Window: 100_000}}, nil
}

// follow does one line that goes on.
func (s *Scripted) follow(word, rest, line string) {
	switch word {
	case "say":
		s.Say(rest)
	case "long":
		n, err := strconv.Atoi(rest)
		if err != nil {
			s.Say("long needs a number, not " + rest)
			return
		}
		s.Say(strings.Repeat("All work and no play. ", n/22+1)[:max(0, n)])
	case "run":
		s.told(s.Run(rest))
	case "together":
		var running sync.WaitGroup
		for c := range strings.SplitSeq(rest, "||") {
			running.Go(func() { s.told(s.Run(strings.TrimSpace(c))) })
		}
		running.Wait()
	case "background":
		s.told(s.Background(rest))
	case "tool":
		name, path, _ := strings.Cut(rest, " ")
		s.told(s.Tool(name, path))
	case "write":
		path, text, _ := strings.Cut(rest, " ")
		s.told(s.Edit(path, text+"\n"))
	case "read":
		text, a := s.Read(rest)
		if a.Allows() {
			s.Say(text)
		}
		s.told(a)
	case "ask":
		s.question(rest)
	case "questions":
		s.questions(rest)
	case "propose":
		s.Say(s.Propose(rest))
	case "plan":
		a := s.Ask(runner.Question{
			Kind: runner.KindPlan, Title: "Plan", Plan: strings.ReplaceAll(rest, `\n`, "\n"), Categories: []policy.Category{policy.Question},
			Actions: []runner.Action{
				{ID: "implement", Label: "Implement", Style: runner.StyleSuccess, Allows: true},
				{ID: "keep-planning", Label: "Keep planning"},
			},
		})
		s.Say("The plan: " + string(a.Decision) + " " + a.Action)
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.Say("sleep needs a duration, not " + rest)
			return
		}
		s.pause(d)
	case "notice":
		s.Emit(runner.Event{Kind: runner.Notice, Text: rest})
	case "turns":
		s.Say(fmt.Sprintf("This is turn %d.", s.Turns()))
	case "policy":
		p := s.Policy()
		s.Say(fmt.Sprintf("The mode is %s, the interaction %s.", p.Mode, p.Interaction))
	default:
		s.Say(line)
	}
}

// told says a refusal.
func (s *Scripted) told(a runner.Answer) {
	if !a.Allows() && s.context.Err() == nil {
		s.Say(a.Describe())
	}
}

func (s *Scripted) question(line string) {
	parts := strings.Split(line, "|")
	q := runner.Query{ID: "q", Text: strings.TrimSpace(parts[0]), Free: len(parts) == 1}
	for _, o := range parts[1:] {
		q.Options = append(q.Options, runner.Option{Label: strings.TrimSpace(o)})
	}
	a := s.Ask(runner.Question{
		Kind: runner.KindQuestion, Title: q.Text, Queries: []runner.Query{q}, Categories: []policy.Category{policy.Question},
	})
	if !a.Allows() {
		s.told(a)
		return
	}
	s.Say("The answer: " + strings.Join(a.Answers["q"], ", "))
}

// questions asks several things at once. If one of them is secret, what it says of the answers is written backwards.
func (s *Scripted) questions(line string) {
	var list []query
	if err := json.Unmarshal([]byte(line), &list); err != nil || len(list) == 0 {
		s.Say("questions needs a list of them, not " + line)
		return
	}
	q := runner.Question{Kind: runner.KindQuestion, Title: list[0].Text, Categories: []policy.Category{policy.Question}}
	secret := false
	for _, one := range list {
		asked := runner.Query{ID: one.ID, Text: one.Text, Multiple: one.Multiple, Free: true, Secret: one.Secret}
		for _, o := range one.Options {
			asked.Options = append(asked.Options, runner.Option{Label: o})
		}
		q.Queries, secret = append(q.Queries, asked), secret || one.Secret
	}
	a := s.Ask(q)
	if !a.Allows() {
		s.told(a)
		return
	}
	var said []string
	for _, one := range list {
		said = append(said, one.ID+": "+strings.Join(a.Answers[one.ID], ", "))
	}
	letters := []rune(strings.Join(said, "\n"))
	if secret {
		slices.Reverse(letters)
	}
	s.Say(string(letters))
}
