package bot

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"drawbridge/internal/store"
)

const (
	// previewTimeout bounds a Live edit: a durable one of the same slot waits for it, lest the older text arrive last.
	previewTimeout = 5 * time.Second
	// previewIdle is how long to wait for room, or for the message itself, before looking again.
	previewIdle = 200 * time.Millisecond
	// previewPatience is how long a preview waits for its message to be sent.
	previewPatience = time.Minute
	// shownMost bounds how many slots' last texts are remembered; forgetting costs one edit that changes nothing.
	shownMost = 4096
)

// previews is what Live knows. Outbox.mu guards it.
type previews struct {
	pending map[string]livePreview
	flying  map[string]chan struct{} // slots with an edit on its way; closed when it is over
	next    map[int64]time.Time      // when a chat may have its next one
	shown   map[string][sha256.Size]byte
	wake    chan struct{}
}

type livePreview struct {
	m      Outgoing
	digest [sha256.Size]byte
	since  time.Time
}

func newPreviews() previews {
	return previews{
		pending: map[string]livePreview{}, flying: map[string]chan struct{}{}, next: map[int64]time.Time{},
		shown: map[string][sha256.Size]byte{}, wake: make(chan struct{}, 1),
	}
}

// Live shows m under slot for as long as nothing better is known: the text of a message that is still being written. It
// returns at once and keeps nothing: only the latest text of a slot is sent, at the configured pace and never the same one
// twice; it is dropped when something durable is queued for the slot, when the slot is final, and when this process does
// not send. It never delays what is durable. m is an edit, or a KindDraft; its slot need not have been sent yet.
func (o *Outbox) Live(slot string, m Outgoing) {
	m.Slot = slot
	if m.Kind != KindDraft {
		m.Kind = KindEdit
	}
	p := livePreview{m, m.digest(), time.Now()}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.running || slot == "" || m.Text == "" && m.Kind == KindEdit {
		return
	}
	if shown, ok := o.live.shown[slot]; ok && shown == p.digest {
		delete(o.live.pending, slot) // what waited is older
		return
	}
	if was, ok := o.live.pending[slot]; ok {
		p.since = was.since
	}
	o.live.pending[slot] = p
	select {
	case o.live.wake <- struct{}{}:
	default:
	}
}

// show remembers what stands in a slot's message; nil forgets it.
func (o *Outbox) show(slot string, m *Outgoing) {
	if slot == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if m == nil {
		delete(o.live.shown, slot)
		return
	}
	if len(o.live.shown) >= shownMost {
		clear(o.live.shown)
	}
	o.live.shown[slot] = m.digest()
}

// shows reports whether slot's message already looks like m.
func (o *Outbox) shows(slot string, m *Outgoing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	shown, ok := o.live.shown[slot]
	return ok && shown == m.digest()
}

// landed waits until no Live edit of slot is on its way. drop also gives up what waits for it.
func (o *Outbox) landed(ctx context.Context, slot string, drop bool) {
	if slot == "" {
		return
	}
	o.mu.Lock()
	if drop {
		delete(o.live.pending, slot)
	}
	flying := o.live.flying[slot]
	o.mu.Unlock()
	if flying != nil {
		select {
		case <-flying:
		case <-ctx.Done():
		}
	}
}

// runPreviews sends Live edits until ctx ends, and waits for those on their way.
func (o *Outbox) runPreviews(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	o.mu.Lock()
	wake := o.live.wake
	o.mu.Unlock()
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-t.C:
		}
		t.Reset(o.startPreviews(ctx, &work))
	}
}

// startPreviews sends what is due and returns when to look again.
func (o *Outbox) startPreviews(ctx context.Context, work *sync.WaitGroup) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, again := time.Now(), time.Hour
	for slot, p := range o.live.pending {
		if o.live.flying[slot] != nil {
			continue // its end wakes the loop
		}
		if wait := o.live.next[p.m.Chat.ID].Sub(now); wait > 0 {
			again = min(again, wait)
			continue
		}
		// Drafts are not messages; Telegram counts them apart.
		if p.m.Kind == KindEdit && (!o.pacer(p.m.Chat.ID).spare(now) || !o.all.spare(now)) {
			again = min(again, previewIdle)
			continue
		}
		every := o.cfg.Pace.Live
		if !p.m.Chat.Private() {
			every = o.cfg.Pace.LiveGroup
		}
		o.live.next[p.m.Chat.ID] = now.Add(every)
		landed := make(chan struct{})
		o.live.flying[slot] = landed
		delete(o.live.pending, slot)
		work.Go(func() {
			retry := o.sendPreview(ctx, p)
			o.mu.Lock()
			delete(o.live.flying, slot)
			close(landed)
			if _, newer := o.live.pending[slot]; retry && !newer && ctx.Err() == nil {
				o.live.pending[slot] = p
			}
			wake := o.live.wake
			o.mu.Unlock()
			select {
			case wake <- struct{}{}:
			default:
			}
		})
	}
	return again
}

// sendPreview makes one attempt and reports whether the same text is worth another.
func (o *Outbox) sendPreview(ctx context.Context, p livePreview) (retry bool) {
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	m := &p.m
	var sent Sent
	var queue outChat
	_, docs, err := o.cfg.DB.Read(ctx, messageKey(m.Slot), outChatKey(m.Chat.Key()))
	if err != nil || decodeDoc(docs[0], &sent) != nil || decodeDoc(docs[1], &queue) != nil {
		return false
	}
	for _, q := range queue.Queue {
		if q.Slot == m.Slot && (q.Kind != KindSend || m.Kind == KindDraft) {
			return false // something durable comes for it
		}
	}
	waits := len(queue.Queue) > 0 || m.Kind == KindEdit && sent.MessageID == 0
	switch {
	case sent.Final, m.Kind == KindDraft && sent.MessageID != 0:
		return false
	case waits:
		o.mu.Lock()
		o.live.next[m.Chat.ID] = time.Now().Add(previewIdle)
		o.mu.Unlock()
		return time.Since(p.since) < previewPatience
	}
	if m.Kind == KindEdit {
		o.mu.Lock()
		now := time.Now()
		room := o.pacer(m.Chat.ID).spare(now) && o.all.spare(now)
		if room {
			o.pacer(m.Chat.ID).take(now)
			o.all.take(now)
		}
		o.mu.Unlock()
		if !room {
			return true
		}
	}
	_, err = o.cfg.API.Post(ctx, m, sent.MessageID, 0, nil)
	switch fault := FaultOf(err); fault {
	case "", FaultNotModified:
		o.show(m.Slot, m)
		return false
	case FaultRetryAfter:
		o.flooded(m.Chat.ID, err)
		return m.Kind == KindEdit
	default:
		o.show(m.Slot, nil) // it may have arrived
		o.cfg.Logger.Debug("live edit failed", "chat", m.Chat.Key(), "slot", m.Slot, "err", err)
		return false
	}
}

func decodeDoc(d store.Doc, v any) error {
	if d.Rev == "" {
		return nil
	}
	if err := json.Unmarshal(d.Value, v); err != nil {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return nil
}
