package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"drawbridge/internal/store"
)

// The keys of the outbox. Only gateways write them.
const (
	outboxIndex   = "g:outbox"   // chats with something to send, by since when; also the topic of hints, whose body is a chat
	messagesIndex = "g:messages" // slots whose message is known, by when it was sent
	droppedIndex  = "g:dropped"
)

func outKey(id string) string       { return "g:out:" + id }
func outChatKey(chat string) string { return "g:outchat:" + chat }
func messageKey(slot string) string { return "g:message:" + slot }
func droppedKey(id string) string   { return "g:dropped:" + id }

// outDoc is an entry of the outbox. Seq grows when a newer edit takes its place, so that whoever is sending the older one
// finds out.
type outDoc struct {
	Outgoing

	Seq int `json:"seq,omitempty"`
}

// outChat is the order of a chat: the ids of its entries, first one first.
type outChat struct {
	V     int      `json:"v"`
	Queue []queued `json:"queue"`
}

type queued struct {
	ID      string `json:"id"`
	Kind    Kind   `json:"kind"`
	Slot    string `json:"slot,omitempty"`
	Message int    `json:"message,omitempty"`
}

// Sent is the message that stands under a slot.
type Sent struct {
	V         int       `json:"v"`
	Chat      ChatRef   `json:"chat"`
	MessageID int       `json:"message_id"`
	At        time.Time `json:"at"`
	Final     bool      `json:"final,omitempty"` // nothing follows
}

// droppedDoc records what never reached its chat, without its text.
type droppedDoc struct {
	V      int       `json:"v"`
	Chat   ChatRef   `json:"chat"`
	Kind   Kind      `json:"kind"`
	Slot   string    `json:"slot,omitempty"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// The reasons for which an entry is dropped, beside the faults FaultGone, FaultForbidden and FaultRejected.
const (
	ReasonNoMessage = "no_message" // an edit or deletion of a slot that was never sent
	ReasonNoFile    = "no_file"    // a document whose blob can't be fetched
)

// OutboxConfig says how messages leave. DB, API and Logger are required.
type OutboxConfig struct {
	DB     store.DB
	API    *API
	Logger *slog.Logger
	Pace   Pace // DefaultPace where zero
	// Blob fetches what a Document names; nil if there is nothing to fetch.
	Blob func(ctx context.Context, name string) ([]byte, error)
	// OnDropped joins the commit that gives an entry up. The reason is a fault or one of the Reason words.
	OnDropped func(t *store.Txn, m Outgoing, reason string) error
	// OnMigrated joins the commit that moves a group's entries to the supergroup that it became. It may be called again
	// for the same pair.
	OnMigrated func(t *store.Txn, from, to int64) error
	// Retry is the first pause after a failure that may pass (500 ms); it doubles up to 30 s, with jitter.
	Retry time.Duration
	// Grace is how long Run goes on sending after its context has ended (5 s).
	Grace time.Duration
	// Reread is how often the index is read without a hint (2 s).
	Reread time.Duration
	// KeepSlots is how long a slot's message id is remembered (60 days), KeepDropped how long a dropped entry is (7 days).
	KeepSlots, KeepDropped time.Duration
}

// Outbox is what goes out. Any gateway may Put; one Run at a time sends. It is safe for concurrent use.
type Outbox struct {
	cfg OutboxConfig

	mu      sync.Mutex
	running bool
	pacers  map[int64]*pacer // by Telegram chat: its topics share Telegram's limits
	all     pacer
	floods  map[int64]time.Time // chats that were told to wait, until when
	live    previews
}

// NewOutbox returns an outbox. It sends nothing before Run.
func NewOutbox(cfg OutboxConfig) *Outbox {
	cfg.Pace = cfg.Pace.orDefault()
	cfg.Retry = cmp.Or(cfg.Retry, 500*time.Millisecond)
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	cfg.Reread = cmp.Or(cfg.Reread, 2*time.Second)
	cfg.KeepSlots = cmp.Or(cfg.KeepSlots, 60*24*time.Hour)
	cfg.KeepDropped = cmp.Or(cfg.KeepDropped, 7*24*time.Hour)
	o := &Outbox{cfg: cfg}
	o.reset()
	return o
}

func (o *Outbox) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pacers, o.floods = map[int64]*pacer{}, map[int64]time.Time{}
	o.all = pacer{rates: o.cfg.Pace.All}
	o.live = newPreviews()
}

// Put puts m into the outbox as part of the caller's transaction, behind what waits for the same chat. An edit of a
// message that itself still waits, or that waits to be edited, takes the place of what it makes obsolete: only the newest
// text is sent. The guard of the chat's order makes the caller's Update try again when somebody else put something there.
func (o *Outbox) Put(t *store.Txn, m Outgoing) error {
	m.V = Version
	if m.ID == "" {
		m.ID = rand.Text()
	}
	if err := m.check(); err != nil {
		return err
	}
	chat := m.Chat.Key()
	c, _, err := store.Get[outChat](t, outChatKey(chat))
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	m.Created = now
	taken, err := coalesce(t, &c, m)
	if err != nil {
		return err
	}
	if !taken {
		if len(c.Queue) == 0 {
			t.Add(outboxIndex, chat, store.Micros(now))
		}
		c.Queue = append(c.Queue, queued{ID: m.ID, Kind: m.Kind, Slot: m.Slot, Message: m.MessageID})
		if err := store.Put(t, outKey(m.ID), outDoc{Outgoing: m}); err != nil {
			return err
		}
	}
	c.V = Version
	t.Publish(outboxIndex, []byte(chat))
	return store.Put(t, outChatKey(chat), c)
}

// coalesce lets m take the place of entries that it makes obsolete, and reports whether it did, or else m is to be queued.
func coalesce(t *store.Txn, c *outChat, m Outgoing) (taken bool, err error) {
	same := func(q queued) bool {
		return m.Slot != "" && q.Slot == m.Slot || m.MessageID != 0 && q.Message == m.MessageID
	}
	if m.Kind != KindEdit && m.Kind != KindButtons && m.Kind != KindDelete {
		return false, nil
	}
	var rest []queued
	for _, q := range c.Queue {
		edits := q.Kind == KindEdit || q.Kind == KindButtons
		if !same(q) || taken || !edits && (q.Kind != KindSend || m.Kind == KindDelete) {
			rest = append(rest, q)
			continue
		}
		d, ok, err := store.Get[outDoc](t, outKey(q.ID))
		if err != nil {
			return false, err
		}
		if !ok {
			rest = append(rest, q)
			continue
		}
		taken = true
		d.Seq++
		d.Buttons, d.Final = m.Buttons, d.Final || m.Final
		if m.Kind == KindEdit {
			d.Text, d.Entities, d.Upsert = m.Text, m.Entities, d.Upsert || m.Upsert
		}
		if m.Kind == KindDelete || m.Kind == KindEdit && q.Kind == KindButtons {
			d.Kind = m.Kind
		}
		q.Kind = d.Kind
		if err := store.Put(t, outKey(q.ID), d); err != nil {
			return false, err
		}
		rest = append(rest, q)
	}
	c.Queue = rest
	return taken, nil
}

// SentAs is the message that stands under slot, if it is known.
func SentAs(t *store.Txn, slot string) (Sent, bool, error) {
	return store.Get[Sent](t, messageKey(slot))
}

// Adopt makes the message that a tap came from the one that stands under slot: a message may have been sent and its id
// lost in a crash before the commit. What waits to be sent under the slot becomes an edit of the message, so that there is
// no second copy; one that is on its way is deleted when it has arrived. It returns the id that stood there before, 0 if
// none.
func (o *Outbox) Adopt(t *store.Txn, slot string, chat ChatRef, messageID int) (before int, err error) {
	s, _, err := SentAs(t, slot)
	if err != nil || s.MessageID == messageID && s.Chat == chat {
		return s.MessageID, err
	}
	key := outChatKey(chat.Key())
	c, ok, err := store.Get[outChat](t, key)
	if err != nil {
		return 0, err
	}
	for i, q := range c.Queue {
		if q.Slot != slot || q.Kind != KindSend {
			continue
		}
		d, known, err := store.Get[outDoc](t, outKey(q.ID))
		if err != nil || !known {
			return 0, err
		}
		d.Seq++
		d.Kind, c.Queue[i].Kind = KindEdit, KindEdit
		if err := store.Put(t, outKey(q.ID), d); err != nil {
			return 0, err
		}
	}
	if ok {
		if err := store.Put(t, key, c); err != nil {
			return 0, err
		}
	}
	return s.MessageID, putSent(t, slot, Sent{Chat: chat, MessageID: messageID, Final: s.Final})
}

func putSent(t *store.Txn, slot string, s Sent) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	s.V, s.At = Version, now
	t.Add(messagesIndex, slot, store.Micros(now))
	return store.Put(t, messageKey(slot), s)
}

// Migrate moves what waits for the group from to the supergroup that it became. It is called when Telegram answers so,
// and may be called when an update says so; a second call finds nothing to move.
func (o *Outbox) Migrate(t *store.Txn, from, to int64) error {
	was, is := ChatRef{ID: from}, ChatRef{ID: to}
	old, _, err := store.Get[outChat](t, outChatKey(was.Key()))
	if err != nil {
		return err
	}
	if len(old.Queue) > 0 {
		c, _, err := store.Get[outChat](t, outChatKey(is.Key()))
		if err != nil {
			return err
		}
		for _, q := range old.Queue {
			d, ok, err := store.Get[outDoc](t, outKey(q.ID))
			if err != nil {
				return err
			}
			if ok {
				d.Chat = is
				d.ReplyTo = 0 // numbers of the old group mean other messages in the new one
				if err := store.Put(t, outKey(q.ID), d); err != nil {
					return err
				}
			}
		}
		now, err := t.Now()
		if err != nil {
			return err
		}
		c.V, c.Queue = Version, append(c.Queue, old.Queue...)
		if err := store.Put(t, outChatKey(is.Key()), c); err != nil {
			return err
		}
		t.Add(outboxIndex, is.Key(), store.Micros(now))
		t.Publish(outboxIndex, []byte(is.Key()))
		t.Delete(outChatKey(was.Key()))
	}
	t.Drop(outboxIndex, was.Key())
	if o.cfg.OnMigrated != nil {
		return o.cfg.OnMigrated(t, from, to)
	}
	return nil
}

// errMoved says that an entry is not at the head of its chat any more.
var errMoved = errors.New("bot: entry left the outbox")

// remove is the only way out of the outbox. sent is the id of a message that m made, 0 if it made none; reason is why m
// is dropped, empty if it was done. When a newer text took m's place while m was being sent, that one stays, as an edit
// of the message.
func (o *Outbox) remove(ctx context.Context, m outDoc, sent int, reason string) error {
	chat := m.Chat.Key()
	err := store.Update(ctx, o.cfg.DB, func(t *store.Txn) error {
		if err := t.Load(outChatKey(chat), outKey(m.ID)); err != nil {
			return err
		}
		c, _, err := store.Get[outChat](t, outChatKey(chat))
		if err != nil {
			return err
		}
		if len(c.Queue) == 0 || c.Queue[0].ID != m.ID {
			return errMoved
		}
		cur, _, err := store.Get[outDoc](t, outKey(m.ID))
		if errors.Is(err, store.ErrDamaged) {
			cur, err = m, nil
		}
		if err != nil {
			return err
		}
		if m.Kind == "" && cur.Kind != "" {
			return nil // it was there after all
		}
		copied := false
		if m.Slot != "" && reason == "" {
			if copied, err = adopted(t, m, sent); err != nil {
				return err
			}
			if !copied {
				if err := o.remember(t, m, sent); err != nil {
					return err
				}
			}
		}
		if cur.Seq != m.Seq {
			if cur.Kind == KindSend && reason == "" {
				cur.Kind, c.Queue[0].Kind = KindEdit, KindEdit
			}
			if err := store.Put(t, outKey(m.ID), cur); err != nil {
				return err
			}
			if err := store.Put(t, outChatKey(chat), c); err != nil || !copied {
				return err
			}
			return o.Put(t, Outgoing{Chat: m.Chat, Kind: KindDelete, MessageID: sent})
		}
		if reason != "" {
			if err := o.record(t, cur.Outgoing, reason); err != nil {
				return err
			}
		}
		t.Delete(outKey(m.ID))
		if c.Queue = c.Queue[1:]; len(c.Queue) > 0 {
			return store.Put(t, outChatKey(chat), c)
		}
		t.Delete(outChatKey(chat))
		t.Drop(outboxIndex, chat)
		return nil
	})
	if errors.Is(err, errMoved) {
		return nil
	}
	return err
}

// adopted reports whether another message has taken the slot of one that was just sent, in Adopt: then this is a copy.
func adopted(t *store.Txn, m outDoc, sent int) (bool, error) {
	if sent == 0 || m.Kind != KindSend {
		return false, nil
	}
	s, ok, err := SentAs(t, m.Slot)
	return ok && s.Chat == m.Chat && s.MessageID != sent, err
}

// remember keeps what is known of a slot after its entry was done.
func (o *Outbox) remember(t *store.Txn, m outDoc, sent int) error {
	switch {
	case m.Kind == KindDelete:
		t.Delete(messageKey(m.Slot))
		t.Drop(messagesIndex, m.Slot)
		return nil
	case sent != 0:
		return putSent(t, m.Slot, Sent{Chat: m.Chat, MessageID: sent, Final: m.Final})
	case m.Final:
		s, ok, err := SentAs(t, m.Slot)
		if err != nil || !ok {
			return err
		}
		s.Final = true
		return store.Put(t, messageKey(m.Slot), s)
	}
	return nil
}

func (o *Outbox) record(t *store.Txn, m Outgoing, reason string) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	t.Add(droppedIndex, m.ID, store.Micros(now))
	if err := store.Put(t, droppedKey(m.ID), droppedDoc{Version, m.Chat, m.Kind, m.Slot, reason, now}); err != nil {
		return err
	}
	if o.cfg.OnDropped != nil {
		return o.cfg.OnDropped(t, m, reason)
	}
	return nil
}

// Prune forgets slots and dropped entries that are older than the configuration keeps them. Run calls it.
func (o *Outbox) Prune(ctx context.Context) error {
	for _, p := range []struct {
		index string
		key   func(string) string
		keep  time.Duration
	}{{messagesIndex, messageKey, o.cfg.KeepSlots}, {droppedIndex, droppedKey, o.cfg.KeepDropped}} {
		n := pruneBatch
		for n == pruneBatch {
			err := store.Update(ctx, o.cfg.DB, func(t *store.Txn) error {
				now, err := t.Now()
				if err != nil {
					return err
				}
				old, err := t.Range(p.index, math.MinInt64, store.Micros(now.Add(-p.keep)), pruneBatch)
				if err != nil {
					return err
				}
				n = len(old)
				for _, item := range old {
					t.Delete(p.key(item.Member))
					t.Drop(p.index, item.Member)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("bot: prune outbox: %w", err)
			}
		}
	}
	return nil
}
