package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Asker puts questions to people; approvals.Service is one.
type Asker interface {
	Ask(ctx context.Context, run approvals.Run, q runner.Question) (runner.Answer, error)
}

// ServerConfig is what a Server is made of. All but Within are required.
type ServerConfig struct {
	Asker Asker
	// Chat is the chat that the owner has chosen; empty if none.
	Chat   func(ctx context.Context) (string, error)
	Home   string        // the home folder of the person whose terminals they are
	Within time.Duration // how long a person has (10 minutes)
	Logger *slog.Logger
}

// Server is the host's end of the desk. It serves the hooks of the same user, over a socket that nobody else can open.
type Server struct {
	c    ServerConfig
	life context.Context //nolint:containedctx // the host's: what is asked ends with it
}

// NewServer returns a handler for Path that asks until life ends.
func NewServer(life context.Context, c ServerConfig) *Server {
	c.Within = cmp.Or(c.Within, 10*time.Minute)
	return &Server{c: c, life: life}
}

// ServeHTTP answers a hook: with what it is to print, or with 204.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		s.stand(w, r)
	case http.MethodPost:
		if b := s.ask(w, r); b != nil {
			w.Header().Set("Content-Type", "application/json")
			w.Write(b) //nolint:gosec // JSON for a program, no page
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *Server) stand(w http.ResponseWriter, r *http.Request) {
	chat, err := s.c.Chat(r.Context())
	if err != nil {
		http.Error(w, "the store could not be read", http.StatusServiceUnavailable)
		return
	}
	b, err := json.Marshal(Standing{Chat: chat != ""})
	if err != nil {
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}

// ask puts what a hook has brought to a person. Nil leaves it to the terminal.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) []byte {
	var in wireAsk
	// Read to its end: only then it is seen that the hook has gone.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*maxRequest))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil || in.V != wireVersion {
		s.c.Logger.Warn("a terminal's question was not understood; it is left to the terminal")
		return nil
	}
	req, err := in.Agent.parse(in.Request, s.c.Home)
	if err != nil {
		s.c.Logger.Warn("a terminal's question was not understood; it is left to the terminal", "agent", string(in.Agent), "err", err)
		return nil
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(approvals.ErrGone) })()
	chat, err := s.c.Chat(ctx)
	if err != nil || chat == "" {
		return nil
	}
	q := req.question
	q.Terminal = string(in.Agent) + " · " + title(in.Title, req.folder)
	within := s.c.Within
	if in.Within > 0 {
		within = min(within, time.Duration(in.Within)*time.Second)
	}
	a, err := s.c.Asker.Ask(ctx, approvals.Run{
		ID: "desk:" + req.session, Chat: chat, Runtime: string(in.Agent), Within: within,
		Workspace: policy.Workspace{Root: req.folder, Home: s.c.Home},
		// The chat's mode is for the agents of the chat. A terminal is its person's own, and a person is asked each time.
		Policy: func(context.Context) (runner.Policy, error) {
			return runner.Policy{Mode: policy.ApprovalRequired, Interaction: policy.Default}, nil
		},
	}, q)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	return req.answer(a)
}

// maxTitle bounds a session's name on a card.
const maxTitle = 60

// title is a session's name, or its folder's.
func title(name, folder string) string {
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		name = filepath.Base(folder)
	}
	if r := []rune(name); len(r) > maxTitle {
		return string(r[:maxTitle]) + "…"
	}
	return name
}
