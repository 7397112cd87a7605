package claude_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"drawbridge/policy"
	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// elicitVariable makes the test binary an MCP server whose one tool has a person fill in a form, and returns what it was told.
const elicitVariable = "SERVE_FORM"

// formSchema is the form's.
const formSchema = `{"type":"object","properties":{"name":{"type":"string","title":"Your name","minLength":2},` +
	`"size":{"type":"integer","minimum":1,"maximum":9},"colour":{"type":"string","enum":["red","blue"]}},"required":["name","size"]}`

// serveForm is that server.
func serveForm(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	var call json.RawMessage
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		answer := func(id json.RawMessage, result string) {
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
		}
		switch {
		case m.ID == nil: // a notification
		case m.Method == "initialize":
			answer(m.ID, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"forms","version":"1"}}`, m.Params.Version))
		case m.Method == "tools/list":
			answer(m.ID, `{"tools":[{"name":"order","description":"Orders.","inputSchema":{"type":"object","properties":{}}}]}`)
		case m.Method == "tools/call":
			call = m.ID
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"form","method":"elicitation/create","params":{"message":"What shall it be?","requestedSchema":%s}}`+"\n", formSchema)
		case m.Method == "" && string(m.ID) == `"form"`:
			b, err := json.Marshal("told " + string(m.Result) + string(m.Error))
			if err != nil {
				return err
			}
			answer(call, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
		case m.Method != "":
			answer(m.ID, `{}`)
		}
	}
	return lines.Err()
}

// filled is a person who fills the form in.
func filled(q runner.Question) runner.Answer {
	a := yes(q)
	if q.Kind == runner.KindQuestion {
		a.Answers = map[string][]string{"name": {"Ada"}, "size": {"3"}, "colour": {"blue"}, "confirm": {"Yes"}, "url": {"Done"}}
	}
	return a
}

// late is nobody.
func late(runner.Question) runner.Answer {
	return runner.Answer{Decision: runner.Denied, Source: runner.SourceTimeout}
}

// TestWhatAnMCPServerWantsOfAPersonIsAsked: forms and pages come to a person as questions, whose answer the server is told in
// its protocol's way. What can't be asked is refused, and the turn goes on.
func TestWhatAnMCPServerWantsOfAPersonIsAsked(t *testing.T) {
	t.Parallel()
	form := `"mode":"form","requested_schema":` + formSchema
	for name, c := range map[string]struct {
		fields string
		person func(runner.Question) runner.Answer
		told   string // empty where it is refused
		ids    string // of what is asked
	}{
		"a form that is filled in":  {form, filled, `{"action":"accept","content":{"colour":"blue","name":"Ada","size":3}}`, "name size colour"},
		"a form without its mode":   {`"requested_schema":` + formSchema, filled, `{"action":"accept","content":{"colour":"blue","name":"Ada","size":3}}`, "name size colour"},
		"a form that is declined":   {form, no, `{"action":"decline"}`, "name size colour"},
		"a form that nobody fills":  {form, late, `{"action":"cancel"}`, "name size colour"},
		"an answer that is missing": {form, yes, `{"action":"cancel"}`, "name size colour"},
		"a form without fields":     {`"mode":"form"`, filled, `{"action":"accept","content":{}}`, "confirm"},
		"a page":                    {`"mode":"url","url":"https://example.org/pay","elicitation_id":"e"`, filled, `{"action":"accept","content":{}}`, "url"},
		"a page that is declined":   {`"mode":"url","url":"https://example.org/pay"`, no, `{"action":"decline"}`, "url"},
		"a form that can't be":      {`"mode":"form","requested_schema":{"properties":{"a":{"type":"object"}}}`, filled, "", ""},
		"an unknown mode":           {`"mode":"dance"`, filled, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := `{"subtype":"success","request_id":"e1","response":` + c.told + `}`
			if c.told == "" {
				response = `{"subtype":"error","request_id":"e1"}`
			}
			transcript := ready("default") + prompted0(uuid) +
				`{"dir":"in","frame":{"type":"control_request","request_id":"e1","request":{"subtype":"elicitation","mcp_server_name":"forms","message":"What shall it be?",` + c.fields + `}}}` + "\n" +
				`{"dir":"out","frame":{"type":"control_response","response":` + response + `}}` + "\n" + ended0(uuid)
			r, _ := faked(t, transcript, claude.Config{})
			o := begin(t, r, folder(t), runner.Policy{Mode: policy.FullAccess, Interaction: policy.Default}, c.person)
			o.turn("go", runner.Completed)
			o.mu.Lock()
			defer o.mu.Unlock()
			var ids []string
			for _, q := range o.questions {
				if q.Kind != runner.KindQuestion || !q.Has(policy.Question) || q.Item == "" || q.Turn == "" || !strings.HasPrefix(q.Title, "forms: What shall") {
					t.Errorf("asked %+v", q)
				}
				for _, one := range q.Queries {
					ids = append(ids, one.ID)
				}
			}
			if got := strings.Join(ids, " "); got != c.ids {
				t.Errorf("asked %q, want %q", got, c.ids)
			}
			begun := slices.ContainsFunc(o.events, func(e runner.Event) bool { return e.Kind == runner.ItemStarted && e.Item.Kind == runner.ItemQuestion })
			over := slices.ContainsFunc(o.events, func(e runner.Event) bool { return e.Kind == runner.ItemCompleted && e.Item.Kind == runner.ItemQuestion })
			if asked := c.ids != ""; begun != asked || over != asked {
				t.Errorf("its item was begun %v, completed %v", begun, over)
			}
		})
	}
}
