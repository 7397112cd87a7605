package bot

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"

	"github.com/go-telegram/bot/models"
)

// doEdited is the button under an edited plan, as choice.Do.
const doEdited = "edited" // approval, key of the edited plan

// maxEdited is how many bytes an edited plan may have.
const maxEdited = 256 << 10

// edited is a plan as a person has sent it back, until it is tapped or forgotten.
type edited struct {
	V     int    `json:"v"`
	Plan  string `json:"plan"`
	Words string `json:"words,omitempty"` // the caption
}

// editedKey is where the plan that came with a message stands.
func editedKey(id approvals.ID, message int) string {
	return "g:edited:" + string(id) + ":" + strconv.Itoa(message)
}

// editable reports whether another text can be implemented in the place of a plan: nobody waits for the plan itself, and
// what is implemented is a prompt of ours.
func editable(r approvals.Record) bool {
	return r.Question.Kind == runner.KindPlan && r.Deferred() && implementable(r.Question)
}

func implementable(q runner.Question) bool {
	return slices.ContainsFunc(q.Actions, func(a runner.Action) bool { return a.ID == runner.ActionImplement && a.Allows })
}

// editedReply is a reply to an open plan with something else than text. A text file is the plan as it shall be; it is kept,
// and implemented once somebody taps the button under it.
func (b *Bot) editedReply(t *store.Txn, d *Delivery, s author, r approvals.Record, m *models.Message) error {
	p, _ := d.Prepared.(prepared)
	_, revisable := replyAction(r)
	problem := ""
	switch {
	case !editable(r) && revisable:
		problem = textPlanNotHere
	case !editable(r):
		problem = textPlanFixed
	case m.Document == nil:
		problem = textPlanNotText
	case m.Document.FileSize > maxEdited:
		problem = textPlanTooLarge
	case p.problem != "":
		problem = p.problem
	case len(p.files) != 1:
		problem = textFileLost
	case p.files[0].Size > maxEdited:
		problem = textPlanTooLarge
	case !planFile(m.Document, p.content):
		problem = textPlanNotText
	}
	plan := strings.ReplaceAll(strings.TrimPrefix(string(p.content), "\ufeff"), "\r\n", "\n")
	if problem == "" && formatting.Blank(plan) {
		problem = textPlanEmpty
	}
	if problem != "" {
		return b.say(t, s.chat, s.message, problem)
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	key := editedKey(r.ID, s.message)
	t.Add(meaningsIndex, key, store.Micros(now)) // forgotten with its button
	if err := store.Put(t, key, edited{V: Version, Plan: plan, Words: m.Caption}); err != nil {
		return err
	}
	var out formatting.Builder
	out.Bold(textPlanEdited).Text("\n" + sizeOf(plan) + "\n")
	if hidden(plan) {
		out.Text(textPlanHidden + "\n")
	}
	if m.Caption != "" {
		out.Text(textPlanWith + formatting.Inline(m.Caption, 1100) + "\n")
	}
	out.Text(textPlanEditedFor)
	return b.send(t, s.chat, s.message, "", out.Message(), []option{{
		Label: textPlanThis, Style: string(runner.StyleSuccess), choice: choice{Do: doEdited, Args: []string{string(r.ID), key}},
	}})
}

// planFile reports whether a document is text that a person can have written as a plan.
func planFile(f *models.Document, content []byte) bool {
	kind, _, _ := strings.Cut(f.MimeType, ";")
	byKind := slices.Contains([]string{"text/plain", "text/markdown", "text/x-markdown"}, strings.ToLower(strings.TrimSpace(kind)))
	byName := slices.Contains([]string{".md", ".markdown", ".txt", ".text"}, strings.ToLower(path.Ext(f.FileName)))
	return (byKind || byName) && utf8.Valid(content) && !slices.Contains(content, 0)
}

// hidden reports whether a text holds more than is seen of it. Tabs are no secret.
func hidden(text string) bool {
	shown := strings.NewReplacer("\t", "", "⟨", "", "⟩", "").Replace(text)
	return strings.Contains(formatting.Visible(shown), "⟨U+")
}

// editedTap has an edited plan implemented, as the decision of the plan that it was made from.
func (b *Bot) editedTap(t *store.Txn, s author, id approvals.ID, key, token string) (notice, error) {
	r, stand, ok, err := b.stands(t, s.chat, id)
	switch {
	case err != nil:
		return notice{}, err
	case !ok:
		return notice{text: tapStale}, nil
	case stand.Word != approvals.StandsOpen:
		return notice{cardOutcome(r.Question, stand), true}, nil
	}
	e, ok, err := store.Get[edited](t, key)
	if err != nil || !ok {
		return notice{text: tapStale}, err
	}
	c, ok, err := store.Get[card](t, cardKey(id))
	if err != nil || !ok {
		return notice{text: tapStale}, err
	}
	was := c
	c.Edited = key
	if err := store.Put(t, cardKey(id), c); err != nil {
		return notice{}, err
	}
	o, err := b.cfg.Approvals.DecideIn(t, approvals.Tap{
		ID: id, Chat: s.chat.Key(), Person: s.Person, Action: runner.ActionImplement, Reason: e.Words, Token: token,
	})
	switch {
	case err != nil:
		return notice{}, err
	case !o.Won:
		return decided(o), store.Put(t, cardKey(id), was)
	}
	return notice{text: textPlanThisGoes}, b.respond(t, s, formatting.Message{Text: textPlanThisGoes})
}

// planOf is the text that is implemented by a decision about a plan: the agent's, or the one that was tapped instead.
func (b *Bot) planOf(t *store.Txn, r approvals.Record, d approvals.Decision) (string, error) {
	c, _, err := store.Get[card](t, cardKey(r.ID))
	if err != nil || c.Edited == "" || d.Action != runner.ActionImplement {
		return r.Question.Plan, err
	}
	e, ok, err := store.Get[edited](t, c.Edited)
	if err == nil && !ok {
		err = errors.New("it is forgotten") // the agent's own must not take its place
	}
	if err != nil {
		return "", fmt.Errorf("bot: edited plan of %s: %w", r.ID, err)
	}
	return e.Plan, nil
}
