package telegramtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRequest bounds the body of a request to the Bot API: a file of 50 MB and its parameters.
const maxRequest = 51 << 20

var errBody = errors.New("request body can't be read")

// params are the arguments of one call. Whatever way they travel, Telegram treats each as a string.
type params struct {
	values map[string]string
	files  map[string]upload
}

type upload struct {
	name string
	mime string
	data []byte
}

// readParams reads the query and the body of a request. A body comes urlencoded, as JSON, or as multipart/form-data;
// an empty body is no parameters, whatever its declared type, since clients send an empty multipart body for methods
// without parameters.
func readParams(r *http.Request, body io.Reader) (params, error) {
	p := params{values: map[string]string{}, files: map[string]upload{}}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return p, errBody
	}
	p.addForm(query)
	in := bufio.NewReader(body)
	if _, err := in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		return p, err
	}
	kind, extra, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return p, errBody
	}
	switch kind {
	case "multipart/form-data":
		return p, p.addMultipart(multipart.NewReader(in, extra["boundary"]))
	case "application/json":
		return p, p.addJSON(in)
	case "application/x-www-form-urlencoded":
		b, err := io.ReadAll(in)
		if err != nil {
			return p, err
		}
		form, err := url.ParseQuery(string(b))
		if err != nil {
			return p, errBody
		}
		p.addForm(form)
		return p, nil
	default:
		return p, errBody
	}
}

func (p params) addForm(form url.Values) {
	for k, v := range form {
		p.values[k] = v[0]
	}
}

func (p params) addMultipart(parts *multipart.Reader) error {
	for {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a body that was cut
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if part.FileName() == "" {
			p.values[part.FormName()] = string(data)
			continue
		}
		p.files[part.FormName()] = upload{name: part.FileName(), mime: part.Header.Get("Content-Type"), data: data}
	}
}

func (p params) addJSON(in io.Reader) error {
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return errBody
	}
	for k, raw := range fields {
		switch {
		case bytes.Equal(raw, []byte("null")):
		case raw[0] == '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return errBody
			}
			p.values[k] = s
		default:
			p.values[k] = string(raw)
		}
	}
	return nil
}

func (p params) has(name string) bool { _, ok := p.values[name]; return ok }

// text is a parameter for people's eyes, which has to be valid UTF-8.
func (p params) text(name string) (string, error) {
	s := p.values[name]
	if !utf8.ValidString(s) {
		return "", badRequest("strings must be encoded in UTF-8")
	}
	return s, nil
}

// int is an integer; what is absent or no number is 0, as with Telegram.
func (p params) int(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(p.values[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (p params) bool(name string) bool {
	switch strings.ToLower(p.values[name]) {
	case "true", "yes", "1":
		return true
	default:
		return false
	}
}

// object decodes a JSON-serialized parameter into v and reports whether it was there.
func (p params) object(name, what string, v any) (bool, error) {
	raw := strings.TrimSpace(p.values[name])
	if raw == "" || raw == "null" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		return false, badRequest("can't parse %s JSON object", what)
	}
	return true, nil
}

// record is the parameters as /sim/calls shows them: numbers and objects as such where the name is known to hold
// one, files as name and size.
func (p params) record() map[string]any {
	out := make(map[string]any, len(p.values)+len(p.files))
	for k, v := range p.values {
		out[k] = typed(k, v)
	}
	for k, f := range p.files {
		out[k] = map[string]any{"file_name": f.name, "file_size": len(f.data)}
	}
	return out
}

func typed(name, value string) any {
	switch name {
	case "text", "caption", "url", "description", "name", "secret_token", "callback_query_id", "parse_mode", "file_id", "document", "photo":
		return value
	}
	if json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	return value
}
