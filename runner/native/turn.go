package native

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/chatapi"
	"drawbridge/runner"
)

const (
	// maxStrikes is how many nonsensical answers in a row end a turn.
	maxStrikes = 3
	// maxCuts is how often an answer that was cut in the middle is asked for again.
	maxCuts = 3
	// maxScale bounds how far an endpoint's count may correct ours: no tokenizer makes twice as many tokens of a text.
	maxScale = 2
)

// turn is one prompt and all that is done about it.
type turn struct {
	session      *session
	conversation *conversation
	id           string
	model        string
	items        int
	usage        runner.Usage
	strikes      int
	planning     bool   // the chat planned when the model was asked last, so that it was told so
	submitted    string // the plan with which the turn ends
}

// run lets the model answer and use tools until it is done.
func (t *turn) run(ctx context.Context) (runner.Result, error) {
	for range t.session.runtime.config.MaxSteps {
		reply, err := t.ask(ctx)
		if ctx.Err() != nil {
			return t.interrupted(reply)
		}
		if failure, ok := errors.AsType[*chatapi.Error](err); ok {
			t.session.logger.Warn("model request failed", "runtime", t.session.runtime.config.Name, "kind", failure.Kind, "status", failure.Status)
			return t.broken(failure.Advice())
		} else if err != nil {
			return runner.Result{}, err
		}
		done, res, err := t.answer(ctx, reply)
		if done || err != nil {
			return res, err
		}
	}
	return t.broken(fmt.Sprintf("The turn took %d steps, which is the limit. Send a prompt to go on.", t.session.runtime.config.MaxSteps))
}

// answer takes one answer of the model. done says that the turn ends with the result.
func (t *turn) answer(ctx context.Context, reply chatapi.Reply) (done bool, res runner.Result, err error) {
	m := t.clean(reply.Message)
	switch {
	case len(m.ToolCalls) > 0:
		if err := t.conversation.add(m); err != nil {
			return true, res, err
		}
		return t.callAll(ctx, reply.Message.ToolCalls, m.ToolCalls)
	case reply.Finish == "content_filter":
		res, err = t.broken("The model's endpoint stopped the answer with its content filter.")
		return true, res, err
	case m.Content == "":
		if t.strikes++; t.strikes < maxStrikes {
			return false, res, nil
		}
		res, err = t.broken(fmt.Sprintf("The model answered nothing %d times in a row.", maxStrikes))
		return true, res, err
	}
	if err := t.conversation.add(m); err != nil {
		return true, res, err
	}
	if reply.Finish == "length" {
		t.notice("The answer reached the model's output limit and ends there.")
	}
	res = runner.Result{Outcome: runner.Completed, Usage: t.usage}
	if t.planning {
		res.Plan = proposed(m.Content)
	}
	return true, res, nil
}

// callAll carries out the calls of one answer, in their order. raw are they as they came, kept as they are in the
// conversation.
func (t *turn) callAll(ctx context.Context, raw, kept []chatapi.ToolCall) (done bool, res runner.Result, err error) {
	for i, call := range raw {
		result, bad := t.call(ctx, call)
		if bad {
			t.strikes++
		} else {
			t.strikes = 0
		}
		if err := t.conversation.add(chatapi.Message{Role: chatapi.ToolRole, ToolCallID: kept[i].ID, Content: result}); err != nil {
			return true, res, err
		}
		if ctx.Err() == nil && t.strikes < maxStrikes && t.submitted == "" {
			continue
		}
		for _, rest := range kept[i+1:] {
			m := chatapi.Message{Role: chatapi.ToolRole, ToolCallID: rest.ID, Content: "Not run: the turn ended before this call."}
			if err := t.conversation.add(m); err != nil {
				return true, res, err
			}
		}
		switch {
		case t.submitted != "":
			res, err = t.handOver()
		case ctx.Err() != nil:
			res, err = t.interrupted(chatapi.Reply{})
		default:
			res, err = t.broken(fmt.Sprintf("The model made %d tool calls in a row that cannot be understood. The last: %s", maxStrikes, firstLine(result)))
		}
		return true, res, err
	}
	return false, res, nil
}

// interrupted ends the turn with what was said so far.
func (t *turn) interrupted(reply chatapi.Reply) (runner.Result, error) {
	if reply.Message.Content != "" {
		m := chatapi.Message{Role: chatapi.Assistant, Content: reply.Message.Content}
		if err := t.conversation.add(m); err != nil {
			return runner.Result{}, err
		}
	}
	if err := t.conversation.close("The user interrupted the turn."); err != nil {
		return runner.Result{}, err
	}
	return runner.Result{Outcome: runner.Interrupted, Usage: t.usage}, nil
}

// broken ends the turn as failed; reason is for people.
func (t *turn) broken(reason string) (runner.Result, error) {
	if err := t.conversation.close("The turn ended with a failure: " + reason); err != nil {
		return runner.Result{}, err
	}
	return runner.Result{Outcome: runner.Broken, Reason: reason, Usage: t.usage}, nil
}

// ask sends the conversation and streams the answer. An answer that was cut in the middle is asked for again, and so is
// one for a conversation that is too long, after it was made shorter.
func (t *turn) ask(ctx context.Context) (chatapi.Reply, error) {
	t.planning = t.session.planning()
	if err := t.makeRoom(compactAt, compactTo); err != nil {
		return chatapi.Reply{}, err
	}
	for cuts := 1; ; cuts++ {
		view := t.conversation.view(t.session.runtime.config.SendReasoning)
		prompt := append([]chatapi.Message{{Role: chatapi.System, Content: t.session.prompt(t.planning)}}, view...)
		s := &streamed{turn: t}
		reply, err := t.session.runtime.api.Complete(ctx, chatapi.Request{
			Model: t.model, Messages: prompt, Tools: definitions(t.planning),
		}, chatapi.Watch{Text: s.text, Reasoning: s.reasoning, Retry: t.retried})
		s.end(err == nil || ctx.Err() != nil)
		if err == nil {
			t.count(reply.Usage, estimate(prompt)+toolTokens(t.planning))
			return reply, nil
		}
		var e *chatapi.Error
		if ctx.Err() != nil || !errors.As(err, &e) || cuts >= maxCuts {
			return reply, err
		}
		switch {
		case e.Kind == chatapi.TooLong:
			shorter, err2 := t.conversation.compact(t.measure(view)/2, t.measure)
			if err2 != nil || !shorter {
				return reply, errors.Join(err, err2)
			}
			t.notice("The conversation is too long for the model; older parts of it are left out.")
		case e.Temporary() && !reply.Empty():
			t.notice("The model's answer was cut off; it is asked again.")
		default:
			return reply, err
		}
	}
}

// makeRoom compacts when more than at of the window is used, down to the part to of it.
func (t *turn) makeRoom(at, to float64) error {
	window := float64(t.session.runtime.config.Window)
	if float64(t.measure(t.conversation.view(false))) <= at*window {
		return nil
	}
	shorter, err := t.conversation.compact(int64(to*window), t.measure)
	if shorter {
		t.notice("The conversation fills the model's context; older parts of it are left out.")
	}
	return err
}

// measure is estimate, corrected by what the endpoint counted, with the prompt and the tools.
func (t *turn) measure(m []chatapi.Message) int64 {
	n := float64(estimate(m) + estimate([]chatapi.Message{{Content: t.session.prompt(t.planning)}}) + toolTokens(t.planning))
	return int64(n * max(1, t.session.scale))
}

// count adds up what an answer used.
func (t *turn) count(u chatapi.Usage, estimated int64) {
	if u.Input > 0 && estimated > 0 {
		t.session.scale = min(maxScale, float64(u.Input)/float64(estimated))
	}
	t.usage.Input += u.Input
	t.usage.Cached += u.Cached
	t.usage.Output += u.Output
	t.usage.Context, t.usage.Window = u.Input+u.Output, t.session.runtime.config.Window
	usage := t.usage
	t.emit(runner.Event{Kind: runner.UsageUpdated, Usage: &usage})
}

func (t *turn) retried(attempt int, wait time.Duration, why *chatapi.Error) {
	// What it says, and what to do about it, is told at the end, once, if no attempt helps.
	what, _, _ := strings.Cut(why.Advice(), ". ")
	t.notice(fmt.Sprintf("%s. Attempt %d follows in %d s.", strings.TrimSuffix(what, "."), attempt+1, int(max(wait.Round(time.Second), time.Second).Seconds())))
}

func (t *turn) notice(text string) { t.emit(runner.Event{Kind: runner.Notice, Text: text}) }

func (t *turn) emit(e runner.Event) {
	e.Turn = t.id
	t.session.emit(e)
}

func (t *turn) item() string {
	t.items++
	return t.id + "-" + strconv.Itoa(t.items)
}

var sendable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// clean makes an answer one that can be sent back to any endpoint: each call has an id of its own, a name of the allowed
// form, and arguments that are an object. What the model really wrote stands in the call's result, as an error.
func (t *turn) clean(m chatapi.Message) chatapi.Message {
	calls := make([]chatapi.ToolCall, len(m.ToolCalls))
	seen := make(map[string]bool)
	for i, c := range m.ToolCalls {
		if c.ID == "" || seen[c.ID] {
			c.ID = fmt.Sprintf("call_%d_%d", len(t.conversation.messages), i+1)
		}
		seen[c.ID] = true
		if !sendable.MatchString(c.Name) {
			c.Name = "invalid_name"
		}
		if _, err := object(c.Arguments); err != nil {
			c.Arguments = "{}"
		}
		calls[i] = c
	}
	m.ToolCalls = calls
	return m
}

// streamed turns what a model says into items: one at a time, in the order in which they begin.
type streamed struct {
	turn *turn
	item *runner.Item
	said strings.Builder
}

func (s *streamed) text(delta string)      { s.add(runner.ItemMessage, delta) }
func (s *streamed) reasoning(delta string) { s.add(runner.ItemReasoning, delta) }

func (s *streamed) add(kind runner.ItemKind, delta string) {
	if s.item != nil && s.item.Kind != kind {
		s.end(true)
	}
	if s.item == nil {
		s.item = &runner.Item{ID: s.turn.item(), Kind: kind}
		s.turn.emit(runner.Event{Kind: runner.ItemStarted, Item: &runner.Item{ID: s.item.ID, Kind: kind, Status: runner.ItemRunning}})
	}
	s.said.WriteString(delta)
	s.turn.emit(runner.Event{Kind: runner.ContentDelta, Item: &runner.Item{ID: s.item.ID, Kind: kind, Text: delta}})
}

// end completes the item that is being said, if there is one.
func (s *streamed) end(whole bool) {
	if s.item == nil {
		return
	}
	i := s.item
	i.Text = s.said.String()
	s.said.Reset()
	s.item = nil
	i.Status = runner.ItemDone
	if !whole {
		i.Status = runner.ItemFailed
	}
	s.turn.emit(runner.Event{Kind: runner.ItemCompleted, Item: i})
}
