package bot

import (
	"cmp"
	"log/slog"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
)

// Config is what a Bot needs.
type Config struct {
	DB        store.DB
	Chats     *bridge.Chats
	Approvals *approvals.Service
	Outbox    *Outbox
	API       *API
	Acker     *Acker
	People    *People
	// Username is the bot's own, without the @, to tell whether a command in a group is meant for it.
	Username string
	Logger   *slog.Logger
	// Keep is how long the meaning of buttons is kept; default 30 days.
	Keep time.Duration
}

// Bot is the conversation: what updates cause (Handle), what the hosts' logs look like in a chat (Project, Live), and
// how cards show what was decided (Decided). It keeps nothing in memory that a restart could lose, apart from the text
// that streams.
type Bot struct {
	cfg  Config
	live *liveTurns
}

// New returns the conversation half of the bot.
func New(c Config) *Bot {
	c.Keep = cmp.Or(c.Keep, 30*24*time.Hour)
	return &Bot{cfg: c, live: newLiveTurns()}
}
