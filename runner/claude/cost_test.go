package claude_test

import (
	"slices"
	"testing"

	"drawbridge/runner/claude"
)

// TestATurnCostsWhatCameOnTopOfTheConversation: the program says what the whole conversation has cost, also of processes
// that have ended (recorded: testdata/text.jsonl).
func TestATurnCostsWhatCameOnTopOfTheConversation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resumed bool
		totals  []float64
		want    []int64
	}{
		"as recorded":               {false, []float64{0.015004, 0.030123999999999998}, []int64{15004, 15120}},
		"resumed":                   {true, []float64{0.5, 0.75}, []int64{0, 250_000}},
		"says nothing for a while":  {false, []float64{0, 0.1, 0, 0.1, 0.3}, []int64{0, 100_000, 0, 0, 200_000}},
		"counts from nothing again": {false, []float64{0.5, 0.1, 0.2}, []int64{500_000, 0, 100_000}},
	} {
		if got := claude.Costs(c.resumed, c.totals...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
