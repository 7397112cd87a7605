package bot

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// The words of /runtime.
const (
	textRuntimeNow      = "Runtime: "
	textRuntimeWrong    = "There is no such runtime. "
	textRuntimeList     = "Choose one:"
	textRuntimeSet      = "This chat now uses "
	textRuntimeNone     = "No runtime is configured on the host of this project."
	textRuntimeChecking = "It is being looked at; send /runtime again in a moment."
	textRuntimeUnknown  = "Its host has not said what it can do."
	textRuntimeCannot   = "What it can't do or does otherwise:"
	textRuntimeCan      = "It can "
	textSandboxWorks    = "Its sandbox was seen to hold a command."

	// markCannot begins the label of a button for what can't be done: a tap is answered with the reason.
	markCannot = "🚫 "
)

// doWhy answers a tap with why something can't be done, as choice.Do.
const doWhy = "why" // runtime, name in Capability.Why; empty for the runtime itself

// abilities are what some runtimes can do and others can't, by their names in Capability.Why.
func abilities(c runner.Capability) []struct {
	key, label, does string
	can              bool
} {
	return []struct {
		key, label, does string
		can              bool
	}{
		{"plan", "plan", "plan without changing anything", c.Plan},
		{"questions", "questions", "ask you questions", c.Questions},
		{"steer", "steer", "take a prompt into a running turn", c.Steer},
		{"rewind", "rewind", "take back a part of the conversation", c.Rewind},
	}
}

// standing says in a word or two how a runtime stands, empty for one that works.
func standing(c runner.Capability) string {
	switch c.State {
	case runner.Ready:
		return ""
	case runner.Failed:
	case runner.Checking:
		return "being looked at"
	default:
		return "not known"
	}
	switch c.Cause {
	case runner.CauseMissing:
		return "not installed"
	case runner.CauseOld:
		return "too old"
	case runner.CauseVersion:
		return "version unreadable"
	case runner.CauseLogin:
		return "not logged in"
	case runner.CauseUnheld:
		return "does not let its actions be decided"
	case runner.CauseProbe:
	}
	return "the look failed"
}

func (b *Bot) runtimeCommand(t *store.Txn, s author, args string) error {
	if args != "" {
		return b.chooseRuntime(t, s, args)
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	var m formatting.Builder
	if c.Runtime != "" {
		a, err := b.agent(t, c)
		if err != nil {
			return err
		}
		a.describe(&m, c)
		m.Text("\n\n")
	}
	return b.offerRuntimes(t, s, &m, c.Host)
}

// describe writes what a runtime can do, and each of its "no" in its own words.
func (a agent) describe(m *formatting.Builder, c bridge.Chat) {
	m.Text(textRuntimeNow).Bold(oneLine(a.name))
	if a.Version != "" {
		m.Text(", version " + formatting.Inline(a.Version, 60))
	}
	if word := standing(a.Capability); word != "" {
		m.Text(" – " + word)
	}
	switch a.State {
	case runner.Ready:
	case runner.Failed:
		m.Text("\n" + formatting.Inline(a.Problem, 500))
		return
	case runner.Checking:
		m.Text("\n" + textRuntimeChecking)
		return
	default:
		m.Text("\n" + textRuntimeUnknown)
		return
	}
	if words := a.using(c); words != "" {
		m.Text("\n" + words)
	}
	var can []string
	for _, x := range abilities(a.Capability) {
		if x.can {
			can = append(can, x.does)
		}
	}
	if len(can) > 0 {
		m.Text("\n" + textRuntimeCan + listed(can) + ".")
	}
	if a.Sandbox {
		m.Text("\n" + textSandboxWorks)
	}
	if a.Reviewer != "" {
		m.Text("\nIn auto, " + formatting.Inline(a.Reviewer, 60) + " decides; /mode says about what.")
	}
	told := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(a.Why)) {
		if !runner.Told(key) {
			continue
		}
		words := formatting.Inline(a.Why[key], 300)
		if mode, ok := a.Modes[policy.Mode(key)]; ok && mode != policy.Mode(key) {
			words = key + " works as " + string(mode) + ": " + words
		}
		if !runner.Told(key) || told[words] || m.Len()+formatting.Len(words) > maxList-400 {
			continue
		}
		if len(told) == 0 {
			m.Text("\n" + textRuntimeCannot)
		}
		told[words] = true
		m.Text("\n• " + words)
	}
}

// cannot are buttons for what the runtime can't do.
func (a agent) cannot() []option {
	var row []option
	if a.State != runner.Ready {
		return nil
	}
	for _, x := range abilities(a.Capability) {
		if !x.can {
			row = append(row, option{Label: markCannot + x.label, choice: choice{Do: doWhy, Args: []string{a.name, x.key}}})
		}
	}
	return row
}

// offerRuntimes ends a message with the runtimes to choose from, and says what is wrong with those that do not work.
func (b *Bot) offerRuntimes(t *store.Txn, s author, m *formatting.Builder, host string) error {
	hello, _, err := b.cfg.Chats.Hello(t, host)
	if err != nil {
		return err
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	var rows [][]option
	if row := (agent{name: c.Runtime, Capability: hello.Runtimes[c.Runtime]}).cannot(); len(row) > 0 {
		rows = append(rows, row)
	}
	offers := runtimeRows(hello, c.Runtime)
	if rows = append(rows, offers...); len(offers) == 0 {
		m.Text(textRuntimeNone)
	} else {
		m.Text(textRuntimeList)
	}
	for _, name := range sortedRuntimes(hello) {
		if p := hello.Runtimes[name].Problem; p != "" && name != c.Runtime && m.Len() < maxList {
			m.Text("\n").Bold(formatting.Inline(name, 100)).Text(": " + formatting.Inline(p, 300))
		}
	}
	return b.respond(t, s, m.Message(), rows...)
}

func (b *Bot) chooseRuntime(t *store.Txn, s author, name string) error {
	c, err := b.cfg.Chats.SetRuntime(t, s.chat.Key(), name)
	var m formatting.Builder
	switch {
	case errors.Is(err, bridge.ErrNoRuntime):
		c, err := b.cfg.Chats.Get(t, s.chat.Key())
		if err != nil {
			return err
		}
		m.Text(textRuntimeWrong)
		return b.offerRuntimes(t, s, &m, c.Host)
	case err != nil:
		return err
	}
	m.Text(textRuntimeSet).Bold(oneLine(c.Runtime)).Text(". " + textFreshSession)
	a, err := b.agent(t, c)
	if err != nil {
		return err
	}
	if a.Problem != "" {
		m.Text("\n" + formatting.Inline(a.Problem, 500))
	}
	return b.respond(t, s, m.Message())
}

// runtimeRows are the runtimes to choose from. One that can't be used is marked, and says why when it is tapped.
func runtimeRows(h bridge.Hello, now string) [][]option {
	var rows [][]option
	for _, name := range sortedRuntimes(h) {
		if len(rows) == maxOffers {
			break
		}
		o := option{Label: buttonLabel(name), choice: choice{Do: doRuntime, Args: []string{name}}}
		switch c := h.Runtimes[name]; {
		case c.State == runner.Failed && c.Cause.Final():
			o.Label, o.choice = buttonLabel(markCannot+name+" – "+standing(c)), choice{Do: doWhy, Args: []string{name, ""}}
		case standing(c) != "":
			o.Label = buttonLabel(name + " – " + standing(c))
		case name == now:
			o.Label = "• " + o.Label
		}
		rows = append(rows, []option{o})
	}
	return rows
}

func sortedRuntimes(h bridge.Hello) []string { return slices.Sorted(maps.Keys(h.Runtimes)) }

// whyTap answers a tap on something that can't be done. It looks again: what stood in the way may be gone.
func (b *Bot) whyTap(t *store.Txn, s author, runtime, key string) (notice, error) {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return notice{}, err
	}
	hello, _, err := b.cfg.Chats.Hello(t, c.Host)
	if err != nil {
		return notice{}, err
	}
	k, ok := hello.Runtimes[runtime]
	words := k.Why[key]
	if key == "" {
		words = k.Problem
	}
	if !ok || strings.TrimSpace(words) == "" {
		return notice{tapAgain, true}, nil
	}
	return notice{formatting.Inline(words, 190), true}, nil
}

// tapAgain is for what may be possible by now.
const tapAgain = "This may have changed; ask for the list again."
