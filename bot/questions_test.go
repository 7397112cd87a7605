package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/runnertest"
)

// asking is an agent that asks a question and says what it was answered.
func asking(queries ...runner.Query) runnertest.TurnFunc {
	return func(ctx context.Context, s *runnertest.Scripted, _ runner.Input) (runner.Result, error) {
		a := s.Ask(runner.Question{Kind: runner.KindQuestion, Title: "Questions", Queries: queries, Categories: []policy.Category{policy.Question}})
		var b strings.Builder
		for _, q := range queries {
			fmt.Fprintf(&b, "%s=%q ", q.ID, a.Answers[q.ID])
		}
		s.Say("It heard: " + string(a.Decision) + " " + strings.ReplaceAll(b.String(), "_", "-"))
		return runner.Result{Outcome: runner.Completed}, ctx.Err()
	}
}

func options(labels ...string) []runner.Option {
	var out []runner.Option
	for _, l := range labels {
		out = append(out, runner.Option{Label: l})
	}
	return out
}

func TestAQuestionIsAnsweredByATap(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: asking(runner.Query{ID: "q", Text: "Which one?", Options: options("Left", "Right")})})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "A question for you", "Which one?")
	if strings.Contains(card.Text, textReplyAnswer) || !card.has(textNotAnswer) {
		t.Errorf("the card is\n%s\n%q", card.Text, card.labels())
	}
	k.reads(ada, k.reply(ada, ada, card.ID, "Up"), "not one of the answers")
	if got := k.tap(ada, ada, card.ID, "Right"); got.Text != textAnswered {
		t.Errorf("the answer was answered with %+v", got)
	}
	k.becomes(ada, card.ID, "Answered by Ada\n", "→ Right")
	k.reads(ada, p, `It heard: allowed q=["Right"]`)
	k.idle()
}

func TestAQuestionIsAnsweredInOwnWords(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: asking(runner.Query{ID: "q", Text: "What is its name?"})})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "What is its name?", textReplyAnswer)
	k.reads(ada, k.reply(ada, ada, card.ID, "Call it Bridge, please"), textAnswered)
	k.becomes(ada, card.ID, "Answered by Ada\n", "→ Call it Bridge, please")
	k.reads(ada, p, `It heard: allowed q=["Call it Bridge, please"]`)
	k.idle()

	p = k.say(ada, ada, "go")
	card = k.reads(ada, p, "What is its name?")
	if got := k.tap(ada, ada, card.ID, textNotAnswer); got.Text != tapNotAnswered {
		t.Errorf("not to answer was answered with %+v", got)
	}
	k.becomes(ada, card.ID, "Not answered: declined by Ada")
	k.reads(ada, p, "It heard: denied")
	k.idle()
}

func TestAReplyMayNameAnOption(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: asking(runner.Query{ID: "q", Text: "Which one?", Options: options("Left", "Right")})})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "Which one?")
	k.reads(ada, k.reply(ada, ada, card.ID, " right"), textAnswered)
	k.reads(ada, p, `It heard: allowed q=["Right"]`)
	k.idle()
}

// TestSeveralQuestionsAreAskedOneAfterTheOther on one card, and decided with the last answer.
func TestSeveralQuestionsAreAskedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: asking(
		runner.Query{ID: "a", Text: "Which database?", Options: options("Postgres", "SQLite")},
		runner.Query{ID: "b", Text: "Which checks?", Options: options("Vet", "Race", "Fuzz"), Multiple: true},
		runner.Query{ID: "c", Text: "What is its name?", Free: true},
	)})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "Question 1 of 3:", "Which database?")
	if strings.Contains(card.Text, "Which checks?") {
		t.Errorf("the card asks everything at once:\n%s", card.Text)
	}
	old := k.data(ada, card.ID, "SQLite")
	if got := k.tap(ada, ada, card.ID, "Postgres"); got.Text != tapNext {
		t.Errorf("the first answer was answered with %+v", got)
	}
	until(t, "the second question", func() bool { return k.message(ada, card.ID).has("☐ Race") })
	if n := k.redelivered(ada, ada, card.ID, old); n.text != textAnsweredBefore {
		t.Errorf("a second answer to the first question was answered with %+v", n)
	}
	if m := k.message(ada, card.ID); !holds(m.Text, "→ Postgres", "Question 2 of 3:", "Which checks?") || m.has(textPicked) {
		t.Errorf("the second question is\n%s\n%q", m.Text, m.labels())
	}
	for _, step := range []struct{ tap, then string }{{"☐ Vet", "☑ Vet"}, {"☐ Race", "☑ Race"}, {"☐ Fuzz", "☑ Fuzz"}, {"☑ Vet", "☐ Vet"}} {
		k.tap(ada, ada, card.ID, step.tap)
		until(t, step.then, func() bool { return k.message(ada, card.ID).has(step.then) })
	}
	k.tap(ada, ada, card.ID, textPicked)
	until(t, "the third question", func() bool { return holds(k.message(ada, card.ID).Text, "→ Race, Fuzz", "Question 3 of 3:") })
	// It can be posted again in the middle of it.
	k.say(ada, ada, "/pending")
	k.becomes(ada, card.ID, textMoved)
	again := k.reads(ada, card.ID, "→ Postgres", "Question 3 of 3:")
	k.reads(ada, k.reply(ada, ada, again.ID, "Bridge"), textAnswered)
	k.becomes(ada, again.ID, "Answered by Ada\n", "→ Postgres", "→ Race, Fuzz", "→ Bridge")
	k.reads(ada, p, `It heard: allowed a=["Postgres"] b=["Race" "Fuzz"] c=["Bridge"]`)
	k.idle()
}

// TestASecretAnswerStaysNowhere in the chat.
func TestASecretAnswerStaysNowhere(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{turn: asking(
		runner.Query{ID: "s", Text: "The password?", Secret: true, Free: true}, runner.Query{ID: "b", Text: "Sure?", Options: options("Yes")},
	)})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "The password?")
	reply := k.reply(ada, ada, card.ID, "hunter2")
	until(t, "the second question", func() bool { return k.message(ada, card.ID).has("Yes") })
	k.tap(ada, ada, card.ID, "Yes")
	m := k.becomes(ada, card.ID, "Answered by Ada")
	k.reads(ada, p, "It heard: allowed")
	k.idle()
	if strings.Contains(m.Text, "hunter2") {
		t.Errorf("the closed card says\n%s", m.Text)
	}
	for _, it := range k.items(meaningsIndex) {
		if _, docs, err := k.db.Read(t.Context(), it.Member); err != nil || strings.Contains(string(docs[0].Value), "hunter2") {
			t.Errorf("%s still holds the secret (%v)", it.Member, err)
		}
	}
	var all []seen
	k.sim("GET", "chats/1001/messages", nil, &all)
	for _, m := range all {
		if m.ID == reply && !m.Deleted {
			t.Error("the message with the secret still stands in the chat")
		}
	}
}

func TestAPlansButtonsAreTheAgents(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	for _, label := range []string{"Implement", "Keep planning"} {
		p := k.say(ada, ada, "plan 1. Read the parser")
		card := k.reads(ada, p, "Carry out this plan?", "1. Read the parser")
		if got := k.tap(ada, ada, card.ID, label); got.Text != label {
			t.Errorf("%s was answered with %+v", label, got)
		}
		k.becomes(ada, card.ID, "“"+label+"” chosen by Ada")
		k.idle()
	}
}
