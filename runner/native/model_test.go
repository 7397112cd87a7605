package native_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"drawbridge/internal/modeltest"
	"drawbridge/runner"
	"drawbridge/runner/native"
)

// TestAModelIsOfATurn: what a turn names is what the endpoint is asked for, and without a name it is the configured one.
func TestAModelIsOfATurn(t *testing.T) {
	t.Parallel()
	s, srv := scripted(t, native.Config{}, modeltest.Reply{Text: "fine"})
	for _, model := range []string{"", "other", ""} {
		if _, err := s.Turn(t.Context(), runner.Input{Turn: "t", Text: "go", Model: model}); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	for _, r := range srv.Requests() {
		asked = append(asked, r.Model)
	}
	if !slices.Equal(asked, []string{"scripted", "other", "scripted"}) {
		t.Errorf("the endpoint was asked for %q", asked)
	}
}

// TestModelsAreTheEndpointsOwn: the configured one is the default, also where the endpoint does not list it, and what is
// listed is bounded.
func TestModelsAreTheEndpointsOwn(t *testing.T) {
	t.Parallel()
	many := make([]string, 0, 2*runner.MaxModels)
	for i := range cap(many) {
		many = append(many, fmt.Sprintf("m%03d", i))
	}
	for name, c := range map[string]struct {
		listed []string
		want   []runner.Model
	}{
		"listed":     {[]string{"zeta", "scripted", "alpha", "alpha"}, []runner.Model{{ID: "scripted", Default: true}, {ID: "alpha"}, {ID: "zeta"}}},
		"not listed": {[]string{"alpha"}, []runner.Model{{ID: "scripted", Default: true}, {ID: "alpha"}}},
		"none":       {nil, []runner.Model{{ID: "scripted", Default: true}}},
		"many":       {many, nil},
	} {
		srv := serve(t, modeltest.Config{Models: c.listed})
		got, err := runtime(t, native.Config{BaseURL: srv.URL()}).Probe(t.Context())
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == nil && len(got.Models) != runner.MaxModels, c.want != nil && !reflect.DeepEqual(got.Models, c.want):
			t.Errorf("%s: %+v", name, got.Models)
		case got.Version != "":
			t.Errorf("%s: a runtime without a program has version %q", name, got.Version)
		}
	}
}
