package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/modeltest"
	"drawbridge/internal/telegramtest"
)

const (
	ada   = telegramtest.AdaID
	token = telegramtest.DefaultToken
)

// telegram is the simulated Telegram with a stopwatch at its door.
type telegram struct {
	b   *testing.B
	url string
	sim *telegramtest.Server

	polled chan time.Time // when the first getUpdates came; holds one
	tapped chan time.Time // when an update with a tap left
	acked  chan time.Time // when the answer to a tap came
	cards  chan int64     // messages with the button Allow, once the bot knows their number

	prompted chan time.Time // when an update with a message left
	words    chan time.Time // when text with marker came
}

// marker stands in the text that words waits for.
const marker = "first-words"

// startTelegram serves until the benchmark ends.
func startTelegram(b *testing.B) *telegram {
	b.Helper()
	t := &telegram{
		b: b, sim: telegramtest.New(telegramtest.Config{Token: token, Rates: telegramtest.Rates{Off: true}}),
		polled: make(chan time.Time, 1), tapped: make(chan time.Time, 8), acked: make(chan time.Time, 8), cards: make(chan int64, 8),
		prompted: make(chan time.Time, 8), words: make(chan time.Time, 1),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	t.url = "http://" + l.Addr().String()
	// Long polls end with ctx, before the server waits for its connections.
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	srv := &http.Server{Handler: t, ReadHeaderTimeout: patience, BaseContext: func(net.Listener) context.Context { return ctx }}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(l) }) // it ends by Close alone
	b.Cleanup(func() {
		cancel()
		if err := srv.Close(); err != nil {
			b.Error(err)
		}
		served.Wait()
	})
	return t
}

// startModel serves an agent that does what its prompt says. Nobody asks it anything but whether it is there.
func startModel(b *testing.B) string {
	b.Helper()
	return startScript(b, modeltest.Demo())
}

func startScript(b *testing.B, script modeltest.Script) string {
	b.Helper()
	m, err := modeltest.New(modeltest.Config{Script: script})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return m.URL()
}

// ServeHTTP lets the simulated Telegram answer and notes when what was asked and answered.
func (t *telegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	_, method, api := strings.Cut(r.URL.Path, "/bot"+token+"/")
	if !api {
		t.sim.ServeHTTP(w, r)
		return
	}
	if method == "getUpdates" {
		note(t.polled, came)
	}
	if body, err := io.ReadAll(r.Body); err == nil {
		if bytes.Contains(body, []byte(marker)) {
			note(t.words, came)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	held := answer{header: http.Header{}, status: http.StatusOK}
	t.sim.ServeHTTP(&held, r)
	maps.Copy(w.Header(), held.header)
	switch {
	case method == "getUpdates" && bytes.Contains(held.body.Bytes(), []byte(`"callback_query"`)):
		note(t.tapped, time.Now())
	case method == "getUpdates" && bytes.Contains(held.body.Bytes(), []byte(`"message"`)):
		note(t.prompted, time.Now())
	case method == "answerCallbackQuery":
		note(t.acked, came)
	}
	w.WriteHeader(held.status)
	if _, err := w.Write(held.body.Bytes()); err != nil {
		return // the bot has gone
	}
	if method == "sendMessage" {
		if id := card(held.body.Bytes()); id != 0 {
			note(t.cards, id)
		}
	}
}

// note never makes the bot wait: what nobody takes is of no interest.
func note[T any](ch chan T, v T) {
	select {
	case ch <- v:
	default:
	}
}

// drain takes what nobody has taken yet.
func drain[T any](ch chan T) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}

// card is the number of a message that was sent with the button Allow; 0 for any other.
func card(body []byte) int64 {
	var m struct {
		Result struct {
			ID     int64 `json:"message_id"`
			Markup struct {
				Rows [][]struct {
					Text string `json:"text"`
				} `json:"inline_keyboard"`
			} `json:"reply_markup"`
		} `json:"result"`
	}
	if json.Unmarshal(body, &m) != nil {
		return 0
	}
	for _, row := range m.Result.Markup.Rows {
		for _, button := range row {
			if button.Text == "Allow" {
				return m.Result.ID
			}
		}
	}
	return 0
}

// answer holds a response back.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// act is a POST to /sim.
func (t *telegram) act(path string, body map[string]any) {
	t.b.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.b.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.b.Context(), http.MethodPost, t.url+path, bytes.NewReader(text))
	if err != nil {
		t.b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.b.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing of it is read
	if resp.StatusCode != http.StatusOK {
		t.b.Fatalf("POST %s: %s", path, resp.Status)
	}
}

// await returns what comes next.
func await[T any](b *testing.B, what string, ch <-chan T) T {
	b.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v := <-ch:
		return v
	case <-timeout.C:
		b.Fatalf("did not come: %s", what)
		panic("unreachable")
	}
}
