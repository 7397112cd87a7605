package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

const webhookSecret = "only-Telegram-knows-this"

// door is what stands between Telegram and the gateways: the address that is told to Telegram, and behind it the
// gateways, which it serves in turn. One that does not answer is passed over.
type door struct {
	t      *testing.T
	behind []string // addresses for DRAWBRIDGE_WEBHOOK_LISTEN

	mu    sync.Mutex
	next  int
	count []int
}

// freeAddress is one on this machine where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// newDoor makes a world's processes use a webhook.
func newDoor(t *testing.T, w *world, gateways int) *door {
	t.Helper()
	d := &door{t: t, count: make([]int, gateways)}
	for range gateways {
		d.behind = append(d.behind, freeAddress(t))
	}
	srv := httptest.NewServer(d)
	t.Cleanup(srv.Close)
	w.env["DRAWBRIDGE_WEBHOOK_URL"] = srv.URL
	w.env["DRAWBRIDGE_WEBHOOK_LISTEN"] = d.behind[0]
	w.env["DRAWBRIDGE_WEBHOOK_SECRET"] = webhookSecret
	return d
}

// ServeHTTP passes an update on.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	first := d.next
	d.next = (d.next + 1) % len(d.behind)
	d.mu.Unlock()
	for k := range d.behind {
		i := (first + k) % len(d.behind)
		status := d.deliver(i, r.Header.Get("X-Telegram-Bot-Api-Secret-Token"), body)
		if status == 0 {
			continue
		}
		if status == http.StatusOK {
			d.mu.Lock()
			d.count[i]++
			d.mu.Unlock()
		}
		w.WriteHeader(status)
		return
	}
	w.WriteHeader(http.StatusBadGateway)
}

// deliver posts an update to a gateway and returns the status, 0 if nobody answers.
func (d *door) deliver(i int, secret string, body []byte) int {
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, "http://"+d.behind[i], bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	if secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close() //nolint:errcheck // only its status counts
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// passed says how many updates entered through each gateway.
func (d *door) passed() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.count)
}

// TestWebhook: updates come by webhook, only with the secret, and none is lost when the process is killed and restarted.
func TestWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	door := newDoor(t, w, 1)
	serve := w.start("serve")
	me := w.private(ada)
	prompt := me.say("run echo one >> ran")
	card := me.card(prompt, "echo one")
	me.tap(card.ID, "Allow")
	me.ends(prompt, "Done in")

	forged, err := json.Marshal(map[string]any{"update_id": 1 << 40, "message": map[string]any{
		"message_id": 9999, "date": 1780000000, "text": "run echo forged >> ran",
		"from": map[string]any{"id": ada, "first_name": "Ada"}, "chat": map[string]any{"id": ada, "type": "private"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"", "wrong", webhookSecret + "x"} {
		if status := door.deliver(0, secret, forged); status != http.StatusForbidden {
			t.Errorf("an update with the secret %q has status %d, want 403", secret, status)
		}
	}
	serve.kill()
	away := me.say("run echo two >> ran")
	serve = w.start("serve")
	me.tap(me.card(away, "echo two").ID, "Allow")
	me.ends(away, "Done in")
	w.holds("ran", "one\ntwo\n")
	if got := len(w.calls("getUpdates")); got != 0 {
		t.Errorf("%d calls of getUpdates although there is a webhook", got)
	}
	if m := me.bots(away); len(m) == 0 || slices.ContainsFunc(me.bots(0), func(m message) bool { return fmt.Sprint(m.Text) == "forged" }) {
		t.Errorf("the forged update was carried out:\n%s", me.transcript())
	}
	serve.stop()
}

// TestUndecodableUpdate: an update that cannot be read is set aside and reported as not run, and the next one is handled.
func TestUndecodableUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{})
	door := newDoor(t, w, 1)
	serve := w.start("serve")
	me := w.private(ada)
	me.ends(me.say("say hello"), "hello")
	broken := `{"update_id": 1099511627776, "message": {"message_id": 5000, "date": "yesterday", "text": "run echo broken > ran",
		"from": {"id": 1001, "first_name": "Ada"}, "chat": {"id": 1001, "type": "private"}}}`
	if status := door.deliver(0, webhookSecret, []byte(broken)); status != http.StatusOK {
		t.Errorf("an update that cannot be decoded has status %d; Telegram would deliver it for ever", status)
	}
	me.hears(0, "A message could not be handled and was not run")
	me.ends(me.say("say and on"), "and on")
	serve.logs("1099511627776") // by its id, for whoever looks after the program
	w.holds("ran", "")
}
