package bot

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// What the buttons of models do, as choice.Do.
const (
	doModel  = "model"  // runtime, model
	doEffort = "effort" // runtime, effort; empty for the model's own
)

const (
	textModelNow     = "Model: "
	textModelList    = "Choose one:"
	textModelMore    = "; write /model and the name."
	textModelWrong   = "This runtime does not list such a model."
	textModelSet     = "From the next turn on, this chat uses the model "
	textModelNone    = "This runtime lists no models to choose from; it uses its own."
	textEffortNow    = "Effort: "
	textEffortWrong  = "The model does not take such an effort."
	textEffortSet    = "From the next turn on, the effort is "
	textEffortNone   = "The model of this chat takes no effort to choose."
	textEffortOwn    = "the model's own"
	textItsDefault   = " (default)"
	textModelElse    = "This was for another runtime. "
	wordOwn          = "default"
	labelEffortOwn   = "default"
	textNotListedNow = " – not listed any more, so the default is used"
)

// using says which model a chat uses, empty if that is not known.
func (a agent) using(c bridge.Chat) string {
	m, ok := a.Model(c.Model)
	gone := ""
	if !ok && c.Model != "" {
		gone = textModelNow + formatting.Inline(c.Model, 60) + textNotListedNow
		if m, ok = a.Model(""); !ok {
			return gone
		}
		gone += ": "
	}
	if !ok {
		return ""
	}
	s := textModelNow + modelName(m)
	if gone != "" {
		s = gone + modelName(m)
	}
	if m.Default && c.Model == "" {
		s += textItsDefault
	}
	switch {
	case c.Effort != "" && slices.Contains(m.Efforts, c.Effort):
		s += ", effort " + formatting.Inline(c.Effort, 30)
	case m.Effort != "":
		s += ", effort " + formatting.Inline(m.Effort, 30) + textItsDefault
	}
	return s
}

// modelName is how people are told of a model.
func modelName(m runner.Model) string { return formatting.Inline(cmp.Or(m.Name, m.ID), 60) }

func (b *Bot) modelCommand(t *store.Txn, s author, args string) error {
	c, a, err := b.chatAgent(t, s)
	if err != nil {
		return err
	}
	switch {
	case len(a.Models) == 0:
		return b.noList(t, s, a, textModelNone)
	case args != "":
		return b.chooseModel(t, s, args)
	}
	var m formatting.Builder
	m.Text(a.using(c) + "\n")
	return b.offerModels(t, s, c, a, &m)
}

// noList says why there is nothing to choose: the runtime can't be used or is not known yet, or has no list.
func (b *Bot) noList(t *store.Txn, s author, a agent, none string) error {
	var m formatting.Builder
	switch {
	case a.name == "":
		m.Text(textNoRuntime)
	case a.State == runner.Ready:
		m.Text(none)
	default:
		a.describe(&m, bridge.Chat{})
	}
	return b.respond(t, s, m.Message())
}

func (b *Bot) chatAgent(t *store.Txn, s author) (bridge.Chat, agent, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return bridge.Chat{}, agent{}, err
	}
	a, err := b.agent(t, c)
	return c, a, err
}

func (b *Bot) offerModels(t *store.Txn, s author, c bridge.Chat, a agent, m *formatting.Builder) error {
	m.Text(textModelList)
	now, _ := a.Model(c.Model)
	var rows [][]option
	for _, one := range a.Models[:min(len(a.Models), maxOffers)] {
		label := modelName(one)
		if one.Default {
			label += textItsDefault
		}
		if one.ID == now.ID {
			label = "• " + label
		}
		rows = append(rows, []option{{Label: buttonLabel(label), choice: choice{Do: doModel, Args: []string{a.name, one.ID}}}})
	}
	if n := len(a.Models) - maxOffers; n > 0 {
		m.Text("\n" + plural(n, "more model") + textModelMore)
	}
	return b.respond(t, s, m.Message(), rows...)
}

// chooseModel takes a model by its id, or by the name that it is shown with.
func (b *Bot) chooseModel(t *store.Txn, s author, name string) error {
	c, a, err := b.chatAgent(t, s)
	if err != nil {
		return err
	}
	id := name
	if _, listed := a.Model(id); !listed {
		for _, one := range a.Models {
			if strings.EqualFold(one.ID, name) || strings.EqualFold(one.Name, name) || strings.EqualFold(name, wordOwn) && one.Default {
				id = one.ID
				break
			}
		}
	}
	var m formatting.Builder
	c2, err := b.cfg.Chats.SetModel(t, s.chat.Key(), id)
	switch {
	case errors.Is(err, bridge.ErrNoModel):
		m.Text(textModelWrong + "\n")
		return b.offerModels(t, s, c, a, &m)
	case err != nil:
		return err
	}
	one, _ := a.Model(c2.Model)
	m.Text(textModelSet).Bold(modelName(one)).Text(".")
	if c.Effort != "" && c2.Effort == "" {
		m.Text(" It does not take the effort " + formatting.Inline(c.Effort, 30) + ", so it uses its own.")
	}
	return b.respond(t, s, m.Message())
}

func (b *Bot) effortCommand(t *store.Txn, s author, args string) error {
	c, a, err := b.chatAgent(t, s)
	if err != nil {
		return err
	}
	one, _ := a.Model(c.Model)
	switch {
	case a.State != runner.Ready || len(one.Efforts) == 0:
		return b.noList(t, s, a, textEffortNone)
	case args != "":
		return b.chooseEffort(t, s, strings.ToLower(args))
	}
	var m formatting.Builder
	m.Text(a.using(c) + "\n")
	return b.offerEfforts(t, s, c, a, &m)
}

func (b *Bot) offerEfforts(t *store.Txn, s author, c bridge.Chat, a agent, m *formatting.Builder) error {
	one, _ := a.Model(c.Model)
	m.Text(textModelList)
	mark := func(on bool, label string) string {
		if on {
			return "• " + buttonLabel(label)
		}
		return buttonLabel(label)
	}
	own := labelEffortOwn
	if one.Effort != "" {
		own += ": " + one.Effort
	}
	rows := [][]option{{{Label: mark(c.Effort == "", own), choice: choice{Do: doEffort, Args: []string{a.name, ""}}}}}
	for _, e := range one.Efforts[:min(len(one.Efforts), maxOffers)] {
		rows = append(rows, []option{{Label: mark(c.Effort == e, e), choice: choice{Do: doEffort, Args: []string{a.name, e}}}})
	}
	return b.respond(t, s, m.Message(), rows...)
}

func (b *Bot) chooseEffort(t *store.Txn, s author, effort string) error {
	if effort == wordOwn {
		effort = ""
	}
	c, err := b.cfg.Chats.SetEffort(t, s.chat.Key(), effort)
	var m formatting.Builder
	switch {
	case errors.Is(err, bridge.ErrNoModel):
		c, a, err := b.chatAgent(t, s)
		if err != nil {
			return err
		}
		m.Text(textEffortWrong + "\n")
		return b.offerEfforts(t, s, c, a, &m)
	case err != nil:
		return err
	}
	m.Text(textEffortSet)
	if c.Effort == "" {
		m.Text(textEffortOwn)
	} else {
		m.Bold(oneLine(c.Effort))
	}
	m.Text(".")
	return b.respond(t, s, m.Message())
}

// modelTap is a button of /model or /effort. Its choice means something to the runtime that it was made for.
func (b *Bot) modelTap(t *store.Txn, s author, runtime string, choose func() error) (notice, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	if c.Runtime != runtime {
		return notice{textModelElse + textModelUnchanged, true}, nil
	}
	return notice{text: tapDone}, choose()
}

const textModelUnchanged = "Nothing was changed."
