package bot

import (
	"maps"
	"slices"
	"strings"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// maxOptions is how many options of a query get a button; the others can be answered by a reply.
const maxOptions = 50

// asked is the query that a card asks now: a question with several is asked one after the other.
func (c card) asked(q runner.Question) (runner.Query, bool) {
	for _, query := range q.Queries {
		if _, answered := c.Answers[query.ID]; !answered {
			return query, true
		}
	}
	return runner.Query{}, false
}

// questionRows offers the options of the query that is asked now, what the agent adds, and not to answer at all.
func questionRows(r approvals.Record, c card) [][]option {
	var rows [][]option
	id := string(r.ID)
	if q, ok := c.asked(r.Question); ok {
		for _, o := range q.Options[:min(len(q.Options), maxOptions)] {
			label := buttonLabel(o.Label)
			if q.Multiple {
				label = tick(slices.Contains(c.Picked, o.Label)) + label
			}
			rows = append(rows, []option{{Label: label, choice: choice{Do: doAnswer, Args: []string{id, q.ID, o.Label}}}})
		}
		if q.Multiple && len(c.Picked) > 0 {
			rows = append(rows, []option{{Label: textPicked, Style: string(runner.StylePrimary), choice: choice{Do: doPicked, Args: []string{id, q.ID}}}})
		} else if q.Form != nil && q.Form.Optional {
			rows = append(rows, []option{{Label: textSkip, choice: choice{Do: doPicked, Args: []string{id, q.ID}}}})
		}
	}
	if len(r.Question.Actions) == 0 {
		return append(rows, []option{{Label: textNotAnswer, choice: choice{Do: doDecide, Args: []string{id, runner.ActionDeny}}}})
	}
	for _, a := range r.Question.Actions {
		rows = append(rows, []option{{Label: buttonLabel(a.Label), Style: string(a.Style), choice: choice{Do: doDecide, Args: []string{id, a.ID}}}})
	}
	return rows
}

func tick(on bool) string {
	if on {
		return "☑ "
	}
	return "☐ "
}

// questionBody writes the queries up to the one that is asked now, with the answers so far.
func questionBody(m *formatting.Builder, q runner.Question, c *card) {
	if c == nil {
		c = &card{}
	}
	now, ok := c.asked(q)
	for i, query := range q.Queries {
		if ok && query.ID == now.ID {
			if len(q.Queries) > 1 {
				m.Text(questionNumber(i+1, len(q.Queries)) + "\n")
			}
			break
		}
		m.Text(formatting.Inline(query.Text, 300) + "\n")
		answerLine(m, query, c.Answers[query.ID])
	}
	if !ok {
		return
	}
	queryBody(m, now)
	if takesWords(now) {
		m.Text(textReplyAnswer + "\n")
	}
}

func queryBody(m *formatting.Builder, q runner.Query) {
	m.Text(formatting.Visible(q.Text) + "\n")
	for _, o := range q.Options {
		m.Text("• ").Bold(formatting.Inline(o.Label, 300))
		if o.Description != "" {
			m.Text(" – " + formatting.Inline(o.Description, 500))
		}
		m.Text("\n")
	}
	if hint := formHint(q); hint != "" {
		m.Text(hint + "\n")
	}
}

// answeredBody writes the queries with what was answered.
func answeredBody(m *formatting.Builder, q runner.Question, d *approvals.Decision) {
	for _, query := range q.Queries {
		m.Text(formatting.Visible(query.Text) + "\n")
		if d != nil {
			answerLine(m, query, d.Answers[query.ID])
		}
	}
}

func answerLine(m *formatting.Builder, q runner.Query, answers []string) {
	switch {
	case len(answers) == 0:
		return
	case q.Secret:
		m.Text("→ ").Text(textSecretAnswer + "\n")
		return
	}
	var shown []string
	for _, a := range answers {
		shown = append(shown, formatting.Inline(a, 300))
	}
	m.Text("→ ").Bold(strings.Join(shown, ", ")).Text("\n")
}

// takesWords reports whether a query takes an answer in the person's own words.
func takesWords(q runner.Query) bool { return q.Free || len(q.Options) == 0 }

// answer takes an answer to the query that a card asks now. The last one decides the approval; until then the card goes
// on to the next query.
func (b *Bot) answer(t *store.Txn, s author, r approvals.Record, c card, query string, answers []string, token string) (approvals.Outcome, error) {
	given := map[string][]string{query: answers}
	maps.Copy(given, c.Answers)
	c.Answers, c.Picked = given, nil
	if _, more := c.asked(r.Question); more {
		return approvals.Outcome{Record: r}, b.progress(t, s.chat, r, c)
	}
	return b.cfg.Approvals.DecideIn(t, approvals.Tap{ID: r.ID, Chat: s.chat.Key(), Person: s.Person, Answers: given, Token: token})
}

// progress keeps what was answered so far and shows what is asked next.
func (b *Bot) progress(t *store.Txn, chat ChatRef, r approvals.Record, c card) error {
	if err := store.Put(t, cardKey(r.ID), c); err != nil {
		return err
	}
	return b.putCard(t, chat, r, c, Outgoing{Kind: KindEdit})
}

// answerTap is a tap on an option, or, without a label, on the end of a choice of several.
func (b *Bot) answerTap(t *store.Txn, s author, id approvals.ID, query, label, token string) (notice, error) {
	if err := b.adopt(t, s, id); err != nil {
		return notice{}, err
	}
	r, c, n, err := b.answerable(t, s, id)
	if err != nil || n.text != "" {
		return n, err
	}
	q, ok := c.asked(r.Question)
	if !ok || q.ID != query {
		return notice{text: textAnsweredBefore}, nil
	}
	answers := []string{label}
	switch {
	case label == "":
		if answers = c.Picked; len(answers) == 0 && (q.Form == nil || !q.Form.Optional) {
			return notice{text: refusal(approvals.RefusedAnswers)}, nil
		}
		if fault := q.Form.Check(q, answers); fault != "" {
			return notice{faultWords(q, fault), true}, nil
		}
	case q.Multiple:
		if i := slices.Index(c.Picked, label); i >= 0 {
			c.Picked = slices.Delete(c.Picked, i, i+1)
		} else {
			c.Picked = append(c.Picked, label)
		}
		return notice{text: tapPicked}, b.progress(t, s.chat, r, c)
	}
	o, err := b.answer(t, s, r, c, query, answers, token)
	return decided(o), err
}

// answerable returns an open question of a chat, or a notice to whoever may not answer it any more.
func (b *Bot) answerable(t *store.Txn, s author, id approvals.ID) (r approvals.Record, c card, n notice, err error) {
	r, stand, ok, err := b.stands(t, s.chat, id)
	if err != nil {
		return r, c, n, err
	}
	switch {
	case !ok:
		return r, c, notice{text: tapStale}, nil
	case stand.Word != approvals.StandsOpen:
		return r, c, notice{cardOutcome(r.Question, stand), true}, nil
	}
	c, _, err = store.Get[card](t, cardKey(id))
	return r, c, n, err
}

// stands reads how an approval of a chat stands; false if the chat has none of that id.
func (b *Bot) stands(t *store.Txn, chat ChatRef, id approvals.ID) (approvals.Record, approvals.Stand, bool, error) {
	if id.Host() == "" {
		return approvals.Record{}, approvals.Stand{}, false, nil
	}
	r, ok, err := store.Get[approvals.Record](t, approvals.AskKey(id))
	if err != nil || !ok || r.Chat != chat.Key() {
		return r, approvals.Stand{}, false, err
	}
	d, decided, err := store.Get[approvals.Decision](t, approvals.DecisionKey(id))
	if err != nil {
		return r, approvals.Stand{}, false, err
	}
	if !decided {
		return r, approvals.Standing(r, nil), true, nil
	}
	return r, approvals.Standing(r, &d), true, nil
}

// answerReply is an answer in the person's own words. What fits an option is that option. A secret answer is taken out of
// the chat.
func (b *Bot) answerReply(t *store.Txn, s author, r approvals.Record, words, token string) error {
	c, _, err := store.Get[card](t, cardKey(r.ID))
	if err != nil {
		return err
	}
	q, ok := c.asked(r.Question)
	if !ok {
		return b.say(t, s.chat, s.message, textAnsweredBefore)
	}
	i := slices.IndexFunc(q.Options, func(o runner.Option) bool { return strings.EqualFold(o.Label, strings.TrimSpace(words)) })
	switch {
	case i >= 0:
		words = q.Options[i].Label
	case !takesWords(q) || words == "":
		return b.say(t, s.chat, s.message, refusal(approvals.RefusedAnswers))
	}
	if q.Form != nil {
		words = strings.TrimSpace(words)
	}
	if fault := q.Form.Check(q, []string{words}); fault != "" {
		return b.say(t, s.chat, s.message, faultWords(q, fault))
	}
	o, err := b.answer(t, s, r, c, q.ID, []string{words}, token)
	if err != nil {
		return err
	}
	n := decided(o)
	if q.Secret {
		if err := b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindDelete, MessageID: s.message}); err != nil {
			return err
		}
		return b.say(t, s.chat, 0, n.text)
	}
	return b.say(t, s.chat, s.message, n.text)
}

// plainly reports whether what c says is plain from what the card shows anyway.
func plainly(q runner.Question, c policy.Category) bool {
	switch q.Kind {
	case runner.KindCommand:
		return c == policy.Terminal || c == policy.Write || c == policy.Read
	case runner.KindFileChange:
		return c == policy.Write || c == policy.Delete && !slices.ContainsFunc(q.Files, func(f runner.FileChange) bool { return f.Op != runner.FileDelete })
	case runner.KindPlan, runner.KindQuestion, runner.KindProposal:
		return c == policy.Question
	case runner.KindTool:
	}
	return false
}
