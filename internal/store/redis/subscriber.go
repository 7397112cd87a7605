package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"drawbridge/internal/store"
)

const (
	// confirmWait is how long Listen waits for the server to confirm.
	confirmWait  = 3 * time.Second
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = time.Second
)

// subscriber keeps one connection for all listeners of a DB and replaces it when it is lost. The loop that reads is
// started by the first listener. mu is held during writes to the connection, and so at most for a dial.
type subscriber struct {
	client  goredis.UniversalClient
	prefix  string
	hub     *store.Hub
	log     *slog.Logger
	silence time.Duration // Options.Silence

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	loop   sync.WaitGroup
	wake   chan struct{} // tells a loop without topics that there is one

	mu      sync.Mutex
	started bool
	topics  map[string]*topic
	conn    *goredis.PubSub // nil between two connections
	// unconfirmed counts the SUBSCRIBEs of a topic that conn has not answered. A topic that was left and taken up again
	// is heard only after the last of them.
	unconfirmed map[string]int
}

// topic is guarded by subscriber.mu. settled is closed when the server has confirmed (err is nil) or refused it.
type topic struct {
	refs    int
	settled chan struct{}
	err     error
	heard   bool // confirmed on the present connection
	missed  bool // was heard before and is not now: hints may be lost
}

func newSubscriber(client goredis.UniversalClient, prefix string, hub *store.Hub, log *slog.Logger) *subscriber {
	ctx, cancel := context.WithCancel(context.Background())
	return &subscriber{
		client: client, prefix: prefix, hub: hub, log: log, ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), topics: map[string]*topic{},
	}
}

func (s *subscriber) listen(ctx context.Context, names []string) (<-chan store.Message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	held, err := s.enter(names)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	// Joined before it is confirmed, so that no hint falls between the two.
	ch, err := s.hub.Join(ctx, names, func() {
		cancel()
		s.leave(held)
	})
	if err != nil {
		cancel()
		s.leave(held)
		return nil, err
	}
	if err := s.await(ctx, held); err != nil {
		cancel()
		return nil, err
	}
	return ch, nil
}

// enter takes a share in each topic and subscribes to those that nobody listened to.
func (s *subscriber) enter(names []string) (map[string]*topic, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, store.ErrClosed
	}
	held := map[string]*topic{}
	var fresh []string
	for _, n := range names {
		t := s.topics[n]
		if t == nil {
			t = &topic{settled: make(chan struct{})}
			s.topics[n] = t
			fresh = append(fresh, n)
		}
		t.refs++
		held[n] = t
	}
	if len(fresh) > 0 {
		s.subscribe(fresh...)
	}
	if !s.started && len(names) > 0 {
		s.started = true
		s.loop.Go(s.run)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return held, nil
}

// subscribe is called with mu. After a failed write the connection is closed, because go-redis would replace it behind
// the loop's back, and nobody would be told of what was lost between the two.
func (s *subscriber) subscribe(names ...string) {
	if s.conn == nil {
		return
	}
	channels := make([]string, len(names))
	for i, n := range names {
		channels[i] = s.prefix + n
		s.unconfirmed[n]++
	}
	if err := s.conn.Subscribe(s.ctx, channels...); err != nil {
		_ = s.conn.Close()
	}
}

func (s *subscriber) leave(held map[string]*topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, t := range held {
		t.refs--
		if t.refs > 0 || s.topics[n] != t {
			continue
		}
		delete(s.topics, n)
		if s.conn != nil && s.ctx.Err() == nil {
			if err := s.conn.Unsubscribe(s.ctx, s.prefix+n); err != nil {
				_ = s.conn.Close()
			}
		}
	}
}

func (s *subscriber) await(ctx context.Context, held map[string]*topic) error {
	timeout := time.NewTimer(confirmWait)
	defer timeout.Stop()
	for n, t := range held {
		s.mu.Lock()
		settled := t.settled
		s.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return store.ErrClosed
		case <-timeout.C:
			return fmt.Errorf("%w: %s was not confirmed", store.ErrUnavailable, n)
		}
		s.mu.Lock()
		err := t.err
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *subscriber) close() {
	s.cancel()
	s.mu.Lock()
	if s.conn != nil {
		_ = s.conn.Close() // ends the loop's Receive
	}
	s.mu.Unlock()
	s.loop.Wait()
}

// run keeps a connection while there are topics.
func (s *subscriber) run() {
	backoff := firstBackoff
	for s.ctx.Err() == nil {
		conn := s.connect()
		if conn == nil {
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
			continue
		}
		heard, err := s.receive(conn)
		missed := s.disconnect(conn)
		if s.ctx.Err() != nil {
			return
		}
		if heard {
			backoff = firstBackoff
		}
		if missed {
			s.log.WarnContext(s.ctx, "the connection for hints was lost", "err", err)
		}
		select {
		case <-time.After(backoff):
		case <-s.ctx.Done():
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// connect subscribes a new connection to all topics; without topics it returns nil.
func (s *subscriber) connect() *goredis.PubSub {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.topics) == 0 {
		return nil
	}
	names := make([]string, 0, len(s.topics))
	for n := range s.topics {
		names = append(names, n)
	}
	s.conn = s.client.Subscribe(s.ctx)
	s.unconfirmed = map[string]int{}
	s.subscribe(names...)
	return s.conn
}

// disconnect says whether there is somebody who may miss hints from here on. Without topics the connection ends by itself,
// because nobody answers ask.
func (s *subscriber) disconnect(conn *goredis.PubSub) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = conn.Close()
	s.conn = nil
	for _, t := range s.topics {
		if t.heard {
			t.heard, t.missed, t.settled = false, true, make(chan struct{})
			missed = true
		}
	}
	return missed
}

// receive reads until the connection is lost and says whether anything was confirmed on it.
func (s *subscriber) receive(conn *goredis.PubSub) (heard bool, err error) {
	asked := false
	for {
		msg, err := conn.ReceiveTimeout(s.ctx, s.silence)
		var timeout net.Error
		switch {
		case err == nil:
			asked = false
		case errors.As(err, &timeout) && timeout.Timeout() && !asked:
			asked = true
			s.ask()
			continue
		default:
			s.refuse(err)
			return heard, err
		}
		switch msg := msg.(type) {
		case *goredis.Subscription:
			if msg.Kind == "subscribe" {
				heard = true
				s.confirm(strings.TrimPrefix(msg.Channel, s.prefix))
			}
		case *goredis.Message:
			_ = s.hub.Deliver(store.Message{Topic: strings.TrimPrefix(msg.Channel, s.prefix), Body: []byte(msg.Payload)})
		}
	}
}

// ask subscribes once more to a topic, because the answer is a sign of life that needs no other permission, as PING would.
func (s *subscriber) ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.topics {
		s.subscribe(n)
		return
	}
}

func (s *subscriber) confirm(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unconfirmed[name]--; s.unconfirmed[name] > 0 {
		return
	}
	delete(s.unconfirmed, name)
	t := s.topics[name]
	if t == nil || t.heard {
		return
	}
	t.heard = true
	close(t.settled)
	if t.missed {
		t.missed = false
		s.hub.Lost(name)
	}
}

// refuse tells those who wait for a first confirmation that the ACL does not let them listen.
func (s *subscriber) refuse(err error) {
	if err = translate(s.ctx, err); !errors.Is(err, ErrForbidden) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, t := range s.topics {
		if !t.heard && !t.missed {
			t.err = err
			close(t.settled)
			delete(s.topics, n)
		}
	}
}
