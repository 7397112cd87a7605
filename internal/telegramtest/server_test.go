package telegramtest_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"drawbridge/internal/telegramtest"
)

func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := telegramtest.New(telegramtest.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()

	w := &world{t: t, server: s, url: "http://" + l.Addr().String(), http: &http.Client{Transport: &http.Transport{}}, ctx: t.Context()}
	defer w.http.CloseIdleConnections()
	w.ok("getMe", nil)
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		_, _ = w.do("getUpdates", fields{"timeout": 40}) // its connection may be cut or its poll answered with nothing
	}()
	w.until(func() bool { return decode[struct{ Polling bool }](t, w.get("bot")).Polling })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-polled
}

func TestListenAndServeRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":0", "0.0.0.0:0", "192.0.2.1:0"} {
		s := telegramtest.New(telegramtest.Config{})
		if err := s.ListenAndServe(t.Context(), addr); !errors.Is(err, telegramtest.ErrNotLoopback) {
			t.Errorf("%s: %v", addr, err)
		}
		l := &openListener{addr: addr}
		if err := s.Serve(t.Context(), l); !errors.Is(err, telegramtest.ErrNotLoopback) || !l.closed {
			t.Errorf("a listener on %s: %v, closed %v", addr, err, l.closed)
		}
	}
}

// openListener says that it listens for everybody.
type openListener struct {
	net.Listener

	addr   string
	closed bool
}

func (l *openListener) Addr() net.Addr  { return l }
func (l *openListener) Network() string { return "tcp" }
func (l *openListener) String() string  { return l.addr }

func (l *openListener) Close() error {
	l.closed = true
	return nil
}

func TestFilesGoBothWays(t *testing.T) {
	t.Parallel()
	w := started(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 7, 5))); err != nil {
		t.Fatal(err)
	}
	photo := decode[message](t, w.ok("sendPhoto", fields{"chat_id": ada, "photo": upload{"p.png", picture.Bytes()}}).Result)
	if len(photo.Photo) != 1 {
		t.Fatalf("photo: %+v", photo)
	}
	doc := decode[message](t, w.ok("sendDocument", fields{
		"chat_id": ada, "caption": "the log", "document": "attach://file1", "file1": upload{"../../etc/run.log", []byte("all is well")},
	}).Result)
	if doc.Document == nil || doc.Document.FileName != "run.log" || doc.Caption != "the log" {
		t.Fatalf("document: %+v", doc)
	}
	again := decode[message](t, w.ok("sendDocument", fields{"chat_id": ada, "document": doc.Document.FileID}).Result)
	if again.Document == nil || again.Document.FileID != doc.Document.FileID {
		t.Errorf("sent again by its id: %+v", again)
	}

	w.post("messages", fields{"chat": ada, "from": ada, "text": "look", "document": fields{"name": "a.txt", "base64": "aGVsbG8="}})
	theirs := w.drain()[0].Message
	file := decode[fileView](t, w.ok("getFile", fields{"file_id": theirs.Document.FileID}).Result)
	if theirs.Caption != "look" || theirs.Text != "" || file.FileSize != 5 {
		t.Errorf("a person's file: %+v, %+v", theirs, file)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/file/bot"+w.server.Token()+"/"+file.FilePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "hello" {
		t.Errorf("downloaded %q, %v", got, err)
	}
	if got := w.get("files/" + doc.Document.FileID); string(got) != "all is well" {
		t.Errorf("for people: %q", got)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegramtest.Config{})
	w.say(ada, ada, "hi")
	const burst = 5
	var last message
	for range burst {
		last = w.send(fields{"chat_id": ada, "text": "x"})
	}
	a := w.refused(429, "Too Many Requests: retry after 1", "sendMessage", fields{"chat_id": ada, "text": "x"})
	if a.Parameters.RetryAfter != 1 {
		t.Errorf("retry_after %d", a.Parameters.RetryAfter)
	}
	w.refused(429, "Too Many Requests: retry after 1", "editMessageText", fields{"chat_id": ada, "message_id": last.MessageID, "text": "y"})
	w.ok("sendChatAction", fields{"chat_id": ada, "action": "typing"})
	w.ok("sendMessageDraft", fields{"chat_id": ada, "draft_id": 1, "text": "drafts have a bucket of their own"})
	w.send(fields{"chat_id": group, "text": "so has another chat"})

	w.advance(time.Second)
	w.refused(400, "Bad Request: "+notModified, "editMessageText", fields{"chat_id": ada, "message_id": last.MessageID, "text": "x"})
	w.refused(429, "Too Many Requests: retry after 1", "sendMessage", fields{"chat_id": ada, "text": "the edit that changed nothing was counted"})
	w.advance(time.Second)
	w.send(fields{"chat_id": ada, "text": "x"})
}

func TestRatesOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegramtest.Config{})
	for range 20 {
		w.send(fields{"chat_id": group, "text": "x"})
	}
	w.refused(429, "Too Many Requests: retry after 3", "sendMessage", fields{"chat_id": group, "text": "x"})
	w.advance(3 * time.Second)
	w.send(fields{"chat_id": group, "text": "x"})
	w.refused(429, "Too Many Requests: retry after 3", "sendMessage", fields{"chat_id": group, "text": "x"})
	w.advance(time.Minute)
	for range 20 {
		w.send(fields{"chat_id": group, "text": "x"})
	}
}

func TestRatesOverall(t *testing.T) {
	t.Parallel()
	var people []telegramtest.Person
	for i := range int64(31) {
		people = append(people, telegramtest.Person{ID: i + 1, Name: "P", Started: true})
	}
	at := time.Unix(1_780_000_000, 0)
	w := newWorld(t, telegramtest.Config{People: people, Now: func() time.Time { return at }})
	for i := range int64(30) {
		w.send(fields{"chat_id": i + 1, "text": "x"})
	}
	w.refused(429, "Too Many Requests: retry after 1", "sendMessage", fields{"chat_id": 31, "text": "x"})
}

func TestRatesAreScaled(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_780_000_000, 0)
	w := newWorld(t, telegramtest.Config{Rates: telegramtest.Rates{Scale: 2}, Now: func() time.Time { return at }})
	w.say(ada, ada, "hi")
	for range 10 {
		w.send(fields{"chat_id": ada, "text": "x"})
	}
	w.refused(429, "Too Many Requests: retry after 1", "sendMessage", fields{"chat_id": ada, "text": "x"})
	w.advance(time.Second)
	w.send(fields{"chat_id": ada, "text": "x"})
	w.send(fields{"chat_id": ada, "text": "x"})
	w.refused(429, "Too Many Requests: retry after 1", "sendMessage", fields{"chat_id": ada, "text": "x"})
}
