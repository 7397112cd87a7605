package claude_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// control is a request of ours and the program's answer to it.
func control(id, subtype, answer string) string {
	return fmt.Sprintf(`{"dir":"out","frame":{"type":"control_request","request_id":%q,"request":{"subtype":%q}}}
{"dir":"in","frame":{"type":"control_response","response":{%s,"request_id":%q}}}
`, id, subtype, answer, id)
}

const (
	taken   = `"subtype":"success","response":{}`
	refused = `"subtype":"error","error":"no such model"`
)

// TestAModelIsOfATurn: the program is told only what changes, and what it is told gives back the settings that it was
// started with.
func TestAModelIsOfATurn(t *testing.T) {
	t.Parallel()
	r, file := faked(t, ready("default")+
		turned("00000000-0000-4000-8000-00000000000a", "")+
		control("m1", "set_model", taken)+control("e1", "apply_flag_settings", taken)+turned("00000000-0000-4000-8000-00000000000b", "")+
		turned("00000000-0000-4000-8000-00000000000c", "")+
		control("m2", "set_model", taken)+control("e2", "apply_flag_settings", taken)+turned("00000000-0000-4000-8000-00000000000d", ""), claude.Config{})
	o := begin(t, r, folder(t), asking, no)
	for _, in := range []runner.Input{{}, {Model: "haiku", Effort: "high"}, {Model: "haiku", Effort: "high"}, {}} {
		in.Turn, in.Text = "turn", "go"
		if res, err := o.Turn(t.Context(), in); err != nil || res.Outcome != runner.Completed {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	var told []string
	b, err := os.ReadFile(file + receivedFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, request, ok := strings.Cut(line, `"request":{`); ok && !strings.Contains(line, "initialize") {
			told = append(told, strings.TrimRight(request, "}\n"))
		}
	}
	want := []string{
		`"model":"haiku","subtype":"set_model"`, `"settings":{"effortLevel":"high","useAutoModeDuringPlan":false},"subtype":"apply_flag_settings"`,
		`"model":"default","subtype":"set_model"`, `"settings":{"effortLevel":null,"useAutoModeDuringPlan":false},"subtype":"apply_flag_settings"`,
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("the program was told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// TestAModelThatIsRefused is told, and the turn goes on with the default.
func TestAModelThatIsRefused(t *testing.T) {
	t.Parallel()
	r, _ := faked(t, ready("default")+control("m1", "set_model", refused)+turned("00000000-0000-4000-8000-00000000000a", ""), claude.Config{})
	o := begin(t, r, folder(t), asking, no)
	res, err := o.Turn(t.Context(), runner.Input{Turn: "turn", Text: "go", Model: "gone"})
	if err != nil || res.Outcome != runner.Completed || !strings.Contains(o.story(), "does not take the model gone, so its default is used") {
		t.Errorf("%+v, %v\n%s", res, err, o.story())
	}
}

// TestModelsAreTheProgramsOwn: a configured model is the default, also where the program does not list it.
func TestModelsAreTheProgramsOwn(t *testing.T) {
	t.Parallel()
	list := `"models":[{"value":"default","resolvedModel":"claude-opus-5-5","displayName":"Default","supportsEffort":true,"supportedEffortLevels":["low","high"]},` +
		`{"value":"opus","resolvedModel":"claude-opus-5-5"},{"value":"haiku","resolvedModel":"claude-haiku-5-5","supportedEffortLevels":["low"]}]`
	greeting := ready("default")
	from, to := strings.Index(greeting, `"models":[`), strings.Index(greeting, `]}}}`)
	greeting = greeting[:from] + list + greeting[to+1:]
	transcript := "{\"dir\":\"version\",\"raw\":\"2.1.332 (Claude Code)\"}\n{\"dir\":\"auth\",\"raw\":\"{}\"}\n" + greeting
	efforts := []string{"low", "high"}
	for configured, want := range map[string][]runner.Model{
		"":                 {{ID: "default", Name: "Default", Default: true, Efforts: efforts}, {ID: "opus"}, {ID: "haiku"}},
		"haiku":            {{ID: "default", Name: "Default", Efforts: efforts}, {ID: "opus"}, {ID: "haiku", Default: true}},
		"claude-haiku-5-5": {{ID: "default", Name: "Default", Efforts: efforts}, {ID: "opus"}, {ID: "haiku", Default: true}},
		"elsewhere-1":      {{ID: "elsewhere-1", Default: true}, {ID: "default", Name: "Default", Efforts: efforts}, {ID: "opus"}, {ID: "haiku"}},
	} {
		r, _ := faked(t, transcript, claude.Config{Model: configured})
		if got, err := r.Probe(t.Context()); err != nil || !reflect.DeepEqual(got.Models, want) {
			t.Errorf("%q: %+v (%s), %v", configured, got.Models, got.Problem, err)
		}
	}
}
