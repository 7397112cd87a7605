package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"drawbridge/internal/store"

	"github.com/go-telegram/bot/models"
)

// Lane says who waits for whom.
type Lane string

// The lanes. Within a chat each lane keeps its order, except that a control update that is tried again lets others pass.
const (
	// LaneControl is for taps and commands that must get through while a turn runs or a message is being prepared.
	LaneControl Lane = "control"
	// LaneOrdinary is for prompts and everything else.
	LaneOrdinary Lane = "ordinary"
)

// Handler decides what updates cause.
type Handler interface {
	// Handle puts everything that d causes into t. It is committed together with the removal of d from the inbox, so it
	// takes effect once; like every function of an Update it may run several times and must have no effect but through
	// t and d.After. An error is tried again with growing pauses, and after some tries the updates are set aside.
	Handle(t *store.Txn, d *Delivery) error
}

// Preparer is a Handler that needs slow work done before its commit, such as fetching a file. What Prepare returns
// stands in Delivery.Prepared; it is kept while Handle is tried again. Its errors count as Handle's do.
type Preparer interface {
	Prepare(ctx context.Context, d *Delivery) (any, error)
}

// AsideHandler is a Handler that wants to know what was set aside, to tell the chat: nothing sent to us is lost in
// silence. It joins the commit that sets it aside.
type AsideHandler interface {
	Aside(t *store.Txn, a Aside) error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(t *store.Txn, d *Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(t *store.Txn, d *Delivery) error { return f(t, d) }

// Delivery is what the inbox hands over at once: one update, or several consecutive ones of one person in one chat that
// are one message to their author (a long paste that the client cut into pieces, an album).
type Delivery struct {
	Updates  []*models.Update // at least one, in order
	Chat     ChatRef          // zero if the update has none
	Person   int64            // the Telegram user id, 0 if unknown; not checked in any way
	Lane     Lane
	Prepared any // what Prepare returned

	after []func(context.Context)
}

// Update is the first, and mostly the only, update.
func (d *Delivery) Update() *models.Update { return d.Updates[0] }

// After registers what shall happen once the commit has won, such as answering a tap. It runs at most once, in the order
// of registration, and is lost if the process dies in between. It must not block for long.
func (d *Delivery) After(f func(context.Context)) { d.after = append(d.after, f) }

// Aside is an update that was given up.
type Aside struct {
	Update string  // its id, as stored
	Chat   ChatRef // zero if not even that could be read
	Person int64
	// Err is why: ErrUndecodable, or what the handler returned last.
	Err error
}

// ErrUndecodable says that an update is not what the Bot API describes.
var ErrUndecodable = errors.New("bot: update can't be decoded")

// decodeUpdate reads one update. The library's decoding of a value of a kind that it does not know fails, and so fails
// this update alone.
func decodeUpdate(raw []byte) (u *models.Update, err error) {
	defer func() {
		if p := recover(); p != nil {
			u, err = nil, fmt.Errorf("%w: panic: %v", ErrUndecodable, p)
		}
	}()
	u = &models.Update{}
	if err := json.Unmarshal(raw, u); err != nil {
		// The error's text may quote what a person wrote; its type says enough.
		return nil, fmt.Errorf("%w: %T", ErrUndecodable, err)
	}
	return u, nil
}

// salvage reads where an undecodable update came from, as far as it can.
func salvage(raw []byte) (chat ChatRef, person int64) {
	var u struct {
		Message *struct {
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
			From struct {
				ID int64 `json:"id"`
			} `json:"from"`
			Thread int  `json:"message_thread_id"`
			Topic  bool `json:"is_topic_message"`
		} `json:"message"`
	}
	if json.Unmarshal(raw, &u) != nil || u.Message == nil {
		return ChatRef{}, 0
	}
	m := u.Message
	chat.ID = m.Chat.ID
	if m.Topic && m.Thread != generalTopic {
		chat.Topic = m.Thread
	}
	return chat, m.From.ID
}

// nearLimit is the length, in UTF-16 units, from which a message is probably a piece of a longer one: clients cut at
// 4096 and prefer a blank nearby.
const nearLimit = 4000

// openEnded reports whether more of the same may follow u: the rest of a cut paste, or of an album.
func openEnded(u *models.Update) bool {
	m := u.Message
	return m != nil && (m.MediaGroupID != "" || len(m.Text) >= nearLimit && len(utf16.Encode([]rune(m.Text))) >= nearLimit)
}

// continues reports whether next goes on with what last began.
func continues(last, next *models.Update) bool {
	if last.Message == nil || next.Message == nil {
		return false
	}
	a, b := last.Message, next.Message
	if a.MediaGroupID != "" || b.MediaGroupID != "" {
		return a.MediaGroupID == b.MediaGroupID
	}
	return openEnded(last) && b.Text != "" && !strings.HasPrefix(b.Text, "/")
}
