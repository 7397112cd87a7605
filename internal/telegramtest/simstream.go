package telegramtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// keepAlive is how often a quiet stream says that it is there.
const keepAlive = 15 * time.Second

// simEvents streams events as server-sent events, from Last-Event-ID or ?after= on.
func (s *Server) simEvents(w http.ResponseWriter, r *http.Request) {
	after, err := number(r, "after")
	if id := r.Header.Get("Last-Event-ID"); id != "" && err == nil {
		_, err = fmt.Sscan(id, &after)
	}
	if err != nil {
		control(w, r, func(*http.Request) (any, error) { return nil, refuse(http.StatusBadRequest, "%s", err) })
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	_ = out.Flush()
	for r.Context().Err() == nil {
		var list []event
		s.await(r.Context(), keepAlive, func() bool {
			list = s.events.since(after)
			return len(list) > 0
		})
		if len(list) == 0 {
			_, err = fmt.Fprint(w, ": quiet\n\n")
		}
		for _, e := range list {
			raw, fault := json.Marshal(e)
			if fault != nil {
				return
			}
			after = e.Seq
			_, err = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, raw)
		}
		if err != nil || out.Flush() != nil {
			return
		}
	}
}

// simFile serves the content of any file that was sent, by its file_id.
func (s *Server) simFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.files[r.PathValue("id")]
	s.mu.Unlock()
	if f == nil {
		control(w, r, func(*http.Request) (any, error) { return nil, refuse(http.StatusNotFound, "there is no such file") })
		return
	}
	// A page of the same origin must not run what somebody sent.
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(f.data)
}
