package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"

	"github.com/go-telegram/bot/models"
)

// command is one of the bot's.
type command struct {
	name, about string
	group       string // under which /help lists it
	need        func(approvals.Role) bool
	control     bool // must get through at once; see Bot.Lane
	anywhere    bool // also in a group that is not enabled
	do          func(b *Bot, t *store.Txn, s author, args string) error
}

func anyRole(r approvals.Role) bool { return r != "" }

// maxPosted is how many open cards /pending posts at a time: a hundred at once would keep a chat busy for minutes.
const maxPosted = 10

// commands are in the order in which /help and Telegram's menu list them.
func commands() []command {
	return []command{
		{name: "mode", group: groupNow, about: "what the agent may do without asking", need: approvals.Role.CanPrompt, control: true, do: (*Bot).modeCommand},
		{name: "new", group: groupNow, about: "begin a new session", need: approvals.Role.CanPrompt, do: (*Bot).newCommand},
		{name: "plan", group: groupNow, about: "plan first and change nothing; “/plan off” ends it, “/plan” and a text plans only that", need: approvals.Role.CanPrompt, do: (*Bot).planCommand},
		{name: "stop", group: groupNow, about: "stop the turn, what waits and what goes on in the background; “/stop session” also ends the agent's process", need: approvals.Role.CanPrompt, control: true, do: (*Bot).stopCommand},
		{name: "status", group: groupNow, about: "what runs here, where, and under which mode", need: anyRole, control: true, do: (*Bot).statusCommand},
		{name: "pending", group: groupNow, about: "show the open questions again", need: anyRole, control: true, do: (*Bot).pendingCommand},
		{name: "jobs", group: groupNow, about: "what goes on in the background, and the tasks that run; stop it", need: anyRole, control: true, do: (*Bot).jobsCommand},
		{name: "queue", group: groupNow, about: "what waits to be run; take it back", need: anyRole, control: true, do: (*Bot).queueCommand},
		{name: "project", group: groupWith, about: "the folder to work in", need: approvals.Role.CanPrompt, do: (*Bot).projectCommand},
		{name: "runtime", group: groupWith, about: "the agent to work with", need: approvals.Role.CanPrompt, do: (*Bot).runtimeCommand},
		{name: "model", group: groupWith, about: "the model that the agent uses", need: approvals.Role.CanPrompt, do: (*Bot).modelCommand},
		{name: "effort", group: groupWith, about: "how long the model thinks", need: approvals.Role.CanPrompt, do: (*Bot).effortCommand},
		{name: "sessions", group: groupNow, about: "earlier sessions in this project, also those of a terminal; continue one", need: approvals.Role.CanPrompt, do: (*Bot).sessionsCommand},
		{name: "grants", group: groupNow, about: "what you have allowed for longer; take it back", need: anyRole, control: true, do: (*Bot).grantsCommand},
		{name: "cron", group: groupLater, about: "plan prompts, and see what is planned; e.g. /cron add \"0 9 * * 1-5\" check the build", need: approvals.Role.CanPrompt, do: (*Bot).cronCommand},
		{name: "at", group: groupLater, about: "do something at a time; e.g. /at 18:30 run the tests", need: approvals.Role.CanPrompt, do: (*Bot).atCommand},
		{name: "in", group: groupLater, about: "do something in a while; e.g. /in 20m look at the deployment", need: approvals.Role.CanPrompt, do: (*Bot).inCommand},
		{name: "every", group: groupLater, about: "do something again and again; e.g. /every 2h until 22:00 look for new issues", need: approvals.Role.CanPrompt, do: (*Bot).everyCommand},
		{name: "tasks", group: groupLater, about: "work that is done without you: what waits, runs, and is for you to look at", need: anyRole, control: true, do: (*Bot).tasksCommand},
		{name: "task", group: groupLater, about: "one task; “/task new”, a title, and a step a line makes one", need: approvals.Role.CanPrompt, do: (*Bot).taskCommand},
		{name: "execution", group: groupLater, about: "whether finished tasks of this project wait for your approval", need: approvals.Role.IsOwner, do: (*Bot).executionCommand},
		{name: "timezone", group: groupLater, about: "the time zone in which times are meant here; e.g. /timezone Europe/Vienna", need: approvals.Role.CanPrompt, do: (*Bot).timezoneCommand},
		{name: "quiet", group: groupLater, about: "hours in which tasks ask without a sound; e.g. /quiet 22:00-07:00", need: approvals.Role.CanPrompt, do: (*Bot).quietCommand},
		{name: "asks", group: groupLater, about: "whom tasks of this chat ask, and how long they wait; e.g. /asks me, /asks 2h", need: approvals.Role.IsOwner, do: (*Bot).asksCommand},
		{name: "desk", group: groupHere, about: "have what agents in your terminals ask come here; “/desk off” ends it", need: approvals.Role.IsOwner, control: true, do: (*Bot).deskCommand},
		{name: "enable", group: groupHere, about: "let the bot work in this group", need: approvals.Role.IsOwner, control: true, anywhere: true, do: (*Bot).enableCommand},
		{name: "disable", group: groupHere, about: "stop working in this group", need: approvals.Role.IsOwner, control: true, anywhere: true, do: (*Bot).disableCommand},
		{name: "help", group: groupHere, about: "what the commands do", need: anyRole, control: true, do: (*Bot).helpCommand},
		{name: "start", group: groupHere, about: "what this is, and what is chosen here", need: anyRole, control: true, do: (*Bot).startCommand},
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
func (b *Bot) run(t *store.Txn, s author, name, args string) error {
	c := commandNamed(name)
	enabled, err := b.cfg.People.enabled(t, s.chat)
	if err != nil {
		return err
	}
	switch {
	case !enabled && !c.anywhere:
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
	m.Text(welcome(s.Role) + "\n\n")
	if err := b.status(t, &m, s); err != nil {
		return err
	}
	m.Text("\n\n/help – what the commands do")
	return b.send(t, s.chat, 0, "", m.Message())
}

// welcome says what the bot is, to whom it is something else.
func welcome(r approvals.Role) string {
	if r.CanPrompt() {
		return textWelcome
	}
	return textWatcher
}

func (b *Bot) helpCommand(t *store.Txn, s author, _ string) error {
	var m formatting.Builder
	m.Text(welcome(s.Role) + "\n")
	for _, group := range []string{groupNow, groupWith, groupLater, groupHere} {
		heading := "\n" + group
		for _, c := range commands() {
			if c.group == group && c.need(s.Role) && !(c.anywhere && s.chat.Private()) { // those are for groups
				if heading != "" {
					m.Bold(heading)
				}
				heading = ""
				m.Text("\n/" + c.name + " – " + c.about)
			}
		}
		if heading == "" {
			m.Text("\n")
		}
	}
	if s.Role.CanTap() {
		m.Text("\n" + textHelpDeny)
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
	done, err := b.stop(t, s.chat, s.at, session)
	if err != nil {
		return err
	}
	text := stoppedWords(done)
	if session {
		text += " " + textSessionEnds
	}
	return b.say(t, s.chat, s.message, text)
}

// stop is Chats.Stop, and what stands in the chat about the prompts that it ends says so.
func (b *Bot) stop(t *store.Txn, chat ChatRef, at time.Time, session bool) (bridge.Stopped, error) {
	before, err := b.cfg.Chats.Get(t, chat.Key())
	if err != nil {
		return bridge.Stopped{}, err
	}
	done, err := b.cfg.Chats.Stop(t, chat.Key(), at, session)
	if err != nil {
		return bridge.Stopped{}, err
	}
	after, err := b.cfg.Chats.Get(t, chat.Key())
	if err != nil {
		return bridge.Stopped{}, err
	}
	for _, p := range before.Queue {
		if slices.ContainsFunc(after.Queue, func(q bridge.Prompt) bool { return q.ID == p.ID }) {
			continue
		}
		if err := b.closeQueued(t, chat, p, textStoppedFirst); err != nil {
			return bridge.Stopped{}, err
		}
	}
	return done, nil
}

// closeQueued lets the message that says that a prompt waits say what became of it.
func (b *Bot) closeQueued(t *store.Txn, chat ChatRef, p bridge.Prompt, text string) error {
	if !p.Waited {
		return nil
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindEdit, Slot: queuedSlot(p.ID), Text: text})
}

func stoppedWords(s bridge.Stopped) string {
	words := ""
	switch {
	case s.Turn && s.Prompts > 0:
		words = "Stopping the turn; " + plural(s.Prompts, "waiting prompt") + " will not be run."
	case s.Turn:
		words = "Stopping the turn."
	case s.Prompts > 0:
		words = plural(s.Prompts, "waiting prompt") + " will not be run."
	case s.Jobs == 0:
		return textNothingRuns
	}
	if s.Jobs > 0 {
		words = strings.TrimSpace(words + " Ending " + plural(s.Jobs, "background job") + ".")
	}
	return words
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
	a, err := b.agent(t, c)
	if err != nil {
		return err
	}
	if word := standing(a.Capability); word != "" && c.Runtime != "" {
		m.Text(" – " + word)
	}
	if words := a.using(c); words != "" {
		m.Text("\n" + words)
	}
	m.Text("\n" + textMode).Bold(string(c.Mode)).Text(" – " + a.means(c.Mode))
	a.effectivelyBelow(m, c.Mode)
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
	jobs, err := b.jobsLine(t, s.chat)
	if err != nil {
		return err
	}
	if jobs != "" {
		m.Text("\n" + jobs)
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
	for _, r := range open[:min(len(open), maxPosted)] {
		if err := b.postCard(t, r); err != nil {
			return err
		}
	}
	if n := len(open) - maxPosted; n > 0 {
		return b.say(t, s.chat, 0, plural(n, "more question")+textPendingMore)
	}
	return nil
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
	if err := b.leaveDesk(t, s.chat.ID); err != nil {
		return err
	}
	return b.say(t, s.chat, s.message, textGroupGone)
}
