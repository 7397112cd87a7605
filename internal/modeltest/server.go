// Package modeltest is a scriptable model behind a real HTTP server that speaks OpenAI's chat completions and Anthropic's
// messages: for tests, and for the demonstration, which has no network.
//
// It streams in small pieces at a pace that can be set, fails in the ways that real endpoints fail, and is as strict as
// they are: a conversation whose tool calls and results do not match is refused. It guarantees nothing about a model's
// quality: a script answers what it is written to answer. It does not import testing.
package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Script answers a request. It is called for each request, at the same time for requests that come so, and derives what
// it does from the messages alone, as a model does.
type Script func(ctx context.Context, r Request) Reply

// Request is what a model gets.
type Request struct {
	N        int // this is the Nth request to the server, from 1
	Model    string
	Effort   string // of its thinking, where the client names one
	Messages []Message
	Tools    []string // names
	Stream   bool
	Checked  bool // the client asks for a safety check of the calls (Messages API)
}

// Message is one message of the conversation.
type Message struct {
	Role       string
	Content    string
	Reasoning  string
	Calls      []Call
	ToolCallID string
}

// Call is a tool call.
type Call struct {
	ID        string // the server makes one when it is empty
	Name      string
	Arguments string // JSON, or whatever a confused model writes
}

// CallOf makes a call with arguments marshalled to JSON.
func CallOf(name string, arguments any) Call {
	b, err := json.Marshal(arguments)
	if err != nil {
		b = []byte("{}")
	}
	return Call{Name: name, Arguments: string(b)}
}

// Reply is what the model says. The zero value is an empty answer.
type Reply struct {
	Reasoning string
	Text      string
	Calls     []Call
	Finish    string // by what there is, when empty
	Usage     Usage  // counted from the messages, when zero
	Check     Check  // of the calls, where the client asks for it
	Fault     Fault
}

// Usage counts tokens.
type Usage struct {
	Input, Cached, Output int64
}

// Fault is what goes wrong. The zero value is nothing.
type Fault struct {
	Status     int    // answered instead of 200
	Code       string // the error's code
	RetryAfter string // the header, with Status
	Body       string // answered as it is, with Status or instead of the stream
	// Cut closes the connection after so many pieces of the stream; -1 before the first.
	Cut int
	// Error is sent as an error in the middle of the stream, after the text.
	Error string
	// Silence keeps the connection open without a word, before anything is answered, until the client goes.
	Silence bool
	Whole   bool // one JSON object instead of a stream
}

// Config is what a Server is made from.
type Config struct {
	Script Script
	Addr   string        // "127.0.0.1:0" when empty
	Models []string      // those it has; any when empty
	Key    string        // the bearer token it wants; any when empty
	Pace   time.Duration // between two pieces of a stream
	Piece  int           // characters a piece; 16 when 0
	Window int           // context in tokens, of four characters each; unbounded when 0
}

// Server is a model endpoint on loopback.
type Server struct {
	config   Config
	listener net.Listener

	mu       sync.Mutex
	requests []Request
}

// New makes a Server and opens its port. Run serves it.
func New(c Config) (*Server, error) {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Piece <= 0 {
		c.Piece = 16
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("modeltest: listen: %w", err)
	}
	return &Server{config: c, listener: l}, nil
}

// URL is the base URL, such as "http://127.0.0.1:4321/v1".
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/v1" }

// Run serves until ctx ends. Requests that are running then are cut off.
func (s *Server) Run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/responses", s.responses)
	mux.HandleFunc("POST /v1/messages", s.anthropicMessages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.anthropicCount)
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("modeltest: serve: %w", err)
	case <-ctx.Done():
	}
	err := srv.Close()
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = e
	}
	if err != nil {
		return fmt.Errorf("modeltest: close: %w", err)
	}
	return nil
}

// Requests are those that came, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Anthropic-Version") != "" {
		s.anthropicModels(w, r)
		return
	}
	if !s.authorised(w, r) {
		return
	}
	type model struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	list := []model{}
	for _, m := range s.config.Models {
		list = append(list, model{m, "model"})
	}
	respond(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) authorised(w http.ResponseWriter, r *http.Request) bool {
	if s.config.Key == "" || r.Header.Get("Authorization") == "Bearer "+s.config.Key {
		return true
	}
	fail(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided.")
	return false
}

// has reports whether the server has a model.
func (s *Server) has(model string) bool {
	return len(s.config.Models) == 0 || slices.Contains(s.config.Models, model)
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	if !s.authorised(w, r) {
		return
	}
	req, err := decode(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if !s.has(req.Model) {
		fail(w, http.StatusNotFound, "model_not_found", "The model `"+req.Model+"` does not exist.")
		return
	}
	s.mu.Lock()
	req.N = len(s.requests) + 1
	s.requests = append(s.requests, req)
	s.mu.Unlock()

	tokens := req.tokens()
	if s.config.Window > 0 && tokens > s.config.Window {
		fail(w, http.StatusBadRequest, "context_length_exceeded",
			fmt.Sprintf("This model's maximum context length is %d tokens, your messages are %d.", s.config.Window, tokens))
		return
	}
	reply := s.config.Script(r.Context(), req)
	if reply.Usage == (Usage{}) {
		reply.Usage = Usage{Input: int64(tokens), Output: int64(len(reply.Text)/4 + 1)}
	}
	for i := range reply.Calls {
		if reply.Calls[i].ID == "" {
			reply.Calls[i].ID = "call_" + strconv.Itoa(req.N) + "_" + strconv.Itoa(i+1)
		}
	}
	if reply.Finish == "" {
		reply.Finish = "stop"
		if len(reply.Calls) > 0 {
			reply.Finish = "tool_calls"
		}
	}
	s.answer(w, r, req, reply)
}

// answer sends a reply, or what goes wrong with it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
	f := reply.Fault
	switch {
	case f.Silence:
		<-r.Context().Done()
	case f.Status != 0 && f.Status != http.StatusOK:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		if f.Body != "" {
			w.WriteHeader(f.Status)
			_, _ = w.Write([]byte(f.Body))
			return
		}
		fail(w, f.Status, f.Code, http.StatusText(f.Status))
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	case f.Whole || !req.Stream:
		respond(w, http.StatusOK, whole(req, reply))
	default:
		(&stream{server: s, w: w, r: r, model: req.Model}).send(reply)
	}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

func fail(w http.ResponseWriter, status int, code, message string) {
	respond(w, status, map[string]any{"error": map[string]any{"message": message, "type": "error", "code": code}})
}
