package runner

import (
	"context"
	"time"
)

// Lister is a Runtime that knows the sessions of a folder, also those that a person began in a terminal.
type Lister interface {
	// Sessions returns the sessions of a folder, the one used last first, at most limit of them. It starts nothing and
	// changes nothing.
	Sessions(ctx context.Context, folder string, limit int) ([]SessionInfo, error)
}

// SessionInfo is a session as a Lister sees it.
type SessionInfo struct {
	Token string    `json:"token"` // what Options.Resume takes
	Title string    `json:"title,omitempty"`
	Used  time.Time `json:"used,omitzero"`
	// Last are the last messages, oldest first, so that a person recognises the session: a few, each bounded.
	Last []SessionLine `json:"last,omitempty"`
	// Busy says that another process has the session open at this moment, as far as that can be seen.
	Busy bool `json:"busy,omitempty"`
	// Command continues the session in a terminal, to be copied as it is; empty if the runtime has no such command.
	Command string `json:"command,omitempty"`
}

// SessionLine is one message of a session.
type SessionLine struct {
	Agent bool   `json:"agent,omitempty"` // else the person's
	Text  string `json:"text"`
}
