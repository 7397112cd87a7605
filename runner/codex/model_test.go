package codex_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/codex"
)

const listedModels = `{"data":[
	{"id":"a","model":"a","displayName":"A","isDefault":true,"defaultReasoningEffort":"low","supportedReasoningEfforts":[{"reasoningEffort":"low"},{"reasoningEffort":"high"}]},
	{"id":"b","model":"b","hidden":true},{"id":"c","model":"c","displayName":"C","isDefault":false,"somethingNew":[1]}],"nextCursor":null}`

// TestModelsAreCodexsOwn: a configured model is the default, also where codex does not list it.
func TestModelsAreCodexsOwn(t *testing.T) {
	t.Parallel()
	a := runner.Model{ID: "a", Name: "A", Efforts: []string{"low", "high"}, Effort: "low"}
	standard, c := a, runner.Model{ID: "c", Name: "C"}
	standard.Default = true
	chosen := c
	chosen.Default = true
	for configured, want := range map[string][]runner.Model{
		"": {standard, c}, "c": {a, chosen}, "elsewhere": {{ID: "elsewhere", Default: true}, a, c},
	} {
		r := imitate(t, imitation{Models: listedModels}, func(x *codex.Config) { x.Model = configured })
		if got, err := r.Probe(t.Context()); err != nil || !reflect.DeepEqual(got.Models, want) {
			t.Errorf("%q: %+v, %v", configured, got.Models, err)
		}
	}
}

// TestAModelIsOfATurn: what a turn names goes with it, and an effort that is not named any more is taken back.
func TestAModelIsOfATurn(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	s := open(t, imitate(t, imitation{Record: record}), opening{})
	for _, in := range []runner.Input{{}, {Model: "c", Effort: "high"}, {Model: "c"}} {
		in.Turn, in.Text = "turn", "say it"
		if _, err := s.Turn(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	var got [][3]string
	for _, f := range sentFrames(t, record) {
		if f["method"] == "turn/start" {
			got = append(got, [3]string{
				f.text("params", "model") + "/" + f.text("params", "effort"), f.text("params", "collaborationMode", "settings", "model"),
				f.text("params", "collaborationMode", "settings", "reasoning_effort"),
			})
		}
	}
	want := [][3]string{{"/", "gpt-5.5", ""}, {"c/high", "c", "high"}, {"c/", "c", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("codex was told %q, want %q", got, want)
	}
}
