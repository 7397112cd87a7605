package bot

import (
	"strings"
	"testing"

	"drawbridge/runner"
)

// TestAFormIsFilledIn field by field; what is wrong with an answer is said, and the question stays open.
func TestAFormIsFilledIn(t *testing.T) {
	t.Parallel()
	one, two, ten := 1.0, 2.0, 10.0
	k := newTalk(t, talkOptions{turn: asking(
		runner.Query{ID: "count", Text: "How many?", Free: true, Form: &runner.Form{Integer: true, Min: &one, Max: &ten}},
		runner.Query{ID: "mail", Text: "Whose?", Free: true, Form: &runner.Form{Format: runner.FormatEmail, Optional: true}},
		runner.Query{ID: "tags", Text: "Which?", Options: options("A", "B", "C"), Multiple: true, Form: &runner.Form{Min: &two, Max: &two}},
		runner.Query{ID: "color", Text: "Which color?", Options: options("red", "green"), Form: &runner.Form{Optional: true}},
	)})
	p := k.say(ada, ada, "go")
	card := k.reads(ada, p, "How many?", "The answer is a whole number from 1 to 10.")
	for words, want := range map[string]string{"many": "a whole number from 1 to 10", "1.5": "a whole number", "11": "from 1 to 10"} {
		k.reads(ada, k.reply(ada, ada, card.ID, words), "This has to be", want)
	}
	k.reads(ada, k.reply(ada, ada, card.ID, " 7 "), tapNext)

	until(t, "the second field", func() bool { return k.message(ada, card.ID).has(textSkip) })
	if text := k.message(ada, card.ID).Text; !strings.Contains(text, "The answer is an email address. "+textOptional) {
		t.Errorf("the card is\n%s", text)
	}
	k.reads(ada, k.reply(ada, ada, card.ID, "ada"), "This has to be an email address")
	k.tap(ada, ada, card.ID, textSkip)

	until(t, "the third field", func() bool { return k.message(ada, card.ID).has("☐ A") })
	k.tap(ada, ada, card.ID, "☐ A")
	until(t, "the choice", func() bool { return k.message(ada, card.ID).has(textPicked) })
	if got := k.tap(ada, ada, card.ID, textPicked); got.Text != "Choose exactly 2." || !got.Alert {
		t.Errorf("one of two was answered with %+v", got)
	}
	k.tap(ada, ada, card.ID, "☐ C")
	until(t, "the second choice", func() bool { return k.message(ada, card.ID).has("☑ C") })
	k.tap(ada, ada, card.ID, textPicked)

	until(t, "the fourth field", func() bool { return k.message(ada, card.ID).has("green") })
	if got := k.tap(ada, ada, card.ID, textSkip); got.Text != textAnswered {
		t.Errorf("the last answer was answered with %+v", got)
	}
	k.reads(ada, p, `It heard: allowed count=["7"] mail=[] tags=["A" "C"] color=[]`)
	k.idle()
}

func TestFormsSayWhatTheyTake(t *testing.T) {
	t.Parallel()
	one, ten := 1.0, 10.5
	for want, q := range map[string]runner.Query{
		"": {},
		"The answer is text of at most 5 characters.":                    {Form: &runner.Form{MaxLength: 5}},
		"The answer is text of 2 to 5 characters.":                       {Form: &runner.Form{MinLength: 2, MaxLength: 5}},
		"The answer is text of at least 2 characters.":                   {Form: &runner.Form{MinLength: 2}},
		"The answer is a number of at least 1.":                          {Form: &runner.Form{Number: true, Min: &one}},
		"The answer is a number of at most 10.5. " + textOptional:        {Form: &runner.Form{Number: true, Max: &ten, Optional: true}},
		"The answer is a date, such as 2026-12-31.":                      {Form: &runner.Form{Format: runner.FormatDate}},
		"Choose at most 10.5. " + textOptional:                           {Multiple: true, Options: options("a"), Form: &runner.Form{Max: &ten, Optional: true}},
		textOptional:                                                     {Options: options("a"), Form: &runner.Form{Optional: true}},
		"The answer is a whole address, such as https://example.com.":    {Form: &runner.Form{Format: runner.FormatURI}},
		"The answer is a date and a time, such as 2026-12-31T18:30:00Z.": {Form: &runner.Form{Format: runner.FormatDateTime}},
	} {
		if got := formHint(q); got != want {
			t.Errorf("%+v takes %q, want %q", q, got, want)
		}
	}
}
