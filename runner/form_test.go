package runner_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"drawbridge/runner"
)

func TestFormsAreChecked(t *testing.T) {
	t.Parallel()
	one, ten := 1.0, 10.0
	for name, c := range map[string]struct {
		form runner.Form
		good []string
		bad  map[string]runner.Fault
	}{
		"any words":  {runner.Form{}, []string{"x", "世界", "12"}, nil},
		"a number":   {runner.Form{Number: true}, []string{"1", "-2.5", "1e3"}, map[string]runner.Fault{"": runner.FaultNumber, "one": runner.FaultNumber, "NaN": runner.FaultNumber, "1,5": runner.FaultNumber, "Inf": runner.FaultNumber}},
		"an integer": {runner.Form{Integer: true}, []string{"1", "-2"}, map[string]runner.Fault{"1.5": runner.FaultInteger, "1e30": runner.FaultInteger, "x": runner.FaultNumber}},
		"a range":    {runner.Form{Integer: true, Min: &one, Max: &ten}, []string{"1", "10"}, map[string]runner.Fault{"0": runner.FaultRange, "11": runner.FaultRange}},
		"a length":   {runner.Form{MinLength: 2, MaxLength: 3}, []string{"ab", "世界世"}, map[string]runner.Fault{"a": runner.FaultLength, "abcd": runner.FaultLength}},
		"an address": {runner.Form{Format: runner.FormatEmail}, []string{"ada@example.com"}, map[string]runner.Fault{"ada": runner.FaultFormat, "Ada <ada@example.com>": runner.FaultFormat}},
		"a page":     {runner.Form{Format: runner.FormatURI}, []string{"https://example.com/x"}, map[string]runner.Fault{"example": runner.FaultFormat, ":": runner.FaultFormat}},
		"a day":      {runner.Form{Format: runner.FormatDate}, []string{"2026-12-01"}, map[string]runner.Fault{"1.12.2026": runner.FaultFormat, "2026-13-01": runner.FaultFormat}},
		"a moment":   {runner.Form{Format: runner.FormatDateTime}, []string{"2026-12-01T10:00:00Z"}, map[string]runner.Fault{"2026-12-01": runner.FaultFormat}},
		"unheard of": {runner.Form{Format: "postcode"}, []string{"anything"}, nil},
	} {
		for _, words := range c.good {
			if fault := c.form.Check(runner.Query{}, []string{words}); fault != "" {
				t.Errorf("%s: %q is faulty: %s", name, words, fault)
			}
		}
		for words, want := range c.bad {
			if fault := c.form.Check(runner.Query{}, []string{words}); fault != want {
				t.Errorf("%s: %q: fault %q, want %q", name, words, fault, want)
			}
		}
	}
}

const schema = `{"type":"object","properties":{
	"zip":{"type":"string","title":"Zip","description":"of the town","minLength":2,"maxLength":5},
	"count":{"type":"integer","minimum":1,"maximum":10},
	"price":{"type":"number"},
	"sure":{"type":"boolean"},
	"color":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]},
	"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},
	"tags":{"type":"array","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"c","title":"C"}]}},
	"mail":{"type":"string","format":"email"}
},"required":["zip","tags","sure"]}`

func TestElicitationsAreQuestionsAndTheirAnswers(t *testing.T) {
	t.Parallel()
	e, err := runner.ParseElicitation(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	queries := e.Queries()
	var ids []string
	for _, q := range queries {
		ids = append(ids, q.ID)
	}
	if got := strings.Join(ids, " "); got != "zip count price sure color size tags mail" {
		t.Errorf("the fields are asked in the order %s", got)
	}
	if q := queries[0]; q.Text != "Zip: of the town" || !q.Free || q.Form.Optional || q.Form.MaxLength != 5 {
		t.Errorf("the first is %+v, %+v", q, q.Form)
	}
	if q := queries[6]; !q.Multiple || len(q.Options) != 3 || q.Options[1].Label != "B" || *q.Form.Max != 2 || q.Free {
		t.Errorf("the list is %+v, %+v", q, q.Form)
	}
	whole := map[string][]string{
		"zip": {"123"}, "count": {"7"}, "price": {"1.5"}, "sure": {"No"}, "color": {"Green"}, "size": {"Small"}, "tags": {"A", "C"}, "mail": nil,
	}
	content, ok := e.Content(whole)
	b, _ := json.Marshal(content)
	const want = `{"color":"g","count":7,"price":1.5,"size":"s","sure":false,"tags":["a","c"],"zip":"123"}`
	if !ok || string(b) != want {
		t.Errorf("the content is %s (%v), want %s", b, ok, want)
	}
	for name, change := range map[string][]string{"zip": {"1"}, "count": {"11"}, "price": {"x"}, "sure": nil, "color": {"g"}, "tags": {"A", "B", "C"}, "mail": {"nobody"}} {
		answers := maps.Clone(whole)
		answers[name] = change
		if content, ok := e.Content(answers); ok {
			t.Errorf("%s %q was taken: %v", name, change, content)
		}
	}
}

func TestElicitationsThatCannotBeAskedAreErrors(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		``, `[]`, `{"properties":[]}`, `{"properties":{"a":{"type":"object"}}}`, `{"properties":{"a":{"type":"array"}}}`,
		`{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `{"properties":{"":{"type":"string"}}}`,
		`{"properties":{"a":{"type":"string"},"a":{"type":"string"}}}`, `{"properties":{},"required":["a"]}`, `{"properties":{"a":{"type":["string"]}}}`,
	} {
		if e, err := runner.ParseElicitation(json.RawMessage(s)); err == nil {
			t.Errorf("%s became %+v", s, e.Queries())
		}
	}
	if e, err := runner.ParseElicitation(json.RawMessage(`{"type":"object"}`)); err != nil || len(e.Queries()) != 0 {
		t.Errorf("a form without fields: %+v, %v", e, err)
	}
}
