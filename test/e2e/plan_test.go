package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// planHands are the tool calls of the native runtime, with those that a chat which plans needs.
func planHands() modeltest.Hands {
	h := hands()
	h.Questions = func(list []modeltest.Asked) modeltest.Call {
		var questions []any
		for _, q := range list {
			options := []any{}
			for _, o := range q.Options {
				options = append(options, map[string]any{"label": o, "description": "that is " + o})
			}
			questions = append(questions, map[string]any{"id": q.ID, "question": q.Text, "options": options})
		}
		return modeltest.CallOf("ask_user", map[string]any{"questions": questions})
	}
	h.Plan = func(plan string) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("submit_plan", map[string]any{"plan": plan})}}
	}
	return h
}

// seenCard is a card as a person sees it, without what differs from one run to the next.
func (w *world) seenCard(m message) string {
	text := until.ReplaceAllString(strings.ReplaceAll(m.Text, w.project, "/shop"), "$1 …")
	return text + "\n[" + strings.Join(m.labels(), "] [") + "]"
}

var until = regexp.MustCompile(`(Answer by) .*`)

// The cards of planStory, in their order: the same for each agent.
const (
	cardAsked = `A question for you
Question 1 of 2:
Which color?
• red – that is red
• green – that is green
Reply to this message to answer in your own words.

Folder: /shop
Mode: approval-required, plan · Answer by …
[red] [green] [Don't answer]`
	cardFirst = `Carry out this plan?
Füße 世界

1. look
2. do it

func main() {}

Reply to this message to have it changed. Or reply with the plan as you want it, as a text file.
Folder: /shop
Mode: approval-required, plan · Answer by …
[Implement] [Reject]`
	cardSecond = `Carry out this plan?
The second plan

write done.txt words

That is all.

Reply to this message to have it changed. Or reply with the plan as you want it, as a text file.
Folder: /shop
Mode: approval-required, plan · Answer by …
[Implement] [Reject]`
)

// planStory takes an agent through a question, a plan, a revision, and its implementation. The prompts, and the plan that
// is implemented, are lines that the scripted model follows.
func planStory(w *world, agent string) {
	t := w.t
	t.Helper()
	p := w.start("serve")
	me := w.private(ada)
	me.hears(me.say("/plan"), "only plans now")
	prompt := me.say("run touch too-early\n" +
		`questions [{"id":"color","text":"Which color?","options":["red","green"]},{"id":"size","text":"Which size?","options":["small","large"]}]` + "\n" +
		`plan # Füße 世界\n\n1. look\n2. **do** it\n\n` + "```" + `go\nfunc main() {}\n` + "```")
	var cards []string
	see := func(m message) message {
		cards = append(cards, w.seenCard(m))
		return m
	}
	asked := see(me.expect(prompt, "a question", func(m message) bool { return m.has("green") }))
	me.tap(asked.ID, "green")
	me.expect(prompt, "the second question", func(m message) bool { return m.ID == asked.ID && m.has("large") })
	me.say("a size of my own", map[string]any{"reply_to": asked.ID})
	me.turns(asked.ID, "a size of my own")

	first := see(me.expect(asked.ID, "a plan", func(m message) bool { return m.has("Implement") }))
	w.holds("too-early", "")
	me.say(`plan # The second plan\n\nwrite done.txt words\n\nThat is **all**.`, map[string]any{"reply_to": first.ID})
	second := see(me.expect(first.ID, "the revised plan", func(m message) bool { return m.has("Implement") && strings.Contains(m.Text, "second") }))
	w.holds("done.txt", "")
	me.turns(first.ID, "Revise")
	me.tap(second.ID, "Implement")
	me.hears(second.ID, "this chat has left planning")
	change := me.card(second.ID, "done.txt")
	w.holds("done.txt", "")
	me.tap(change.ID, "Allow")
	w.comes("done.txt", "words\n")
	me.expect(second.ID, "the end of the turn", func(m message) bool { return strings.HasPrefix(m.Text, "Done in") })
	w.holds("too-early", "")
	said := me.bots(0)
	p.stop()

	for i, want := range []string{cardAsked, cardFirst, cardSecond} {
		if cards[i] != want {
			t.Errorf("card %d of %s is\n%s\nwant\n%s", i+1, agent, cards[i], want)
		}
	}
	for _, m := range said {
		if strings.Contains(m.Text, "Füße") && m.ID != first.ID {
			t.Errorf("the plan is repeated:\n%s", m.Text)
		}
	}
}

// TestPlanIsRevisedAndImplemented: through everything, a plan is read, sent back, read again and implemented, and nothing is
// changed before that.
func TestPlanIsRevisedAndImplemented(t *testing.T) {
	t.Parallel()
	planStory(newWorld(t, on{model: modeltest.Follow(planHands())}), "native")
}
