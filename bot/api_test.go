package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const testToken = "42:a-very-secret-token"

// served is an API against a handler.
func served(t *testing.T, h http.HandlerFunc) *API {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	a, err := NewAPI(APIConfig{Token: testToken, URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func TestFaultsAreClassifiedOnce(t *testing.T) {
	t.Parallel()
	refusal := func(code int, text string) string {
		return fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q}`, code, text)
	}
	for name, c := range map[string]struct {
		status int
		body   string
		want   Fault
	}{
		"flood":             {429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}`, FaultRetryAfter},
		"migrated":          {400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}`, FaultMigrated},
		"not modified":      {400, refusal(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"), FaultNotModified},
		"message gone":      {400, refusal(400, "Bad Request: message to edit not found"), FaultGone},
		"too old to edit":   {400, refusal(400, "Bad Request: message can't be edited"), FaultGone},
		"chat gone":         {400, refusal(400, "Bad Request: chat not found"), FaultGone},
		"topic gone":        {400, refusal(400, "Bad Request: message thread not found"), FaultGone},
		"blocked":           {403, refusal(403, "Forbidden: bot was blocked by the user"), FaultForbidden},
		"no rights":         {400, refusal(400, "Bad Request: not enough rights to send text messages to the chat"), FaultForbidden},
		"closed topic":      {400, refusal(400, "Bad Request: TOPIC_CLOSED"), FaultForbidden},
		"formatting":        {400, refusal(400, "Bad Request: can't parse entities: Unsupported start tag"), FaultBadEntities},
		"entity in a pair":  {400, refusal(400, "Bad Request: Entity begins in a middle of a UTF-16 symbol at byte offset 1"), FaultBadEntities},
		"late tap":          {400, refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid"), FaultTooOld},
		"anything else":     {400, refusal(400, "Bad Request: BUTTON_DATA_INVALID"), FaultRejected},
		"second poller":     {409, refusal(409, "Conflict: terminated by other getUpdates request"), FaultConflict},
		"revoked token":     {401, refusal(401, "Unauthorized"), FaultUnauthorized},
		"token of no bot":   {404, refusal(404, "Not Found"), FaultUnauthorized},
		"server error":      {500, refusal(500, "Internal Server Error"), FaultTransient},
		"bad gateway":       {502, "<html><h1>502 Bad Gateway</h1></html>", FaultTransient},
		"empty":             {200, "", FaultTransient},
		"cut":               {200, `{"ok":true,"resu`, FaultTransient},
		"token in the text": {400, refusal(400, "Bad Request: no "+testToken), FaultRejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := served(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			m := send(1, "x")
			_, err := a.Post(t.Context(), &m, 0, 0, nil) // by the library
			_, own := a.Me(t.Context())                  // by ourselves
			for _, err := range []error{err, own, fmt.Errorf("wrapped: %w", err)} {
				if got := FaultOf(err); got != c.want {
					t.Errorf("%q, want %q: %v", got, c.want, err)
				}
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "secret") {
					t.Errorf("the token shows: %v", err)
				}
				e, _ := errors.AsType[*Error](err)
				if e == nil {
					t.Fatalf("not an Error: %#v", err)
				}
				if c.want == FaultRetryAfter && e.RetryAfter != 7*time.Second || c.want == FaultMigrated && e.MigrateTo != -1001234567890 {
					t.Errorf("details: %+v", e)
				}
			}
		})
	}
}

func TestNetworkErrorsNeverShowTheToken(t *testing.T) {
	t.Parallel()
	a := served(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	m := send(1, "x")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		_, posted := a.Post(ctx, &m, 0, 0, nil)
		_, polled := a.Updates(ctx, 0, 0, 1)
		_, fetched := a.Download(ctx, "f", 10)
		for _, err := range []error{posted, polled, fetched, a.AnswerQuery(ctx, "q", "", false)} {
			if FaultOf(err) != FaultTransient || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "secret") {
				t.Errorf("error: %v", err)
			}
			if errors.Is(err, context.Canceled) != (ctx == ended) {
				t.Errorf("canceled is %t: %v", ctx != ended, err)
			}
		}
	}
	if s := fmt.Sprintf("%v %s", a, a.LogValue()); strings.Contains(s, "secret") {
		t.Errorf("the API prints as %s", s)
	}
}

func TestSentMessageWhoseAnswerCannotBeDecodedIsSent(t *testing.T) {
	t.Parallel()
	a := served(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"ok":true,"result":{"message_id":77,"date":1,"chat":{"id":1,"type":"private"},"forward_origin":{"type":"from_mars"}}}`))
	})
	m := send(1, "x")
	if id, err := a.Post(t.Context(), &m, 0, 0, nil); id != 77 || err != nil {
		t.Errorf("message %d, error %v", id, err)
	}
}

func TestClosedIdleConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	var bodies []int64
	a := served(t, func(w http.ResponseWriter, r *http.Request) {
		bodies = append(bodies, r.ContentLength)
		_, _ = w.Write([]byte(`{"ok":true,"result":{"message_id":1,"date":1,"chat":{"id":1,"type":"private"}}}`))
	})
	m := send(1, "x")
	for range 3 {
		if _, err := a.Post(t.Context(), &m, 0, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(bodies) != 3 || slices.Contains(bodies, -1) {
		t.Errorf("lengths of the bodies, which can only be repeated when they are known: %v", bodies)
	}
}

func TestDownloadIsBounded(t *testing.T) {
	t.Parallel()
	a := served(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/getFile") {
			_ = json.NewEncoder(w).Encode(object{"ok": true, "result": object{"file_id": "f", "file_path": "photos/1"}})
			return
		}
		_, _ = w.Write([]byte("0123456789"))
	})
	if b, err := a.Download(t.Context(), "f", 10); string(b) != "0123456789" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if _, err := a.Download(t.Context(), "f", 9); FaultOf(err) != FaultRejected {
		t.Errorf("error: %v", err)
	}
}

func TestChatKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]ChatRef{"5": {ID: 5}, "-100123": {ID: -100123}, "-100123/45": {ID: -100123, Topic: 45}} {
		got, err := ParseChat(key)
		if err != nil || got != want || got.Key() != key {
			t.Errorf("%s: %v %v", key, got, err)
		}
	}
	for _, key := range []string{"", "x", "0", "1/", "1/0", "/5", "1/2/3", "+1", "01", "1/ 2", "-100123/045"} {
		if got, err := ParseChat(key); err == nil {
			t.Errorf("%q was read as %v", key, got)
		}
	}
}

func TestWhatNoAttemptCanSendIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Outgoing{
		"no chat":      {Kind: KindSend, Text: "x"},
		"no text":      {Kind: KindSend, Chat: ChatRef{ID: 1}},
		"no kind":      {Text: "x", Chat: ChatRef{ID: 1}},
		"a draft":      {Kind: KindDraft, Text: "x", Chat: ChatRef{ID: 1}},
		"edit of what": {Kind: KindEdit, Text: "x", Chat: ChatRef{ID: 1}},
		"no document":  {Kind: KindDocument, Chat: ChatRef{ID: 1}},
		"65 bytes":     {Kind: KindSend, Text: "x", Chat: ChatRef{ID: 1}, Buttons: [][]Button{{{Text: "x", Data: strings.Repeat("x", 65)}}}},
	} {
		if m.check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	m := send(1, "x")
	if err := m.check(); err != nil {
		t.Error(err)
	}
}
