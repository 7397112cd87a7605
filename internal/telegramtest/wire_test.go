package telegramtest

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func form(t testing.TB, values map[string]string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for k, v := range values {
		if err := w.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

// Parameters come in four ways, and in none.
func TestParametersOnTheWire(t *testing.T) {
	t.Parallel()
	kind, multi := form(t, map[string]string{"chat_id": "1001", "text": "hi"})
	s := New(Config{People: []Person{{ID: 1001, Name: "Ada", Started: true}}, Rates: Rates{Off: true}})
	const hook = "/bot" + DefaultToken + "/"
	for _, c := range []struct {
		name, method, path, kind, body string
		status                         int
		want                           string
	}{
		{"query", "GET", hook + "sendMessage?chat_id=1001&text=hi", "", "", 200, `"text":"hi"`},
		{"urlencoded", "POST", hook + "sendMessage", "application/x-www-form-urlencoded", "chat_id=1001&text=h%20i", 200, `"text":"h i"`},
		{"JSON", "POST", hook + "sendMessage", "application/json; charset=utf-8", `{"chat_id":1001,"text":"hi","entities":[{"type":"bold","offset":0,"length":2}],"message_thread_id":null}`, 200, `"type":"bold"`},
		{"multipart", "POST", hook + "sendMessage", kind, multi, 200, `"text":"hi"`},
		{"empty multipart", "POST", hook + "getMe", kind, "", 200, `"is_bot":true`},
		{"no body", "POST", hook + "getMe", "", "", 200, `"is_bot":true`},
		{"method in any case", "POST", hook + "GETME", "", "", 200, `"is_bot":true`},
		{"cut multipart", "POST", hook + "sendMessage", kind, multi[:len(multi)-8], 400, `Bad Request`},
		{"no multipart", "POST", hook + "sendMessage", kind, "garbage", 400, `Bad Request: can't parse the request`},
		{"broken JSON", "POST", hook + "sendMessage", "application/json", `{"chat_id":`, 400, `Bad Request`},
		{"unknown kind", "POST", hook + "sendMessage", "text/plain", "hi", 400, `Bad Request`},
		{"wrong token", "POST", "/bot1:wrong/getMe", "", "", 401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`},
		{"unknown method", "POST", hook + "makeCoffee", "", "", 404, `{"ok":false,"error_code":404,"description":"Not Found"}`},
		{"no method", "POST", hook, "", "", 404, `Not Found`},
		{"unknown file", "GET", "/file" + hook + "documents/none", "", "", 404, `Not Found`},
		{"file with a wrong token", "GET", "/file/bot1:wrong/documents/none", "", "", 401, `Unauthorized`},
		{"elsewhere", "GET", "/", "", "", 404, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s, want %d and %s", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

func FuzzReadParams(f *testing.F) {
	kind, multi := form(f, map[string]string{"chat_id": "1001", "text": "hi", "entities": "[]"})
	f.Add(kind, multi, "a=b")
	f.Add(kind, "", "")
	f.Add("application/json", `{"chat_id":1001,"text":"hi","entities":[{}],"x":null}`, "")
	f.Add("application/x-www-form-urlencoded", "chat_id=1&text=%ff", "%")
	f.Add("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\nc\r\n--x--", "")
	f.Fuzz(func(t *testing.T, kind, body, query string) {
		r := &http.Request{Header: http.Header{"Content-Type": {kind}}}
		r.URL = httptest.NewRequest(http.MethodPost, "/", nil).URL
		r.URL.RawQuery = query
		p, err := readParams(r, strings.NewReader(body))
		if err != nil {
			return
		}
		for name, value := range p.record() {
			if value == nil {
				t.Errorf("parameter %q is shown as nothing", name)
			}
		}
		p.int("chat_id")
		if _, err := p.replyMarkup(Private); err != nil {
			if _, ok := err.(*refusal); !ok { //nolint:errorlint // it is exactly that, not one that wraps it
				t.Errorf("a markup is refused with %v", err)
			}
		}
	})
}
