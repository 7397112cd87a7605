package chatapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/chatapi"
)

func TestFailuresAreToldApart(t *testing.T) {
	t.Parallel()
	good := stream(delta(`{"content":"x"}`), stop)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    chatapi.Kind
		retried bool
		words   string
	}{
		"wrong key":              {answer(401, `{"error":{"message":"Incorrect API key"}}`), chatapi.Auth, false, "Incorrect API key"},
		"not allowed":            {answer(403, `forbidden`), chatapi.Auth, false, "forbidden"},
		"no quota":               {answer(429, `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`), chatapi.Quota, false, "quota"},
		"no balance":             {answer(402, `{"error":{"message":"Insufficient Balance"}}`), chatapi.Quota, false, "Balance"},
		"too many":               {answer(429, `{"error":"slow down"}`), chatapi.RateLimited, true, "slow down"},
		"no model":               {answer(404, `{"error":{"message":"The model x does not exist","code":"model_not_found"}}`), chatapi.NoModel, false, "does not exist"},
		"no page":                {answer(404, `<html>not found</html>`), chatapi.NoModel, false, "base URL"},
		"too long":               {answer(400, `{"error":{"message":"This model's maximum context length is 8 tokens","code":"context_length_exceeded"}}`), chatapi.TooLong, false, "new session"},
		"too long for llama":     {answer(400, `{"error":{"code":400,"message":"request exceeds the available context size","type":"exceed_context_size_error"}}`), chatapi.TooLong, false, "context"},
		"refused":                {answer(422, `{"detail":[{"msg":"bad"}]}`), chatapi.Refused, false, "bad"},
		"broken":                 {answer(500, `oops`), chatapi.Unavailable, true, "oops"},
		"overloaded":             {answer(529, ``), chatapi.Unavailable, true, ""},
		"redirected":             {answer(307, ``, "Location", "http://127.0.0.1:1/"), chatapi.BadResponse, false, "redirects"},
		"a web page":             {answer(200, `<html>log in</html>`, "Content-Type", "text/html; charset=utf-8"), chatapi.BadResponse, false, "web page"},
		"nothing":                {answer(200, ``), chatapi.Cut, true, ""},
		"only DONE":              {stream(done), chatapi.BadResponse, false, "no answer"},
		"not JSON":               {stream(`{"choices":`), chatapi.BadResponse, false, "not JSON"},
		"another protocol":       {stream(`{"type":"message_start"}`, done), chatapi.BadResponse, false, "no answer"},
		"half an object":         {answer(200, `{"choices":[{"message":{"con`), chatapi.Cut, true, ""},
		"an error in the stream": {stream(`{"error":{"message":"upstream died","code":502}}`), chatapi.Unavailable, true, "upstream died"},
		"an error as a string":   {stream(`{"error":"died"}`), chatapi.Unavailable, true, "died"},
		"an error as an object":  {answer(200, `{"error":{"message":"rate","code":"rate_limit_exceeded"}}`), chatapi.RateLimited, true, "rate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, chatapi.Config{Attempts: 3}, c.handler)
			_, err := e.Complete(t.Context(), request, chatapi.Watch{})
			var failure *chatapi.Error
			if !errors.As(err, &failure) || failure.Kind != c.kind || !strings.Contains(failure.Advice(), c.words) {
				t.Fatalf("error %v, want %s with %q", err, c.kind, c.words)
			}
			want := int64(1)
			if c.retried {
				want = 3
			}
			if n := e.requests.Load(); n != want {
				t.Errorf("%d requests, want %d", n, want)
			}
			if !c.retried {
				return
			}
			bad := c.handler
			e = serve(t, chatapi.Config{Attempts: 3}, c.handler, bad, good)
			var told []int
			r, err := e.Complete(t.Context(), request, chatapi.Watch{Retry: func(n int, wait time.Duration, why *chatapi.Error) {
				if why.Kind != c.kind || wait <= 0 {
					t.Errorf("retry %d after %s because of %v", n, wait, why)
				}
				told = append(told, n)
			}})
			if err != nil || r.Message.Content != "x" || len(told) != 2 || told[0] != 1 || told[1] != 2 {
				t.Errorf("reply %+v, error %v, retries %v", r, err, told)
			}
		})
	}
}

func TestACutIsNoticed(t *testing.T) {
	t.Parallel()
	abort := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			stream(events...)(w, r)
			panic(http.ErrAbortHandler)
		}
	}
	part := delta(`{"content":"so far"}`)
	for name, h := range map[string]http.HandlerFunc{
		"the stream just ends":   stream(part),
		"the connection breaks":  abort(part),
		"in the middle of calls": stream(part, delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"p\":"}}]}`)),
		"an error afterwards":    stream(part, `{"error":{"message":"died"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, chatapi.Config{}, h)
			r, err := e.Complete(t.Context(), request, chatapi.Watch{})
			var failure *chatapi.Error
			if !errors.As(err, &failure) || !failure.Temporary() || r.Message.Content != "so far" {
				t.Errorf("reply %+v, error %v", r, err)
			}
			if n := e.requests.Load(); n != 1 {
				t.Errorf("%d requests: what was told already must not be told again", n)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	good := stream(delta(`{"content":"x"}`), stop)
	at := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		header   []string
		min, max time.Duration
	}{
		"seconds":      {[]string{"Retry-After", "0.02"}, 20 * time.Millisecond, 20 * time.Millisecond},
		"milliseconds": {[]string{"Retry-After-Ms", "30"}, 30 * time.Millisecond, 30 * time.Millisecond},
		"a date":       {[]string{"Retry-After", at}, 59 * time.Minute, time.Hour},
		"too long":     {[]string{"Retry-After", "86400"}, 24 * time.Hour, 24 * time.Hour},
		"nonsense":     {[]string{"Retry-After", "soon"}, 0, 0},
		"in the past":  {[]string{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, chatapi.Config{MaxWait: time.Second}, answer(429, "", c.header...), good)
			var waited time.Duration
			_, err := e.Complete(t.Context(), request, chatapi.Watch{Retry: func(_ int, wait time.Duration, _ *chatapi.Error) { waited = wait }})
			if c.min <= time.Second {
				if err != nil || waited < c.min || c.max > 0 && waited > c.max {
					t.Errorf("waited %s, error %v", waited, err)
				}
				return
			}
			var failure *chatapi.Error
			if !errors.As(err, &failure) || failure.RetryAfter < c.min || failure.RetryAfter > c.max || waited != 0 ||
				!strings.Contains(failure.Advice(), "asks to wait for") {
				t.Errorf("waited %s, error %v", waited, err)
			}
		})
	}
}

func TestSilenceAndSizeAreBounded(t *testing.T) {
	t.Parallel()
	silent := func(w http.ResponseWriter, r *http.Request) {
		stream(delta(`{"content":"so far"}`))(w, r)
		<-r.Context().Done()
	}
	e := serve(t, chatapi.Config{Idle: 50 * time.Millisecond}, silent)
	r, err := e.Complete(t.Context(), request, chatapi.Watch{})
	var failure *chatapi.Error
	if !errors.As(err, &failure) || failure.Kind != chatapi.Network || r.Message.Content != "so far" {
		t.Errorf("silence: reply %+v, error %v", r, err)
	}
	huge := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("data: " + delta(`{"content":"`+strings.Repeat("x", 1000)+`"}`) + "\n\n")); err != nil {
				return
			}
		}
	}
	e = serve(t, chatapi.Config{MaxBody: 100_000}, huge)
	if _, err = e.Complete(t.Context(), request, chatapi.Watch{}); !errors.As(err, &failure) || failure.Kind != chatapi.BadResponse {
		t.Errorf("size: error %v", err)
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: "))
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("x", 1<<20))); err != nil {
				return
			}
		}
	}
	e = serve(t, chatapi.Config{}, endless)
	if _, err = e.Complete(t.Context(), request, chatapi.Watch{}); !errors.As(err, &failure) || failure.Kind != chatapi.BadResponse {
		t.Errorf("an endless event: error %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, err := chatapi.New(chatapi.Config{BaseURL: "http://127.0.0.1:1/v1", Attempts: 2, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Complete(t.Context(), request, chatapi.Watch{})
	var failure *chatapi.Error
	if !errors.As(err, &failure) || failure.Kind != chatapi.Network || !strings.Contains(failure.Advice(), "refused") {
		t.Errorf("error %v", err)
	}
}
