package telegramtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"drawbridge/internal/telegramtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server with a client of the Bot API and a hand on the control interface.
type world struct {
	t      *testing.T
	server *telegramtest.Server
	url    string
	http   *http.Client
	ctx    context.Context
}

func newWorld(t *testing.T, cfg telegramtest.Config) *world {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(failOnError{slog.DiscardHandler, t})
	}
	s := telegramtest.New(cfg)
	h := httptest.NewServer(s)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		h.Client().CloseIdleConnections()
		h.Close()
	})
	return &world{t: t, server: s, url: h.URL, http: h.Client(), ctx: t.Context()}
}

// started is a world without rate limits in which Ada has written to the bot.
func started(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, telegramtest.Config{Rates: telegramtest.Rates{Off: true}})
	w.say(telegramtest.AdaID, telegramtest.AdaID, "hello")
	w.drain()
	return w
}

type failOnError struct {
	slog.Handler
	t *testing.T
}

func (h failOnError) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (h failOnError) Handle(_ context.Context, r slog.Record) error {
	h.t.Errorf("logged: %s", r.Message)
	return nil
}

type fields map[string]any

type answer struct {
	status      int
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter      int   `json:"retry_after"`
		MigrateToChatID int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

type message struct {
	MessageID       int64 `json:"message_id"`
	MessageThreadID int64 `json:"message_thread_id"`
	IsTopicMessage  bool  `json:"is_topic_message"`
	From            struct {
		ID int64 `json:"id"`
	} `json:"from"`
	Chat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	Text     string `json:"text"`
	Caption  string `json:"caption"`
	Entities []struct {
		Type   string `json:"type"`
		Offset int    `json:"offset"`
		Length int    `json:"length"`
	} `json:"entities"`
	EditDate       int64           `json:"edit_date"`
	MediaGroupID   string          `json:"media_group_id"`
	ForwardOrigin  json.RawMessage `json:"forward_origin"`
	ReplyToMessage *message        `json:"reply_to_message"`
	ReplyMarkup    json.RawMessage `json:"reply_markup"`
	Document       *fileView       `json:"document"`
	Photo          []fileView      `json:"photo"`
	Voice          *fileView       `json:"voice"`
}

type fileView struct {
	FileID   string `json:"file_id"`
	FileName string `json:"file_name"`
	FileSize int    `json:"file_size"`
	FilePath string `json:"file_path"`
}

type update struct {
	UpdateID      int64    `json:"update_id"`
	Message       *message `json:"message"`
	EditedMessage *message `json:"edited_message"`
	CallbackQuery *struct {
		ID      string   `json:"id"`
		Data    string   `json:"data"`
		Message *message `json:"message"`
		From    struct {
			ID int64 `json:"id"`
		} `json:"from"`
	} `json:"callback_query"`
	Stopped *struct {
		DraftID int64 `json:"draft_id"`
	} `json:"stopped_message_generation"`
	Raw map[string]json.RawMessage `json:"-"`
}

func decode[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
	return v
}

// do calls a method as the usual client does: multipart in a chunked body, which is empty without parameters.
func (w *world) do(method string, args fields) (answer, error) {
	pr, pw := io.Pipe()
	form := multipart.NewWriter(pw)
	var writing sync.WaitGroup
	writing.Go(func() {
		for k, v := range args {
			var err error
			switch v := v.(type) {
			case upload:
				part, e := form.CreateFormFile(k, v.name)
				if err = e; err == nil {
					_, err = part.Write(v.data)
				}
			case string:
				err = form.WriteField(k, v)
			default:
				raw, e := json.Marshal(v)
				if err = e; err == nil {
					err = form.WriteField(k, string(raw))
				}
			}
			if err != nil {
				pw.CloseWithError(err)
				return
			}
		}
		if args != nil {
			_ = form.Close()
		}
		_ = pw.Close()
	})
	defer writing.Wait()
	defer func() { _ = pr.Close() }()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.url+"/bot"+w.server.Token()+"/"+method, pr)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := w.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return answer{status: resp.StatusCode}, err
	}
	a.status = resp.StatusCode
	return a, nil
}

type upload struct {
	name string
	data []byte
}

// call is do for calls that get an answer.
func (w *world) call(method string, args fields) answer {
	w.t.Helper()
	a, err := w.do(method, args)
	if err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
	return a
}

// ok is call for what has to succeed.
func (w *world) ok(method string, args fields) answer {
	w.t.Helper()
	a := w.call(method, args)
	if !a.OK || a.status != http.StatusOK {
		w.t.Fatalf("%s: %d %s", method, a.ErrorCode, a.Description)
	}
	return a
}

// refused is call for what has to be refused in these words.
func (w *world) refused(code int, words, method string, args fields) answer {
	w.t.Helper()
	a := w.call(method, args)
	if a.OK || a.ErrorCode != code || a.status != code || a.Description != words {
		w.t.Fatalf("%s %v: status %d, error_code %d, %q; want %d, %q", method, args, a.status, a.ErrorCode, a.Description, code, words)
	}
	return a
}

func (w *world) send(args fields) message {
	w.t.Helper()
	return decode[message](w.t, w.ok("sendMessage", args).Result)
}

// control makes a request to /sim and returns status and body.
func (w *world) control(method, path string, in any, headers ...string) (int, []byte) {
	w.t.Helper()
	var body io.Reader = http.NoBody
	if raw, ok := in.([]byte); ok {
		body = bytes.NewReader(raw)
	} else if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			w.t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/sim/"+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.http.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, out
}

func (w *world) post(path string, in any) []byte {
	w.t.Helper()
	status, out := w.control(http.MethodPost, path, in)
	if status != http.StatusOK {
		w.t.Fatalf("POST /sim/%s: %d %s", path, status, out)
	}
	return out
}

func (w *world) get(path string) []byte {
	w.t.Helper()
	status, out := w.control(http.MethodGet, path, nil)
	if status != http.StatusOK {
		w.t.Fatalf("GET /sim/%s: %d %s", path, status, out)
	}
	return out
}

// say lets a person write and returns the message id.
func (w *world) say(chat, from int64, text string) int64 {
	w.t.Helper()
	return decode[message](w.t, w.post("messages", fields{"chat": chat, "from": from, "text": text})).MessageID
}

func (w *world) updates(args fields) []update {
	w.t.Helper()
	raw := w.ok("getUpdates", args).Result
	out := decode[[]update](w.t, raw)
	for i, fields := range decode[[]map[string]json.RawMessage](w.t, raw) {
		out[i].Raw = fields
	}
	return out
}

// drain confirms all updates and returns them.
func (w *world) drain() []update {
	w.t.Helper()
	got := w.updates(fields{"timeout": 0})
	if len(got) > 0 {
		w.updates(fields{"offset": got[len(got)-1].UpdateID + 1})
	}
	return got
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	w.post("clock", fields{"advance_ms": d.Milliseconds()})
}

func keyboard(rows ...[]fields) fields { return fields{"inline_keyboard": rows} }

func tapRow(labels ...string) []fields {
	var out []fields
	for _, l := range labels {
		out = append(out, fields{"text": l, "callback_data": "data-" + strings.ToLower(l)})
	}
	return out
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// async runs f beside the test. The channel is closed when f ends, also if it ends the test.
func async[T any](f func() T) <-chan T {
	out := make(chan T, 1)
	go func() {
		defer close(out)
		out <- f()
	}()
	return out
}

// until looks again after each change until ok is true.
func (w *world) until(ok func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(limit) {
			w.t.Fatal("never came true")
		}
	}
}

// cancellable gives the world's next calls a context that the returned function ends.
func (w *world) cancellable() context.CancelFunc {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.ctx = ctx
	return cancel
}
