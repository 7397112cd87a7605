package telegramtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// maxControl bounds the body of a request to /sim: a file of 20 MB in base64.
const maxControl = 32 << 20

// problem is what the control interface refuses, with an HTTP status and one line for whoever called.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func refuse(status int, format string, args ...any) error {
	return &problem{status: status, text: fmt.Sprintf(format, args...)}
}

func tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, "a body has at most %d MiB", maxControl>>20)
}

// simHandler routes /sim/. docs/sim.md is its contract.
func (s *Server) simHandler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, run func(*http.Request) (any, error)) {
		mux.HandleFunc("GET /sim/"+path, func(w http.ResponseWriter, r *http.Request) { control(w, r, run) })
	}
	post := func(path string, run func(*http.Request) (any, error)) {
		mux.HandleFunc("POST /sim/"+path, func(w http.ResponseWriter, r *http.Request) {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				control(w, r, func(*http.Request) (any, error) {
					return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type has to be application/json")
				})
				return
			}
			if r.ContentLength > maxControl {
				control(w, r, func(*http.Request) (any, error) { return nil, tooLarge() })
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxControl)
			control(w, r, run)
		})
	}
	get("bot", s.simBot)
	get("people", s.simPeople)
	get("chats", s.simChats)
	get("chats/{id}/messages", s.simMessages)
	get("chats/{id}/drafts", s.simDrafts)
	get("calls", s.simCalls)
	get("wait", s.simWait)
	post("messages", s.simSend)
	post("taps", s.simTap)
	post("edits", s.simEdit)
	post("stop-drafts", s.simStopDraft)
	post("topics", s.simTopic)
	post("members", s.simMember)
	post("reactions", s.simReact)
	post("blocks", s.simBlock)
	post("migrations", s.simMigrate)
	post("faults", s.simFault)
	post("clock", s.simClock)
	mux.HandleFunc("/sim/", func(w http.ResponseWriter, r *http.Request) {
		control(w, r, func(r *http.Request) (any, error) {
			return nil, refuse(http.StatusNotFound, "there is no %s %s", r.Method, r.URL.Path)
		})
	})
	mux.HandleFunc("GET /sim/events", s.simEvents)
	mux.HandleFunc("GET /sim/files/{id}", s.simFile)
	return local(mux)
}

// local lets through only requests from this machine that name it: a foreign Host is a rebound name, a foreign Origin
// a page of somebody else in the browser of whoever runs the demo.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := foreign(r); why != "" {
			control(w, r, func(*http.Request) (any, error) { return nil, refuse(http.StatusForbidden, "%s", why) })
			return
		}
		next.ServeHTTP(w, r)
	})
}

func foreign(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return "/sim serves this machine only"
		}
	}
	if !loopback(r.Host) {
		return "a loopback Host is required"
	}
	if values, ok := r.Header["Origin"]; ok {
		for _, v := range values {
			u, err := url.Parse(v)
			if err != nil || !loopback(u.Host) {
				return "a loopback Origin is required"
			}
		}
	}
	return ""
}

// control runs a request of the control interface and writes what comes of it as JSON.
func control(w http.ResponseWriter, r *http.Request, run func(*http.Request) (any, error)) {
	result, err := run(r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		status := http.StatusInternalServerError
		var p *problem
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &p):
			status = p.status
		case errors.As(err, &large):
			err = tooLarge()
			status = http.StatusRequestEntityTooLarge
		}
		w.WriteHeader(status)
		result = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(result)
}

// body decodes the JSON body of a request, behind which nothing may follow. Unknown fields are ignored.
func body(r *http.Request, v any) error {
	in := json.NewDecoder(r.Body)
	if err := in.Decode(v); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return err
		}
		return refuse(http.StatusBadRequest, "the body is not the JSON that is expected here: %s", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "something follows the JSON in the body")
	}
	return nil
}

// number is a query parameter, 0 if absent.
func number(r *http.Request, name string) (int64, error) {
	raw := r.URL.Query().Get(name)
	if raw == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "%s is no number: %q", name, raw)
	}
	return n, nil
}

// chatOf is the chat in a request's path. The caller holds mu.
func (s *Server) chatOf(r *http.Request) (*chat, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "chat id is no number: %q", r.PathValue("id"))
	}
	if c := s.chat(id); c != nil {
		return c, nil
	}
	return nil, refuse(http.StatusNotFound, "there is no chat %d", id)
}

// here finds a chat and a person who is in it. The caller holds mu.
func (s *Server) here(chatID, from int64) (*chat, *person, error) {
	c, p := s.chat(chatID), s.person(from)
	switch {
	case c == nil:
		return nil, nil, refuse(http.StatusNotFound, "there is no chat %d", chatID)
	case p == nil:
		return nil, nil, refuse(http.StatusNotFound, "there is no person %d", from)
	case !c.has(from):
		return nil, nil, refuse(http.StatusForbidden, "%s is not in chat %d", p.Name, chatID)
	case c.migratedTo != 0:
		return nil, nil, refuse(http.StatusConflict, "chat %d became the supergroup %d", chatID, c.migratedTo)
	default:
		return c, p, nil
	}
}
