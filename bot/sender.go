package bot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"drawbridge/internal/store"
)

const (
	transientMost = 30 * time.Second
	// fileTries is how often a document's blob is asked for before the document is dropped.
	fileTries = 5
	// flying is how many calls are on their way at a time.
	flyingMost = 16
)

// sender is the state of one Run.
type sender struct {
	o     *Outbox
	slots chan struct{} // bounds the calls on their way
	fatal context.CancelCauseFunc
	ended chan ChatRef
	work  sync.WaitGroup
	// active and again belong to the loop's goroutine.
	active map[ChatRef]struct{}
	again  map[ChatRef]struct{} // chats that got more while being drained
}

// Run sends what is in the outbox until ctx ends, goes on for Grace as long as something is left, and returns nil. If ctx
// ended because its lease was lost, it stops at once instead. It returns an error only when Telegram refuses the token or
// the store is closed.
func (o *Outbox) Run(ctx context.Context) error {
	send, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	hints, err := o.cfg.DB.Listen(send, outboxIndex)
	if err != nil {
		return fmt.Errorf("bot: outbox: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrLeaseLost) {
			cancel(ErrLeaseLost)
			return
		}
		time.AfterFunc(o.cfg.Grace, func() { cancel(context.Canceled) })
	})
	defer stop()
	o.reset()
	o.setRunning(true)
	o.run(ctx, send, cancel, hints)
	o.setRunning(false)
	if cause := context.Cause(send); FaultOf(cause) == FaultUnauthorized {
		return cause
	}
	return nil
}

func (o *Outbox) setRunning(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = on
}

// run is the body of Run; send ends with the grace.
func (o *Outbox) run(ctx, send context.Context, fatal context.CancelCauseFunc, hints <-chan store.Message) {
	s := &sender{
		o: o, slots: make(chan struct{}, flyingMost), fatal: fatal, ended: make(chan ChatRef),
		active: map[ChatRef]struct{}{}, again: map[ChatRef]struct{}{},
	}
	defer s.work.Wait()
	// Previews end with ctx, before the grace: what is being stopped has nothing left to show.
	aside, end := context.WithCancel(ctx)
	defer end()
	s.work.Go(func() { o.runPreviews(aside) })
	s.work.Go(func() {
		for sleep(aside, pruneEvery) {
			if err := o.Prune(aside); err != nil && aside.Err() == nil {
				o.cfg.Logger.Warn("outbox not pruned", "err", err)
			}
		}
	})
	reread := time.NewTimer(0)
	defer reread.Stop()
	failing, stopping := false, ctx.Done()
	for {
		select {
		case <-send.Done():
			s.drainEnded()
			return
		case <-stopping:
			stopping = nil
			reread.Reset(0)
		case hint, open := <-hints:
			switch chat, err := ParseChat(string(hint.Body)); {
			case !open:
				hints = nil
			case err == nil:
				s.start(send, chat)
			default:
				reread.Reset(0)
			}
		case <-reread.C:
			err := s.scan(send)
			if err != nil && send.Err() == nil && !failing {
				o.cfg.Logger.Warn("outbox can't be read", "err", err)
			}
			failing = err != nil
			if err == nil && stopping == nil && len(s.active) == 0 {
				return
			}
			reread.Reset(o.cfg.Reread)
		case chat := <-s.ended:
			s.end(send, chat)
			if stopping == nil && len(s.active) == 0 {
				reread.Reset(0)
			}
		}
	}
}

// drainEnded takes the reports of drains that end with the context.
func (s *sender) drainEnded() {
	for len(s.active) > 0 {
		delete(s.active, <-s.ended)
	}
}

func (s *sender) scan(ctx context.Context) error {
	items, err := s.o.cfg.DB.Range(ctx, outboxIndex, math.MinInt64, store.MaxScore, 0)
	if err != nil {
		return err
	}
	for _, item := range items {
		chat, err := ParseChat(item.Member)
		if err != nil {
			s.o.cfg.Logger.Warn("outbox names no chat", "member", item.Member)
			continue
		}
		s.start(ctx, chat)
	}
	return nil
}

func (s *sender) start(ctx context.Context, chat ChatRef) {
	if _, busy := s.active[chat]; busy {
		s.again[chat] = struct{}{}
		return
	}
	s.active[chat] = struct{}{}
	s.work.Go(func() {
		s.drain(ctx, chat)
		s.ended <- chat
	})
}

func (s *sender) end(ctx context.Context, chat ChatRef) {
	delete(s.active, chat)
	if _, more := s.again[chat]; more {
		delete(s.again, chat)
		s.start(ctx, chat)
	}
}

// attempt is what was learned about the entry at the head of a chat.
type attempt struct {
	id           string
	seq          int
	fails        int
	files        int
	paced        bool // its moment has come
	plain, bare  bool // without formatting; without buttons and reply either
	asSend, file bool // an edit as a new message; the text as a file
}

// drain sends what waits in one chat, in order, until nothing is left.
func (s *sender) drain(ctx context.Context, chat ChatRef) {
	var a attempt
	for ctx.Err() == nil {
		more, err := s.step(ctx, chat, &a)
		switch {
		case err != nil && ctx.Err() == nil:
			a.fails++
			s.o.cfg.Logger.Debug("message not sent yet", "chat", chat.Key(), "try", a.fails, "err", err)
			d := backoff(a.fails, s.o.cfg.Retry, transientMost)
			sleep(ctx, jitter(d))
		case !more:
			return
		}
	}
}

// next reads the head of the chat and the messages it speaks of.
func (s *sender) next(ctx context.Context, chat ChatRef) (m outDoc, slot, reply Sent, ok bool, err error) {
	db := s.o.cfg.DB
	var c outChat
	_, docs, err := db.Read(ctx, outChatKey(chat.Key()))
	if err == nil {
		err = decodeDoc(docs[0], &c)
	}
	if err != nil || len(c.Queue) == 0 {
		return m, slot, reply, false, err
	}
	if _, docs, err = db.Read(ctx, outKey(c.Queue[0].ID)); err == nil {
		err = decodeDoc(docs[0], &m)
	}
	if err == nil && m.Kind == "" || errors.Is(err, store.ErrDamaged) {
		// Removed between the two reads, or not readable for ever: remove finds out, and the chat goes on.
		return outDoc{Outgoing: Outgoing{ID: c.Queue[0].ID, Chat: chat}}, slot, reply, true, nil
	}
	if err != nil {
		return m, slot, reply, false, err
	}
	var keys []string
	for _, k := range []string{m.Slot, m.ReplyToSlot} {
		if k == "" {
			k = "-"
		}
		keys = append(keys, messageKey(k))
	}
	if _, docs, err = db.Read(ctx, keys...); err == nil {
		err = errors.Join(decodeDoc(docs[0], &slot), decodeDoc(docs[1], &reply))
	}
	return m, slot, reply, err == nil, err
}

// step makes one attempt at the head of the chat. more tells that something may be left; an error is worth a pause.
func (s *sender) step(ctx context.Context, chat ChatRef, a *attempt) (more bool, err error) {
	o := s.o
	m, slot, reply, ok, err := s.next(ctx, chat)
	if err != nil || !ok {
		return false, err
	}
	if a.id != m.ID || a.seq != m.Seq {
		*a = attempt{id: m.ID, seq: m.Seq, paced: a.paced}
	}
	if m.Kind == "" {
		o.cfg.Logger.Warn("entry of the outbox is missing or unreadable", "chat", chat.Key(), "entry", m.ID)
		return true, s.finish(ctx, m, 0, "")
	}
	call, id, reason := shape(m.Outgoing, slot, a)
	if reason != "" {
		return true, s.finish(ctx, m, 0, reason)
	}
	replyTo := m.ReplyTo
	if replyTo == 0 && reply.Chat == m.Chat {
		replyTo = reply.MessageID
	}
	if a.bare {
		replyTo = 0
	}
	o.landed(ctx, m.Slot, call.Kind != KindSend)
	if call.Kind == KindEdit && o.shows(m.Slot, &call) {
		return true, s.finish(ctx, m, 0, "")
	}
	if !a.paced {
		// What is sent is read after the wait: meanwhile something newer may have taken its place.
		a.paced = o.turn(ctx, chat.ID)
		return a.paced, nil
	}
	file, err := s.file(ctx, &call)
	if err != nil {
		if a.files++; a.files < fileTries {
			return true, err
		}
		return true, s.finish(ctx, m, 0, ReasonNoFile)
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	a.paced = false
	made, err := o.cfg.API.Post(ctx, &call, id, replyTo, file)
	<-s.slots
	if fault := FaultOf(err); fault != "" && fault != FaultNotModified {
		return s.failed(ctx, m, &call, a, err)
	}
	switch call.Kind {
	case KindSend, KindDocument:
		o.show(m.Slot, &call)
		return true, s.finish(ctx, m, made, "")
	case KindEdit:
		o.show(m.Slot, &call)
	default:
		o.show(m.Slot, nil)
	}
	return true, s.finish(ctx, m, 0, "")
}

// shape turns an entry into the call to be made and the message it goes to, or gives the reason why there is none.
func shape(m Outgoing, slot Sent, a *attempt) (call Outgoing, id int, reason string) {
	call, id = m, m.MessageID
	if m.Kind == KindEdit || m.Kind == KindButtons || m.Kind == KindDelete {
		if id == 0 && slot.Chat.ID == m.Chat.ID {
			id = slot.MessageID
		}
		switch {
		case m.Kind == KindEdit && (a.asSend || id == 0 && m.Upsert):
			call.Kind, id = KindSend, 0
		case id == 0:
			return call, 0, ReasonNoMessage
		}
	}
	if a.plain {
		call.Entities = nil
	}
	if a.bare {
		call.Buttons = nil
	}
	if a.file {
		call.Kind, id = KindDocument, 0
		call.Document = &Document{Name: "message.txt", Bytes: []byte(m.Text)}
		call.Text, call.Entities = "", nil
	}
	return call, id, ""
}

func (s *sender) file(ctx context.Context, m *Outgoing) ([]byte, error) {
	switch {
	case m.Kind != KindDocument:
		return nil, nil
	case m.Document.Blob == "":
		return m.Document.Bytes, nil
	case s.o.cfg.Blob == nil:
		return nil, errors.New("bot: no blobs here")
	}
	return s.o.cfg.Blob(ctx, m.Document.Blob)
}

// failed decides what a refused or lost call means for the entry.
func (s *sender) failed(ctx context.Context, m outDoc, call *Outgoing, a *attempt, err error) (more bool, pause error) {
	o := s.o
	o.show(m.Slot, nil) // it may have arrived
	fault := FaultOf(err)
	log := o.cfg.Logger.With("chat", m.Chat.Key(), "slot", m.Slot, "err", err)
	switch fault {
	case FaultRetryAfter:
		o.flooded(m.Chat.ID, err)
		log.Debug("told to wait")
		return true, nil
	case FaultUnauthorized:
		s.fatal(fmt.Errorf("bot: telegram refuses the token: %w", err))
		return false, nil
	case FaultMigrated:
		e, _ := errors.AsType[*Error](err)
		if m.Chat.Topic != 0 || e.MigrateTo == m.Chat.ID { // only plain groups become something else
			return true, s.finish(ctx, m, 0, string(FaultGone))
		}
		log.Info("group became a supergroup", "to", e.MigrateTo)
		return true, store.Update(ctx, o.cfg.DB, func(t *store.Txn) error { return o.Migrate(t, m.Chat.ID, e.MigrateTo) })
	case FaultBadEntities, FaultRejected:
		switch {
		case !a.plain && len(call.Entities) > 0:
			a.plain = true
		case fault == FaultRejected && !a.bare && (len(call.Buttons) > 0 || m.ReplyTo != 0 || m.ReplyToSlot != ""):
			a.plain, a.bare = true, true
		case !a.file && call.Text != "" && call.Kind != KindDocument:
			a.file = true
		default:
			return true, s.finish(ctx, m, 0, string(fault))
		}
		log.Warn("message refused, sent in a plainer form", "plain", a.plain, "bare", a.bare, "file", a.file)
		return true, nil
	case FaultGone:
		switch {
		case m.Kind == KindDelete:
			return true, s.finish(ctx, m, 0, "")
		case m.Kind == KindEdit && m.Upsert && !a.asSend:
			a.asSend = true
			return true, nil
		}
		return true, s.finish(ctx, m, 0, string(fault))
	case FaultForbidden:
		return true, s.finish(ctx, m, 0, string(fault))
	default:
		return true, err
	}
}

// finish removes an entry, however often the store has to be asked: what was sent must not be sent again.
func (s *sender) finish(ctx context.Context, m outDoc, sent int, reason string) error {
	if reason != "" {
		s.o.cfg.Logger.Warn("message dropped", "chat", m.Chat.Key(), "slot", m.Slot, "kind", string(m.Kind), "reason", reason)
	}
	for n := 1; ; n++ {
		// The commit is not cut short by a stop: it would only make a duplicate.
		commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		err := s.o.remove(commit, m, sent, reason)
		cancel()
		if err == nil {
			return nil
		}
		s.o.cfg.Logger.Warn("sent message not taken out of the outbox yet", "chat", m.Chat.Key(), "slot", m.Slot, "err", err)
		if !sleep(ctx, backoff(n, s.o.cfg.Retry, transientMost)) {
			return err
		}
	}
}

// turn waits until chat may have a message, first by its own limits and then by those over all chats. Each wait is booked
// in advance, so that of many topics of one group each gets its turn.
func (o *Outbox) turn(ctx context.Context, chat int64) bool {
	book := func(p func() *pacer) bool {
		for {
			o.mu.Lock()
			at := p().next(time.Now())
			p().take(at)
			o.mu.Unlock()
			if !sleep(ctx, time.Until(at)) {
				return false
			}
			o.mu.Lock()
			blocked := p().blocked.After(time.Now())
			o.mu.Unlock()
			if !blocked {
				return true
			}
		}
	}
	return book(func() *pacer { return o.pacer(chat) }) && book(func() *pacer { return &o.all })
}

// pacer is the pace of one Telegram chat. The caller holds mu.
func (o *Outbox) pacer(chat int64) *pacer {
	p := o.pacers[chat]
	if p == nil {
		p = &pacer{rates: o.cfg.Pace.Private}
		if chat < 0 {
			p.rates = o.cfg.Pace.Group
		}
		o.pacers[chat] = p
	}
	return p
}

// flooded keeps a chat silent for as long as Telegram says. Telegram does not say whether it meant the chat or the bot:
// when a second chat is told to wait while the first still does, all do.
func (o *Outbox) flooded(chat int64, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	until := now.Add(e.RetryAfter)
	o.pacer(chat).block(until)
	for other, t := range o.floods {
		switch {
		case !t.After(now):
			delete(o.floods, other)
		case other != chat:
			o.all.block(until)
		}
	}
	o.floods[chat] = until
}
