package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"

	"github.com/go-telegram/bot/models"
)

// command is one of the bot's.
type command struct {
	name, about string
	need        func(approvals.Role) bool
	control     bool // must get through at once; see Bot.Lane
	anywhere    bool // also in a group that is not enabled
	do          func(b *Bot, t *store.Txn, s author, args string) error
}

func anyRole(r approvals.Role) bool { return r != "" }

// commands are in the order in which /help and Telegram's menu list them.
func commands() []command {
	return []command{
		{name: "mode", about: "what the agent may do without asking", need: approvals.Role.CanPrompt, control: true, do: (*Bot).modeCommand},
		{name: "new", about: "begin a new session", need: approvals.Role.CanPrompt, do: (*Bot).newCommand},
		{name: "stop", about: "stop the turn and what waits; “/stop session” also ends the agent's process", need: approvals.Role.CanPrompt, control: true, do: (*Bot).stopCommand},
		{name: "status", about: "what runs here, where, and under which mode", need: anyRole, control: true, do: (*Bot).statusCommand},
		{name: "pending", about: "show the open questions again", need: anyRole, control: true, do: (*Bot).pendingCommand},
		{name: "queue", about: "the prompts that wait, and take them back", need: anyRole, control: true, do: (*Bot).queueCommand},
		{name: "project", about: "the folder to work in", need: approvals.Role.CanPrompt, do: (*Bot).projectCommand},
		{name: "runtime", about: "the agent to work with", need: approvals.Role.CanPrompt, do: (*Bot).runtimeCommand},
		{name: "grants", about: "what is allowed without asking, and take it back", need: anyRole, control: true, do: (*Bot).grantsCommand},
		{name: "enable", about: "let the bot work in this group", need: approvals.Role.IsOwner, control: true, anywhere: true, do: (*Bot).enableCommand},
		{name: "disable", about: "stop working in this group", need: approvals.Role.IsOwner, control: true, anywhere: true, do: (*Bot).disableCommand},
		{name: "help", about: "what the commands do", need: anyRole, control: true, do: (*Bot).helpCommand},
		{name: "start", about: "begin, or pair the first owner", need: anyRole, control: true, do: (*Bot).startCommand},
	}
}

// commandNamed returns a command; one without a name if there is none.
func commandNamed(name string) command {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return command{}
}

// Register tells Telegram the commands for its menu.
func (b *Bot) Register(ctx context.Context) error {
	var list []models.BotCommand
	for _, c := range commands() {
		list = append(list, models.BotCommand{Command: c.name, Description: c.about})
	}
	if err := b.cfg.API.SetCommands(ctx, list, &models.BotCommandScopeDefault{}); err != nil {
		return fmt.Errorf("bot: register commands: %w", err)
	}
	return nil
}

// run carries a command out.
func (b *Bot) run(t *store.Txn, _ *Delivery, s author, name, args string) error {
	c := commandNamed(name)
	enabled, err := b.cfg.People.enabled(t, s.chat)
	if err != nil {
		return err
	}
	switch {
	case !enabled && (c.name == "" || !c.anywhere):
		if s.Role.IsOwner() && c.name != "" {
			return b.say(t, s.chat, s.message, textGroupOff)
		}
		return nil
	case c.name == "":
		return b.say(t, s.chat, s.message, textUnknownWord)
	case !c.need(s.Role):
		if s.Role.CanPrompt() {
			return b.say(t, s.chat, s.message, textOwnersOnly)
		}
		return b.say(t, s.chat, s.message, textViewer)
	}
	return c.do(b, t, s, args)
}

func (b *Bot) startCommand(t *store.Txn, s author, _ string) error {
	var m formatting.Builder
	m.Text(textWelcome + "\n\n")
	if err := b.status(t, &m, s); err != nil {
		return err
	}
	m.Text("\n\n/help – what the commands do")
	return b.send(t, s.chat, 0, "", m.Message())
}

func (b *Bot) helpCommand(t *store.Txn, s author, _ string) error {
	var m formatting.Builder
	m.Text(textWelcome + "\n")
	for _, c := range commands() {
		if c.need(s.Role) {
			m.Text("\n/" + c.name + " – " + c.about)
		}
	}
	return b.send(t, s.chat, s.message, "", m.Message())
}

func (b *Bot) newCommand(t *store.Txn, s author, _ string) error {
	if err := b.cfg.Chats.New(t, s.chat.Key()); err != nil {
		return err
	}
	return b.say(t, s.chat, s.message, textNewDone)
}

func (b *Bot) stopCommand(t *store.Txn, s author, args string) error {
	session := strings.EqualFold(args, "session")
	done, err := b.cfg.Chats.Stop(t, s.chat.Key(), s.at, session)
	if err != nil {
		return err
	}
	text := stoppedWords(done)
	if session {
		text += " " + textSessionEnds
	}
	return b.say(t, s.chat, s.message, text)
}

func stoppedWords(s bridge.Stopped) string {
	switch {
	case s.Turn && s.Prompts > 0:
		return "Stopping the turn; " + plural(s.Prompts, "waiting prompt") + " will not be run."
	case s.Turn:
		return "Stopping the turn."
	case s.Prompts > 0:
		return plural(s.Prompts, "waiting prompt") + " will not be run."
	}
	return textNothingRuns
}

func (b *Bot) statusCommand(t *store.Txn, s author, _ string) error {
	var m formatting.Builder
	if err := b.status(t, &m, s); err != nil {
		return err
	}
	return b.send(t, s.chat, s.message, "", m.Message())
}

// status writes what is so in a chat.
func (b *Bot) status(t *store.Txn, m *formatting.Builder, s author) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	m.Text(textProjectNow)
	if c.Project == "" {
		m.Text("none; choose one with /project")
	} else {
		m.Bold(c.Project).Text(" (").Code(oneLine(c.Folder)).Text(") on " + c.Host)
		alive, err := b.cfg.Approvals.HostAlive(t.Context(), c.Host)
		if err != nil {
			return err
		}
		if !alive {
			m.Text(", which does not answer")
		}
	}
	m.Text("\n" + textRuntimeNow)
	if c.Runtime == "" {
		m.Text("none; choose one with /runtime")
	} else {
		m.Bold(c.Runtime)
	}
	m.Text("\n" + textMode).Bold(string(c.Mode)).Text(" – " + modeMeans(c.Mode))
	if eff, why, err := b.effective(t, c); err != nil {
		return err
	} else if eff != c.Mode {
		m.Text("\n" + textEffective).Bold(string(eff)).Text(why)
	}
	switch a := c.Active; {
	case a == nil:
		m.Text("\n" + textNothingRuns)
	case a.Stopping:
		m.Text("\nStopping a turn.")
	case a.Running:
		m.Text("\nA turn runs for " + elapsed(now.Sub(a.Started)) + ".")
	default:
		m.Text("\nA turn waits for its host for " + elapsed(now.Sub(a.Started)) + ".")
	}
	if n := len(c.Queue); n > 0 {
		m.Text("\n" + plural(n, "prompt") + " waiting.")
	}
	open, err := b.cfg.Approvals.Pending(t.Context(), s.chat.Key())
	if err != nil {
		return err
	}
	if len(open) > 0 {
		m.Text("\n" + plural(len(open), "question") + " open; /pending shows them.")
	}
	return nil
}

func (b *Bot) pendingCommand(t *store.Txn, s author, _ string) error {
	open, err := b.cfg.Approvals.Pending(t.Context(), s.chat.Key())
	if err != nil {
		return err
	}
	if len(open) == 0 {
		return b.say(t, s.chat, s.message, textPendingNone)
	}
	for _, r := range open {
		if err := b.postCard(t, r); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bot) queueCommand(t *store.Txn, s author, _ string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	var m formatting.Builder
	if a := c.Active; a != nil {
		m.Bold("Running: ").Text(formatting.Inline(a.Prompt.Text, 200) + "\n")
	}
	if len(c.Queue) == 0 {
		m.Text(textQueueEmpty)
		return b.send(t, s.chat, s.message, "", m.Message())
	}
	var rows [][]option
	for i, p := range c.Queue {
		m.Text(fmt.Sprintf("%d. %s\n", i+1, formatting.Inline(p.Text, 200)))
		rows = append(rows, []option{{Label: fmt.Sprintf("%s %d", textTakeBack, i+1), choice: choice{Do: doUnqueue, Args: []string{p.ID}}}})
	}
	if c.WaitsFor != "" {
		m.Text(textQueuedBehind)
	}
	return b.send(t, s.chat, s.message, "", m.Message(), rows...)
}

func (b *Bot) projectCommand(t *store.Txn, s author, args string) error {
	all, err := b.cfg.Chats.Projects(t)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return b.say(t, s.chat, s.message, textProjectNoneAt)
	}
	if args != "" {
		return b.chooseProject(t, s.chat, s.message, args)
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	var m formatting.Builder
	if c.Project == "" {
		m.Text(textProjectNone)
	} else {
		m.Text(textProjectNow).Bold(c.Project).Text(" ").Code(oneLine(c.Folder))
	}
	m.Text("\n" + textProjectList)
	return b.send(t, s.chat, s.message, "", m.Message(), projectRows(all)...)
}

func projectRows(all []bridge.Offer) [][]option {
	var rows [][]option
	for _, o := range all {
		rows = append(rows, []option{{Label: buttonLabel(o.Name), choice: choice{Do: doProject, Args: []string{o.Name}}}})
	}
	return rows
}

func (b *Bot) chooseProject(t *store.Txn, chat ChatRef, replyTo int, name string) error {
	c, err := b.cfg.Chats.SetProject(t, chat.Key(), name)
	if errors.Is(err, bridge.ErrNoProject) {
		all, err := b.cfg.Chats.Projects(t)
		if err != nil {
			return err
		}
		return b.say(t, chat, replyTo, textProjectWrong+textProjectList, projectRows(all)...)
	}
	if err != nil {
		return err
	}
	var m formatting.Builder
	m.Text(textProjectSet).Bold(c.Project).Text(" (").Code(oneLine(c.Folder)).Text(")." + textFreshSession)
	return b.send(t, chat, replyTo, "", m.Message())
}

func (b *Bot) runtimeCommand(t *store.Txn, s author, args string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	if args != "" {
		return b.chooseRuntime(t, s.chat, s.message, args)
	}
	var m formatting.Builder
	if c.Runtime != "" {
		m.Text(textRuntimeNow).Bold(c.Runtime).Text("\n")
	}
	return b.offerRuntimes(t, s.chat, s.message, &m, c.Host)
}

func (b *Bot) offerRuntimes(t *store.Txn, chat ChatRef, replyTo int, m *formatting.Builder, host string) error {
	hello, _, err := b.cfg.Chats.Hello(t, host)
	if err != nil {
		return err
	}
	rows := runtimeRows(hello)
	if len(rows) == 0 {
		m.Text(textRuntimeNone)
	} else {
		m.Text(textRuntimeList)
	}
	for _, name := range sortedRuntimes(hello) {
		if p := hello.Runtimes[name].Problem; p != "" {
			m.Text("\n").Bold(name).Text(": " + formatting.Inline(p, 300))
		}
	}
	return b.send(t, chat, replyTo, "", m.Message(), rows...)
}

func (b *Bot) chooseRuntime(t *store.Txn, chat ChatRef, replyTo int, name string) error {
	c, err := b.cfg.Chats.SetRuntime(t, chat.Key(), name)
	if errors.Is(err, bridge.ErrNoRuntime) {
		c, err := b.cfg.Chats.Get(t, chat.Key())
		if err != nil {
			return err
		}
		var m formatting.Builder
		m.Text(textRuntimeWrong)
		return b.offerRuntimes(t, chat, replyTo, &m, c.Host)
	}
	if err != nil {
		return err
	}
	var m formatting.Builder
	m.Text(textRuntimeSet).Bold(c.Runtime).Text("." + textFreshSession)
	return b.send(t, chat, replyTo, "", m.Message())
}

func (b *Bot) grantsCommand(t *store.Txn, s author, _ string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	grants, err := b.cfg.Approvals.Grants(t.Context(), c.Host, s.chat.Key())
	if err != nil {
		return err
	}
	if len(grants) == 0 {
		return b.say(t, s.chat, s.message, textGrantsNone)
	}
	var m formatting.Builder
	m.Text(textGrants)
	var rows [][]option
	for i, g := range grants {
		m.Text(fmt.Sprintf("\n%d. ", i+1))
		grantWords(&m, g)
		m.Text(", for the " + g.Scope)
		if g.Name != "" {
			m.Text(", by " + formatting.Inline(g.Name, 64))
		}
		rows = append(rows, []option{{Label: fmt.Sprintf("Remove %d", i+1), choice: choice{Do: doRevoke, Args: []string{c.Host, g.ID}}}})
	}
	return b.send(t, s.chat, s.message, "", m.Split()[0], rows...)
}

func (b *Bot) enableCommand(t *store.Txn, s author, _ string) error {
	if s.chat.Private() {
		return b.say(t, s.chat, s.message, textNotHere)
	}
	if err := b.cfg.People.enable(t, s.chat, s.ID); err != nil {
		return err
	}
	return b.say(t, s.chat, s.message, textGroupOn)
}

func (b *Bot) disableCommand(t *store.Txn, s author, _ string) error {
	if s.chat.Private() {
		return b.say(t, s.chat, s.message, textNotHere)
	}
	b.cfg.People.disable(t, s.chat)
	return b.say(t, s.chat, s.message, textGroupGone)
}
