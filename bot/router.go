package bot

import (
	"context"
	"strings"
	"time"
	"unicode"

	"drawbridge/approvals"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"

	"github.com/go-telegram/bot/models"
)

// author is who wrote or tapped, as far as it counts: a person with a role, in a chat where the bot works.
type author struct {
	approvals.Person
	chat    ChatRef
	message int       // to reply to; 0 if there is none
	tapped  int       // whose button was tapped; 0 if none was
	at      time.Time // on the clock of prompts
	update  int64     // that brought it
}

// Lane sorts updates: what must get through while messages are being prepared takes the control lane. Commands that later
// prompts depend on (/new, /project, /runtime) keep their place among the prompts.
func (b *Bot) Lane(u *models.Update) Lane {
	if u.CallbackQuery != nil || u.StoppedMessageGeneration != nil {
		return LaneControl
	}
	if u.Message != nil {
		if u.Message.MigrateFromChatID != 0 {
			return LaneControl // a command in the new chat must find it as the old one was
		}
		if name, _, ok := b.command(u.Message); ok && commandNamed(name).control {
			return LaneControl
		}
	}
	return LaneOrdinary
}

// Handle is Handler: everything that d causes goes into t.
func (b *Bot) Handle(t *store.Txn, d *Delivery) error {
	u := d.Update()
	switch {
	case u.CallbackQuery != nil:
		return b.tap(t, d, u.CallbackQuery)
	case u.Message != nil:
		return b.message(t, d)
	case u.EditedMessage != nil:
		return b.edited(t, d, u.EditedMessage)
	case u.StoppedMessageGeneration != nil:
		return b.stopDraft(t, d)
	}
	return nil
}

// Aside is AsideHandler: a message that could not be handled is reported as not run.
func (b *Bot) Aside(t *store.Txn, a Aside) error {
	role, err := b.cfg.People.Role(t, a.Person)
	if err != nil || a.Chat.ID == 0 || !role.CanPrompt() {
		return err
	}
	if enabled, err := b.cfg.People.enabled(t, a.Chat); err != nil || !enabled {
		return err
	}
	return b.say(t, a.Chat, 0, textAside)
}

func (b *Bot) message(t *store.Txn, d *Delivery) error {
	m := d.Update().Message
	if m.MigrateFromChatID != 0 {
		return b.migrate(t, m.MigrateFromChatID, m.Chat.ID)
	}
	if !content(m) {
		return nil
	}
	s, ok, err := b.authorOf(t, d, m)
	if err != nil || !ok {
		return err
	}
	name, args, is := b.command(m)
	if is && authored(m) {
		return b.run(t, s, name, args)
	}
	enabled, err := b.cfg.People.enabled(t, s.chat)
	if err != nil || !enabled || !b.meantForUs(m) {
		return err
	}
	if err := b.showUnseen(t, s.chat); err != nil {
		return err
	}
	if authored(m) && m.ReplyToMessage != nil && len(d.Updates) == 1 {
		if done, err := b.replyToCard(t, d, s, m); err != nil || done {
			return err
		}
		if done, err := b.replyToReport(t, s, m); err != nil || done {
			return err
		}
	}
	if !s.Role.CanPrompt() {
		return b.say(t, s.chat, s.message, textViewer)
	}
	return b.prompt(t, d, s)
}

// content reports whether a message is one that somebody wrote, and not the note of an event in the chat.
func content(m *models.Message) bool {
	return m.Text != "" || m.Caption != "" || len(m.Photo) > 0 || m.Document != nil || m.Voice != nil || m.Audio != nil || m.Video != nil ||
		m.VideoNote != nil || m.Sticker != nil || m.Location != nil || m.Contact != nil || m.Poll != nil
}

// authored reports whether a message is its author's own word: only such a one counts as a command or an answer.
func authored(m *models.Message) bool {
	return m.ForwardOrigin == nil && m.ViaBot == nil && m.SenderChat == nil && !m.IsAutomaticForward
}

// authorOf returns who wrote m, and false if it is nobody to us. A stranger is answered in private, in one polite line, at
// most once an hour; in groups there is silence.
func (b *Bot) authorOf(t *store.Txn, d *Delivery, m *models.Message) (author, bool, error) {
	s := author{chat: d.Chat, message: m.ID, at: moment(m), update: d.Update().ID}
	if m.From == nil || m.From.IsBot || m.SenderChat != nil {
		return s, false, nil // anonymous administrators and channels are nobody
	}
	role, err := b.cfg.People.Role(t, m.From.ID)
	if err != nil {
		return s, false, err
	}
	s.Person = approvals.Person{ID: m.From.ID, Name: personName(m.From), Role: role}
	if role == approvals.Owner || role == approvals.Operator || role == approvals.Viewer {
		return s, true, nil
	}
	if !d.Chat.Private() {
		return s, false, nil
	}
	if name, args, is := b.command(m); is && name == "start" && args != "" && authored(m) {
		paired, wrong, err := b.cfg.People.pair(t, m.From.ID, args)
		if err != nil {
			return s, false, err
		}
		if wrong > 0 {
			person := m.From.ID
			d.After(func(context.Context) { b.wrongCode(person, wrong) })
			if _, err := b.cfg.People.mayDecline(t, person); err != nil { // that is the hour's line
				return s, false, err
			}
			return s, false, b.say(t, d.Chat, m.ID, wrongWords(wrong))
		}
		if paired {
			b.cfg.Logger.Info("the first owner was paired", "person", m.From.ID)
			err := b.cfg.Approvals.AuditIn(t, approvals.AuditLine{Event: approvals.EventPeople, Source: runner.SourceUser, By: m.From.ID, Count: 1})
			if err != nil {
				return s, false, err
			}
			return s, false, b.welcomeOwner(t, s)
		}
	}
	ok, err := b.cfg.People.mayDecline(t, m.From.ID)
	if err != nil || !ok {
		return s, false, err
	}
	owned, err := b.cfg.People.hasOwner(t)
	if err != nil {
		return s, false, err
	}
	return s, false, b.say(t, d.Chat, 0, strangerWords(m.From.ID, owned))
}

// welcomeOwner tells the first owner so, and what the chat begins with.
func (b *Bot) welcomeOwner(t *store.Txn, s author) error {
	var m formatting.Builder
	m.Text(textPaired + "\n\n")
	if err := b.status(t, &m, s); err != nil {
		return err
	}
	return b.send(t, s.chat, s.message, "", m.Message())
}

// wrongCode tells whoever runs the program that somebody guesses.
func (b *Bot) wrongCode(person int64, tries int) {
	if tries >= maxTries {
		b.cfg.Logger.Warn("pairing has ended after too many wrong codes; a restart makes another code", "person", person)
		return
	}
	b.cfg.Logger.Warn("a wrong pairing code", "person", person, "tries", tries)
}

func personName(u *models.User) string {
	name := strings.TrimSpace(u.FirstName + " " + u.LastName)
	if name == "" {
		name = u.Username
	}
	return formatting.Inline(name, 64)
}

// meantForUs reports whether a message in a group is for the bot: a reply to somebody else is not, unless it names the
// bot. Telegram's privacy mode keeps the rest away where it is on.
func (b *Bot) meantForUs(m *models.Message) bool {
	if m.Chat.Type == models.ChatTypePrivate {
		return true
	}
	if _, _, at := splitCommand(m); at != "" && !strings.EqualFold(at, b.named()) {
		return false // a command for another bot
	}
	r := m.ReplyToMessage
	if r == nil || r.From == nil || r.ForumTopicCreated != nil || r.From.ID == b.cfg.API.ID() || m.From != nil && r.From.ID == m.From.ID {
		return true
	}
	return b.named() != "" && strings.Contains(strings.ToLower(m.Text+m.Caption), "@"+strings.ToLower(b.named()))
}

// command reads a command that stands at the beginning of a message: its name in lower case, without the bot's name, and
// what follows. A command that names another bot is none.
func (b *Bot) command(m *models.Message) (name, args string, ok bool) {
	name, args, at := splitCommand(m)
	if name == "" || at != "" && !strings.EqualFold(at, b.named()) {
		return "", "", false
	}
	return name, args, true
}

// splitCommand takes a message that begins like a command apart; its name is empty if it does not.
func splitCommand(m *models.Message) (name, args, at string) {
	text, ok := strings.CutPrefix(m.Text, "/")
	if !ok {
		return "", "", ""
	}
	word := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		word, args = text[:i], strings.TrimSpace(text[i:])
	}
	name, at, _ = strings.Cut(word, "@")
	name = strings.ToLower(name)
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "", "", "" // a path, for one
	}
	return name, args, at
}

// moment orders what people wrote in a chat: by Telegram's second, and within it by the number of the message.
func moment(m *models.Message) time.Time {
	return time.Unix(int64(m.Date), int64(m.ID)%int64(time.Second))
}

// edited changes a prompt that still waits. One that has begun is not touched.
func (b *Bot) edited(t *store.Txn, d *Delivery, m *models.Message) error {
	role, err := b.cfg.People.Role(t, d.Person)
	if err != nil || !role.CanPrompt() || !authored(m) || m.Text == "" && m.Caption == "" {
		return err
	}
	text, _ := promptText([]*models.Message{m}, b.cfg.API.ID())
	_, err = b.cfg.Chats.Revise(t, d.Chat.Key(), ref(m), text)
	return err
}

// stopDraft is Telegram's own Stop button beside a draft; it exists in private chats only.
func (b *Bot) stopDraft(t *store.Txn, d *Delivery) error {
	role, err := b.cfg.People.Role(t, d.Person)
	if err != nil || !role.CanPrompt() {
		return err
	}
	_, err = b.stop(t, d.Chat, time.Time{}, false)
	return err
}

// migrate moves a group's chats to the supergroup that it became, with their mode and interaction.
func (b *Bot) migrate(t *store.Txn, from, to int64) error {
	if err := b.cfg.Outbox.Migrate(t, from, to); err != nil {
		return err
	}
	return b.Migrated(t, from, to)
}

// Migrated is OutboxConfig.OnMigrated.
func (b *Bot) Migrated(t *store.Txn, from, to int64) error {
	was, is := ChatRef{ID: from}, ChatRef{ID: to}
	if _, err := b.cfg.Chats.Migrate(t, was.Key(), is.Key()); err != nil {
		return err
	}
	if err := b.cfg.Chats.MoveDesk(t, func(chat string) bool { return chat == was.Key() }, is.Key()); err != nil {
		return err
	}
	g, ok, err := store.Get[enabledGroup](t, groupKey(from))
	if err != nil || !ok {
		return err
	}
	t.Delete(groupKey(from))
	return store.Put(t, groupKey(to), g)
}

// say sends a short text.
func (b *Bot) say(t *store.Txn, chat ChatRef, replyTo int, text string) error {
	return b.send(t, chat, replyTo, "", formatting.Message{Text: text})
}

// send sends a message with buttons, under a slot if it will be changed later.
func (b *Bot) send(t *store.Txn, chat ChatRef, replyTo int, slot string, m formatting.Message, rows ...[]option) error {
	buttons, err := b.buttons(t, chat, rows...)
	if err != nil {
		return err
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: chat, Kind: KindSend, Slot: slot, Text: m.Text, Entities: m.Entities, Buttons: buttons, ReplyTo: replyTo})
}

// respond answers a command with a message, and a tap by changing the message that was tapped.
func (b *Bot) respond(t *store.Txn, s author, m formatting.Message, rows ...[]option) error {
	if s.tapped == 0 {
		return b.send(t, s.chat, s.message, "", m, rows...)
	}
	buttons, err := b.buttons(t, s.chat, rows...)
	if err != nil {
		return err
	}
	return b.cfg.Outbox.Put(t, Outgoing{Chat: s.chat, Kind: KindEdit, MessageID: s.tapped, Text: m.Text, Entities: m.Entities, Buttons: buttons})
}

// Prepare is Preparer: files are fetched before the commit, and only for people who may prompt.
func (b *Bot) Prepare(ctx context.Context, d *Delivery) (any, error) { return b.files(ctx, d) }
