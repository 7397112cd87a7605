package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is one request to the Bot API while it is carried out.
type call struct {
	s      *Server
	ctx    context.Context
	params params
	// now is the server's clock when the call began to be carried out.
	now time.Time
}

// method carries out a call under the server's lock and returns its result.
type method func(*call) (any, error)

// apiMethods are the methods that are simulated, by their names in lower case: Telegram ignores case.
func (s *Server) apiMethods() map[string]method {
	return map[string]method{
		"getme":                  (*call).getMe,
		"setwebhook":             (*call).setWebhook,
		"deletewebhook":          (*call).deleteWebhook,
		"getwebhookinfo":         (*call).getWebhookInfo,
		"sendmessage":            (*call).sendMessage,
		"sendmessagedraft":       (*call).sendMessageDraft,
		"senddocument":           (*call).sendDocument,
		"sendphoto":              (*call).sendPhoto,
		"sendchataction":         (*call).sendChatAction,
		"editmessagetext":        (*call).editMessageText,
		"editmessagecaption":     (*call).editMessageCaption,
		"editmessagereplymarkup": (*call).editMessageReplyMarkup,
		"deletemessage":          (*call).deleteMessage,
		"deletemessages":         (*call).deleteMessages,
		"answercallbackquery":    (*call).answerCallbackQuery,
		"setmycommands":          (*call).setMyCommands,
		"getmycommands":          (*call).getMyCommands,
		"deletemycommands":       (*call).deleteMyCommands,
		"getfile":                (*call).getFile,
		"setmessagereaction":     (*call).setMessageReaction,
		"forwardmessage":         (*call).forwardMessage,
		"copymessage":            (*call).copyMessage,
		"getchat":                (*call).getChat,
		"getchatmember":          (*call).getChatMember,
		"getchatadministrators":  (*call).getChatAdministrators,
		"leavechat":              (*call).leaveChat,
		"pinchatmessage":         (*call).pinChatMessage,
		"unpinchatmessage":       (*call).unpinChatMessage,
		"createforumtopic":       (*call).createForumTopic,
		"editforumtopic":         (*call).editForumTopic,
		"closeforumtopic":        (*call).closeForumTopic,
		"deleteforumtopic":       (*call).deleteForumTopic,
	}
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	if token != s.token {
		reply(w, &refusal{code: http.StatusUnauthorized, description: "Unauthorized"})
		return
	}
	in := http.MaxBytesReader(w, r.Body, maxRequest)
	p, err := readParams(r, in)
	if err == nil {
		// What follows a multipart body has to be read before net/http notices that a client has gone.
		_, err = io.Copy(io.Discard, in)
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		reply(w, &refusal{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large"})
		return
	case err != nil:
		reply(w, badRequest("can't parse the request: %s", err))
		return
	}

	s.mu.Lock()
	rec := s.calls.begin(name, p, s.clock())
	f := s.takeFault(name)
	s.mu.Unlock()
	if f != nil && f.DelayMS > 0 && !pause(r.Context(), f.delay()) {
		return
	}
	if f != nil && f.Status != 0 {
		s.finish(rec, answer{ErrorCode: f.Status, Description: "HTTP status without an answer"})
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html><body><h1>"+strconv.Itoa(f.Status)+" "+http.StatusText(f.Status)+"</h1></body></html>\n")
		return
	}
	a := s.carryOut(r.Context(), name, p, f)
	s.finish(rec, a)
	if f != nil && f.LoseResponse {
		panic(http.ErrAbortHandler) // net/http cuts the connection without an answer
	}
	write(w, a)
}

// carryOut runs a call, or refuses it as a fault says.
func (s *Server) carryOut(ctx context.Context, name string, p params, f *fault) answer {
	if f != nil {
		if err := f.refusal(); err != nil {
			return envelope(nil, err)
		}
	}
	c := &call{s: s, ctx: ctx, params: p}
	if strings.EqualFold(name, "getUpdates") {
		return envelope(c.getUpdates())
	}
	run := s.methods[strings.ToLower(name)]
	if run == nil {
		return envelope(nil, &refusal{code: http.StatusNotFound, description: "Not Found"})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.clock()
	// The result is serialized under the lock, because it points into the state.
	a := envelope(run(c))
	s.touch()
	return a
}

func (s *Server) finish(rec *record, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.end(rec, a, s.clock())
	s.touch()
}

func envelope(result any, err error) answer {
	if err == nil {
		raw, err := json.Marshal(result)
		if err != nil {
			return answer{ErrorCode: http.StatusInternalServerError, Description: "Internal Server Error"}
		}
		return answer{OK: true, Result: raw}
	}
	var r *refusal
	if !errors.As(err, &r) {
		return answer{ErrorCode: http.StatusInternalServerError, Description: "Internal Server Error"}
	}
	a := answer{ErrorCode: r.code, Description: r.description}
	if r.retryAfter != 0 || r.migrateTo != 0 {
		a.Parameters = &answerParameters{RetryAfter: r.retryAfter, MigrateToChatID: r.migrateTo}
	}
	return a
}

func reply(w http.ResponseWriter, err error) { write(w, envelope(nil, err)) }

func write(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	if !a.OK {
		w.WriteHeader(a.ErrorCode)
	}
	_ = json.NewEncoder(w).Encode(a)
}

// pause waits for d of real time and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
