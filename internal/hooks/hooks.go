// Package hooks lets other programs start tasks: POST /hooks/<name>, signed, begins the task that the owner has written down
// for that name.
//
// It guarantees that nothing is started by whoever does not have the hook's secret, that a name which does not exist
// answers as one whose secret is not known, that a delivery starts one task however often and at however many gateways it
// arrives, and that what it brings reaches the agent as quoted material that cannot end its own quotation. What the task
// may do is decided where it is for every task (package task): a delivery chooses neither chat nor mode.
//
// It does not guarantee that a task is run, only that it is in the store when the sender reads 202; it does not encrypt,
// so an address that others can reach belongs behind something that does; and it remembers a delivery for as long as
// its task, 30 days after that has ended. What is older is refused for its timestamp.
package hooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

const (
	// Prefix is the path under which the hooks are, each by its name.
	Prefix = "/hooks/"
	// Window is how far a delivery's timestamp may be from the store's clock, in either direction.
	Window = 5 * time.Minute
	// MaxBody bounds what a delivery brings, in bytes: with the step before it and the quotation it is one step of a task.
	MaxBody = 6 << 10
	// MaxFirst bounds the first step of a template, in bytes, for the same reason.
	MaxFirst = 3 << 9

	maxHeader = 16 << 10
	// startTimeout bounds the commit of a task.
	startTimeout = 20 * time.Second
)

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Hook is a template: what a delivery to a name starts.
type Hook struct {
	Name   string // 1 to 32 of a-z, 0-9 and the hyphen, neither first nor last
	Secret string
	Chat   string // the key of the chat that is asked and told
	// Work is what is done. What a delivery brings is put behind the first of its steps. A project without a host is
	// one of the chat's host.
	Work task.Work
}

// Config is what a Handler needs. Zero values get what stands in parentheses.
type Config struct {
	DB     store.DB
	Chats  *bridge.Chats
	Tasks  *task.Service
	Hooks  []Hook
	Logger *slog.Logger

	Patience time.Duration // with a slow sender (10 s)
	Most     int           // deliveries that are taken at the same time; others are told to come again (32)
}

// Handler takes deliveries. Every gateway may serve it, whoever holds the lease: it only writes tasks into the store.
type Handler struct {
	cfg    Config
	hooks  map[string]Hook
	nobody Hook // stands for every name that does not exist
	places chan struct{}
}

// New returns a handler, or says which template can't be one.
func New(c Config) (*Handler, error) {
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.Most = cmp.Or(c.Most, 32)
	h := &Handler{cfg: c, hooks: map[string]Hook{}, nobody: Hook{Secret: rand.Text()}, places: make(chan struct{}, c.Most)}
	for _, k := range c.Hooks {
		_, twice := h.hooks[k.Name]
		switch {
		case !nameForm.MatchString(k.Name) || twice:
			return nil, fmt.Errorf("hooks: name %q: not one, or there twice", k.Name)
		case k.Secret == "":
			return nil, fmt.Errorf("hooks: %s: no secret", k.Name)
		case len(k.Work.Steps) == 0 || len(k.Work.Steps[0]) > MaxFirst:
			return nil, fmt.Errorf("hooks: %s: no first step, or one of more than %d bytes", k.Name, MaxFirst)
		}
		h.hooks[k.Name] = k
	}
	return h, nil
}

// Server is how the handler is to be served: nobody holds a connection for long.
func (h *Handler) Server() *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: h.cfg.Patience, ReadTimeout: h.cfg.Patience, WriteTimeout: h.cfg.Patience + 2*startTimeout,
		IdleTimeout: h.cfg.Patience, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // it quotes strangers
	}
}

// accepted is the answer to a delivery that was taken.
type accepted struct {
	Task string `json:"task"`
	// Known says that the same delivery was there before, and that nothing was started for this one.
	Known bool `json:"known,omitempty"`
}

// ServeHTTP takes one delivery.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, Prefix)
	switch {
	case !ok || !nameForm.MatchString(name):
		refuse(w, http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		code := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			code = http.StatusRequestEntityTooLarge
		}
		refuse(w, code)
		return
	}
	k, d, ok := h.verify(name, r.Header, body)
	if !ok {
		h.cfg.Logger.Debug("a delivery without a right signature started nothing")
		refuse(w, http.StatusForbidden)
		return
	}
	a, err := h.start(r.Context(), k, d, body)
	switch {
	case err != nil:
		code := codeOf(err)
		h.cfg.Logger.Warn("a signed delivery started nothing", "hook", k.Name, "task", a.Task, "status", code, "err", err)
		refuse(w, code)
	case a.Known:
		h.cfg.Logger.Info("a delivery was known already", "hook", k.Name, "task", a.Task)
		write(w, http.StatusOK, a)
	default:
		h.cfg.Logger.Info("a delivery started a task", "hook", k.Name, "task", a.Task)
		write(w, http.StatusAccepted, a)
	}
}

var (
	errStale = errors.New("hooks: the timestamp is too far from the store's clock")
	errText  = errors.New("hooks: the body is not UTF-8")
)

// start begins the task of a verified delivery, unless it is there already.
func (h *Handler) start(ctx context.Context, k Hook, d delivery, body []byte) (accepted, error) {
	a := accepted{Task: taskID(k.Name, d.id)}
	first, ok := quote(k.Work.Steps[0], body)
	if !ok {
		return a, errText
	}
	n := task.NewTask{ID: a.Task, Work: k.Work, Origin: task.OriginEvent}
	n.Steps = slices.Clone(k.Work.Steps)
	n.Steps[0] = first
	// The commit is not cut short when the sender hangs up: it would only come again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	err := store.Update(ctx, h.cfg.DB, func(t *store.Txn) error {
		a.Known = false
		now, err := t.Now()
		if err != nil {
			return err
		}
		if now.Sub(d.at).Abs() > Window {
			return errStale
		}
		_, err = h.cfg.Tasks.Task(t, a.Task)
		if err == nil || errors.Is(err, store.ErrDamaged) {
			a.Known = true
			return nil
		}
		if !errors.Is(err, task.ErrNotFound) {
			return err
		}
		// Add would make a chat that is not there yet, with the default mode: a delivery is no reason for one.
		c, err := h.cfg.Chats.Standing(t, k.Chat)
		if err != nil {
			return err
		}
		n := n
		if n.Project != "" && n.Host == "" {
			n.Host = c.Host
		}
		_, err = h.cfg.Tasks.Add(t, c.ID, n)
		return err
	})
	return a, err
}

// codeOf is what a sender is told of an error. 503 asks it to come again.
func codeOf(err error) int {
	for _, known := range []struct {
		err  error
		code int
	}{
		{errStale, http.StatusForbidden},
		{errText, http.StatusBadRequest},
		{task.ErrTooLong, http.StatusRequestEntityTooLarge},
		{task.ErrTooMany, http.StatusTooManyRequests},
		{task.ErrMode, http.StatusConflict},
		{policy.ErrUnknownMode, http.StatusConflict},
		{bridge.ErrNoChat, http.StatusConflict},
		{bridge.ErrNoHost, http.StatusConflict},
		{bridge.ErrNoProject, http.StatusConflict},
		{bridge.ErrNoRuntime, http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return http.StatusServiceUnavailable
}

// refuse says nothing but the status: whoever reads it may be anybody.
func refuse(w http.ResponseWriter, code int) {
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	http.Error(w, http.StatusText(code), code)
}

func write(w http.ResponseWriter, code int, a accepted) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(a); err != nil {
		return // a sender that has gone reads nothing
	}
}
