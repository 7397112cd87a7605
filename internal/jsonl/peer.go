package jsonl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// DefaultTimeout is how long a request of ours may take.
	DefaultTimeout = time.Minute
	// DefaultQueueLimit is how many bytes of frames may wait to be handled: a few of the largest ones, or hundreds of
	// thousands of lines of output.
	DefaultQueueLimit = 2 * DefaultLimit
	// maxOpen bounds the requests of the program that are being handled; it gets an error for any more.
	maxOpen = 1000
	// tailWait is how long the end waits for the rest of the standard error. Only a process that the program left behind
	// can hold it open for longer.
	tailWait = 250 * time.Millisecond
	// deafWait is how long a program may go on that does not take frames any more.
	deafWait = 2 * time.Second
)

// What ends a request.
var (
	// ErrClosed is what every Call ends with once the conversation is over; see ClosedError.
	ErrClosed = errors.New("the conversation is over")
	// ErrNoAnswer is the cause when a Call's time is over.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrWithdrawn is the cause of the end of the context of a request that its sender has withdrawn.
	ErrWithdrawn = errors.New("the request was withdrawn")
	// ErrMethod is for handlers: they do not know the method.
	ErrMethod = errors.New("unknown method")
)

// ClosedError tells how a conversation ended. It is ErrClosed and its Cause.
type ClosedError struct {
	Cause  error  // io.EOF where the program closed its output
	Stderr string // the end of its standard error, if there is a Tail
}

func (e *ClosedError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("jsonl: %v: %v", ErrClosed, e.Cause)
	}
	return fmt.Sprintf("jsonl: %v: %v; last words: %s", ErrClosed, e.Cause, e.Stderr)
}

// Unwrap makes errors.Is find both.
func (e *ClosedError) Unwrap() []error { return []error{ErrClosed, e.Cause} }

// PeerConfig is what a Peer is made of. Lines, Dialect and Logger are required.
type PeerConfig struct {
	Lines   *Lines
	Dialect Dialect
	// Request handles a request of the program, each in a goroutine of its own that Run waits for. What it returns is
	// sent as the result; an *Error as it is; ErrMethod as -32601; any other error as -32603, without its words. Its
	// context ends when the program withdraws the request (ErrWithdrawn), or the conversation is over (ErrClosed). Nil
	// knows no method.
	Request func(ctx context.Context, m Message) (any, error)
	// Notification handles a notification of the program: one after the other, in order. It must be quick and must not
	// Call, as an answer is handed over after the notifications before it; the call would end with ErrNoAnswer. Nil
	// ignores them.
	Notification func(ctx context.Context, m Message)
	// Timeout is for Calls whose context ends later or never. DefaultTimeout when 0.
	Timeout time.Duration
	// QueueLimit bounds the bytes of frames that wait to be handled. DefaultQueueLimit when 0.
	QueueLimit int
	// Tail is the program's standard error, for the errors at the end. May be nil.
	Tail   *Tail
	Logger *slog.Logger
}

// Peer is one side of a conversation with a program. It is safe for concurrent use.
//
// What the program sends is handled in its order: a request is handed over once the notifications before it have been
// handled, and so is an answer. Requests among themselves run at the same time.
type Peer struct {
	config  PeerConfig
	queue   *queue
	once    Once
	handled sync.WaitGroup

	deaf     chan struct{} // closed when nothing can be written any more
	deafOnce sync.Once

	closing  chan struct{} // closed by fail
	failOnce sync.Once
	cause    error // valid once closing is closed

	over   chan struct{} // closed by finish
	closed *ClosedError  // valid once over is closed

	mu    sync.Mutex
	ended error // how reading ended
	count int64
	calls map[ID]chan Message // requests of ours that wait; each has room for its answer
	open  map[ID]context.CancelCauseFunc
}

// NewPeer makes a Peer. Run has to be called.
func NewPeer(c PeerConfig) *Peer {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.QueueLimit = cmp.Or(c.QueueLimit, DefaultQueueLimit)
	return &Peer{
		config: c, queue: newQueue(c.QueueLimit),
		deaf: make(chan struct{}), closing: make(chan struct{}), over: make(chan struct{}),
		calls: map[ID]chan Message{}, open: map[ID]context.CancelCauseFunc{},
	}
}

// Run reads and handles what the program sends, until it closes its output, ctx ends or Close is called. What was sent
// before the output was closed is still handled. When it returns, the lines are closed, every Call has ended or is about
// to, and no handler runs. It returns nil if we ended the conversation, and else a *ClosedError. It may be called once.
func (p *Peer) Run(ctx context.Context) error {
	handling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	group.Go(p.read)
	group.Go(func() {
		p.watch(ctx)
		stop(&ClosedError{Cause: p.cause})
		_ = p.config.Lines.Close() // ends reading and writing; that a pipe was closed before is fine
	})

	for {
		batch, ok := p.queue.take()
		if !ok {
			break
		}
		for i, e := range batch {
			if p.ending() {
				break
			}
			p.handle(handling, e.message)
			p.queue.done(e)
			batch[i] = entry{} // the rest of the batch may take long, and frames may be large
		}
	}

	closed := p.finish()
	group.Wait()
	p.handled.Wait()
	if ctx.Err() != nil || errors.Is(closed.Cause, errClosedHere) {
		return nil
	}
	return closed
}

// watch waits for the end, or for a reason for it.
func (p *Peer) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
		p.fail(context.Cause(ctx))
		return
	case <-p.closing:
		return
	case <-p.deaf:
	}
	// The program takes nothing any more. It is most likely ending: what it still says tells why.
	wait := time.NewTimer(deafWait)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		p.fail(context.Cause(ctx))
	case <-wait.C:
		p.fail(p.config.Lines.brokenBy())
	case <-p.closing:
	}
}

// errClosedHere is the cause when Close was called.
var errClosedHere = errors.New("closed on our side")

// Close ends the conversation, at once: what waits to be handled is dropped. It does not wait for Run. To let the
// program have the last word, use CloseWrite.
func (p *Peer) Close() { p.fail(errClosedHere) }

// CloseWrite closes the program's input, which asks most programs to end. Run goes on until they do.
func (p *Peer) CloseWrite() error { return p.config.Lines.CloseWrite() }

// Over is closed when the conversation has ended and no Call can succeed any more.
func (p *Peer) Over() <-chan struct{} { return p.over }

// fail begins the end; the first cause stands. What waits to be handled is dropped.
func (p *Peer) fail(cause error) {
	p.failOnce.Do(func() {
		p.cause = cause
		close(p.closing)
		p.queue.end(true)
	})
}

func (p *Peer) ending() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// read reads until the end and never waits for who handles.
func (p *Peer) read() {
	for {
		frame, err := p.config.Lines.next()
		if bad, ok := errors.AsType[*FrameError](err); ok {
			p.config.Logger.Warn("frame skipped", "reason", bad.Reason, "size", bad.Size)
			continue
		}
		if err != nil {
			// What came before the end is still handled; then finish takes the cause.
			p.mu.Lock()
			p.ended = err
			p.mu.Unlock()
			p.queue.end(false)
			return
		}
		m, err := p.config.Dialect.Decode(frame)
		if err != nil {
			if p.once.First("frame " + err.Error()) {
				p.config.Logger.Warn("frame skipped", "reason", err.Error(), "size", len(frame))
			}
			continue
		}
		if !p.queue.push(m, len(frame)) {
			p.fail(ErrOverflow)
			return
		}
	}
}

// finish settles how the conversation ended, and all calls with it.
func (p *Peer) finish() *ClosedError {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	p.fail(ended)
	closed := &ClosedError{Cause: p.cause}
	if t := p.config.Tail; t != nil {
		wait := time.NewTimer(tailWait)
		defer wait.Stop()
		select {
		case <-t.Drained():
		case <-wait.C:
		}
		closed.Stderr = t.String()
	}
	p.closed = closed
	close(p.over)
	return closed
}

func (p *Peer) handle(ctx context.Context, m Message) {
	switch m.Kind {
	case Notification:
		if p.config.Notification != nil {
			p.config.Notification(ctx, m)
		}
	case Answer:
		p.mu.Lock()
		waiting, found := p.calls[m.ID]
		delete(p.calls, m.ID)
		p.mu.Unlock()
		if found {
			waiting <- m
		} else if p.once.First("answer") {
			p.config.Logger.Warn("answer to no request that waits", "id", string(m.ID))
		}
	case Withdrawal:
		p.Withdraw(m.ID)
	case Request:
		p.serve(ctx, m)
	}
}

// serve lets a request of the program be handled.
func (p *Peer) serve(ctx context.Context, m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, found := p.open[m.ID]; found {
		// Codex sends what is open again when a thread is resumed. The one answer is for both.
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	full := len(p.open) >= maxOpen
	p.open[m.ID] = cancel
	p.handled.Go(func() {
		defer cancel(nil)
		answer := Message{Kind: Answer, ID: m.ID}
		if full {
			answer.Error = &Error{Code: CodeOverloaded, Message: "too many requests at a time"}
		} else {
			answer.Result, answer.Error = p.result(ctx, m)
		}
		// Before the answer is written, as the program may use the id again once it has it.
		p.mu.Lock()
		delete(p.open, m.ID)
		p.mu.Unlock()
		// Whoever had the writing closed expects no answers any more.
		if err := p.write(answer); err != nil && !p.ending() && !errors.Is(err, os.ErrClosed) {
			p.config.Logger.Warn("answer not sent", "method", m.Method, "err", err)
		}
	})
}

// result is what the handler says, or why there is nothing.
func (p *Peer) result(ctx context.Context, m Message) (_ json.RawMessage, no *Error) {
	defer func() {
		// One bad request must not end all conversations of the process.
		if r := recover(); r != nil {
			p.config.Logger.Error("request handler panicked", "method", m.Method, "panic", fmt.Sprint(r))
			no = &Error{Code: CodeInternal, Message: "internal error"}
		}
	}()
	err := ErrMethod
	var result any
	if p.config.Request != nil {
		result, err = p.config.Request(ctx, m)
	}
	if err == nil {
		var raw json.RawMessage
		if raw, err = marshal(result); err == nil {
			return raw, nil
		}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return nil, e
	}
	switch {
	case errors.Is(err, ErrMethod):
		if p.once.First("method " + m.Method) {
			p.config.Logger.Warn("unknown method refused", "method", m.Method)
		}
		return nil, &Error{Code: CodeNoMethod, Message: "method not found"}
	case ctx.Err() != nil:
		return nil, &Error{Code: CodeCancelled, Message: "request cancelled"}
	}
	p.config.Logger.Warn("request failed", "method", m.Method, "err", err)
	return nil, &Error{Code: CodeInternal, Message: "internal error"}
}

// Withdraw ends the context of a request that is being handled, with ErrWithdrawn. It is for programs that take their
// requests back by a notification of their own, as codex does. It reports whether the request was still open.
func (p *Peer) Withdraw(id ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	cancel, found := p.open[id]
	if found {
		cancel(ErrWithdrawn)
	}
	return found
}

// Call sends a request and waits for its answer, which is decoded into result unless that is nil. It ends in any case:
// with the answer, with an *Error, with context.Cause(ctx), with ErrNoAnswer (also context.DeadlineExceeded) after the
// timeout, or with a *ClosedError. Nothing is said about whether a request without an answer was carried out.
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	raw, err := marshalParams(params)
	if err != nil {
		return fmt.Errorf("jsonl: call %s: %w", method, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, fmt.Errorf("%w: %w", ErrNoAnswer, context.DeadlineExceeded))
	defer cancel()
	waiting := make(chan Message, 1)
	p.mu.Lock()
	p.count++
	id := p.config.Dialect.ID(p.count)
	p.calls[id] = waiting
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.calls, id)
		p.mu.Unlock()
	}()
	if err := p.write(Message{Kind: Request, ID: id, Method: method, Params: raw}); err != nil {
		return fmt.Errorf("jsonl: call %s: %w", method, p.why(limited, err))
	}

	select {
	case m := <-waiting:
		return answered(method, m, result)
	case <-limited.Done():
		return fmt.Errorf("jsonl: call %s: %w", method, context.Cause(limited))
	case <-p.over:
	}
	select {
	case m := <-waiting: // it came just before the end
		return answered(method, m, result)
	default:
		return fmt.Errorf("jsonl: call %s: %w", method, p.closed)
	}
}

func answered(method string, m Message, result any) error {
	if m.Error != nil {
		return fmt.Errorf("jsonl: call %s: %w", method, m.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("jsonl: call %s: decode the answer: %w", method, err)
	}
	return nil
}

// why is a better reason for a failed write, if there is one: a program that ended says why on its standard error.
func (p *Peer) why(ctx context.Context, err error) error {
	if p.config.Lines.brokenBy() == nil {
		return err
	}
	select {
	case <-p.over:
		return p.closed
	case <-ctx.Done():
		return err
	}
}

// Notify sends a notification.
func (p *Peer) Notify(method string, params any) error {
	raw, err := marshalParams(params)
	if err == nil {
		err = p.write(Message{Kind: Notification, Method: method, Params: raw})
	}
	if err != nil {
		return fmt.Errorf("jsonl: notify %s: %w", method, err)
	}
	return nil
}

// Send sends a frame as it is, for what a dialect has no form for.
func (p *Peer) Send(frame any) error {
	err := p.config.Lines.Write(frame)
	if err != nil && p.config.Lines.brokenBy() != nil {
		p.deafOnce.Do(func() { close(p.deaf) })
	}
	return err
}

func (p *Peer) write(m Message) error {
	frame, err := p.config.Dialect.Encode(m)
	if err != nil {
		return err
	}
	return p.Send(frame)
}

func marshalParams(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	return marshal(params)
}

func marshal(v any) (json.RawMessage, error) {
	b, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b[:len(b)-1], nil
}
