package bot

import (
	"cmp"
	"log/slog"
	"sync/atomic"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/internal/store"
)

// Config is what a Bot needs.
type Config struct {
	DB        store.DB
	Chats     *bridge.Chats
	Approvals *approvals.Service
	Tasks     *task.Service
	Outbox    *Outbox
	API       *API
	Acker     *Acker
	People    *People
	Logger    *slog.Logger
	// Keep is how long the meaning of buttons is kept; default 30 days.
	Keep time.Duration
}

// Bot is the conversation: what updates cause (Handle), what the hosts' logs look like in a chat (Project, Live), and
// how cards show what was decided (Decided). It keeps nothing in memory that a restart could lose, apart from the text
// that streams.
type Bot struct {
	cfg      Config
	live     *liveTurns
	username atomic.Pointer[string]
}

// Named tells the bot its own username, without the @: a command in a group may name the bot that it is for. Until it is
// told, commands that name a bot are none.
func (b *Bot) Named(username string) { b.username.Store(&username) }

func (b *Bot) named() string {
	if p := b.username.Load(); p != nil {
		return *p
	}
	return ""
}

// New returns the conversation half of the bot.
func New(c Config) *Bot {
	c.Keep = cmp.Or(c.Keep, 30*24*time.Hour)
	return &Bot{cfg: c, live: newLiveTurns()}
}
