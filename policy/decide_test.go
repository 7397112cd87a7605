package policy_test

import (
	"slices"
	"testing"

	"drawbridge/policy"

	"pgregory.net/rapid"
)

var categories = []policy.Category{
	policy.Read, policy.Secret, policy.ReadOutside, policy.Write, policy.Protected, policy.System, policy.Delete, policy.Terminal,
	policy.Fetch, policy.Network, policy.Credential, policy.Publish, policy.Payment, policy.Question, policy.Unknown,
}

// The table of the design, written out a second time: a cell that is changed must be changed in both.
func TestDecideIsTheTable(t *testing.T) {
	t.Parallel()
	const a, r, q, d = policy.Allow, policy.Review, policy.Ask, policy.Deny
	table := []struct {
		mode policy.Mode
		plan policy.Interaction
		want map[policy.Category]policy.Verdict
	}{
		{policy.ApprovalRequired, policy.Default, map[policy.Category]policy.Verdict{
			"read": a, "secret": q, "read-outside": q, "write": q, "protected": q, "system": q, "delete": q, "terminal": q, "fetch": q, "network": q, "credential": q, "publish": q, "payment": q, "question": q, "unknown": q,
		}},
		{policy.AutoAcceptEdits, policy.Default, map[policy.Category]policy.Verdict{
			"read": a, "secret": q, "read-outside": q, "write": a, "protected": q, "system": q, "delete": q, "terminal": q, "fetch": q, "network": q, "credential": q, "publish": q, "payment": q, "question": q, "unknown": q,
		}},
		{policy.Auto, policy.Default, map[policy.Category]policy.Verdict{
			"read": a, "secret": q, "read-outside": r, "write": a, "protected": q, "system": q, "delete": q, "terminal": r, "fetch": r, "network": r, "credential": q, "publish": q, "payment": q, "question": q, "unknown": q,
		}},
		{policy.FullAccess, policy.Default, map[policy.Category]policy.Verdict{
			"read": a, "secret": q, "read-outside": a, "write": a, "protected": a, "system": a, "delete": a, "terminal": a, "fetch": a, "network": a, "credential": q, "publish": q, "payment": q, "question": q, "unknown": q,
		}},
	}
	plan := map[policy.Category]policy.Verdict{
		"read": a, "secret": d, "read-outside": q, "write": d, "protected": d, "system": d, "delete": d, "terminal": d, "fetch": q, "network": d, "credential": d, "publish": d, "payment": d, "question": q, "unknown": d,
	}
	for _, m := range policy.Modes() {
		table = append(table, struct {
			mode policy.Mode
			plan policy.Interaction
			want map[policy.Category]policy.Verdict
		}{m, policy.Plan, plan})
	}
	for _, row := range table {
		if len(row.want) != len(categories) {
			t.Fatalf("%s/%s has %d columns, want %d", row.mode, row.plan, len(row.want), len(categories))
		}
		for c, want := range row.want {
			if got := policy.Decide(row.mode, row.plan, c); got != want {
				t.Errorf("Decide(%s, %s, %s) = %s, want %s", row.mode, row.plan, c, got, want)
			}
		}
	}
}

func TestUnknownNeverAllows(t *testing.T) {
	t.Parallel()
	for _, m := range append(policy.Modes(), "", "bogus", "FULL-ACCESS") {
		for _, i := range []policy.Interaction{policy.Default, policy.Plan, "", "bogus"} {
			for _, c := range [][]policy.Category{nil, {policy.Unknown}, {"bogus"}, {""}, {policy.Read, "bogus"}} {
				if v := policy.Decide(m, i, c...); v != policy.Ask && v != policy.Deny {
					t.Errorf("Decide(%q, %q, %q) = %s", m, i, c, v)
				}
			}
			if m.Valid() && (i == policy.Default || i == policy.Plan) {
				continue
			}
			for _, c := range categories {
				if v := policy.Decide(m, i, c); v != policy.Ask && v != policy.Deny {
					t.Errorf("Decide(%q, %q, %q) = %s", m, i, c, v)
				}
			}
		}
	}
}

func strictness(v policy.Verdict) int {
	return slices.Index([]policy.Verdict{policy.Allow, policy.Review, policy.Ask, policy.Deny}, v)
}

func drawCategories(t *rapid.T) []policy.Category {
	return rapid.SliceOfN(rapid.SampledFrom(categories), 1, 5).Draw(t, "categories")
}

func TestTheStrictestCategoryWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(policy.Modes()).Draw(t, "mode")
		i := rapid.SampledFrom([]policy.Interaction{policy.Default, policy.Plan}).Draw(t, "interaction")
		c := drawCategories(t)
		want := 0
		for _, one := range c {
			want = max(want, strictness(policy.Decide(m, i, one)))
		}
		if got := strictness(policy.Decide(m, i, c...)); got != want {
			t.Fatalf("Decide(%s, %s, %v) is %d strict, want %d", m, i, c, got, want)
		}
	})
}

// No cell of the table is stricter in a higher mode: the list of exceptions is empty.
func TestHigherModeIsNeverStricter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		modes := policy.Modes()
		low := rapid.IntRange(0, len(modes)-1).Draw(t, "low")
		high := rapid.IntRange(low, len(modes)-1).Draw(t, "high")
		i := rapid.SampledFrom([]policy.Interaction{policy.Default, policy.Plan}).Draw(t, "interaction")
		c := drawCategories(t)
		if strictness(policy.Decide(modes[high], i, c...)) > strictness(policy.Decide(modes[low], i, c...)) {
			t.Fatalf("%s is stricter than %s on %v", modes[high], modes[low], c)
		}
	})
}

func TestPlanIsStrongerThanTheMode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(policy.Modes()).Draw(t, "mode")
		c := drawCategories(t)
		if got, want := policy.Decide(m, policy.Plan, c...), policy.Decide(policy.ApprovalRequired, policy.Plan, c...); got != want {
			t.Fatalf("plan in %s is %s on %v, want %s", m, got, c, want)
		}
		for _, one := range c {
			if slices.Contains([]policy.Category{policy.Read, policy.ReadOutside, policy.Fetch, policy.Question}, one) {
				continue
			}
			if v := policy.Decide(m, policy.Plan, one); v != policy.Deny {
				t.Fatalf("plan says %s to %s", v, one)
			}
		}
	})
}

func TestAtMostNeverYieldsMoreThanEitherSide(t *testing.T) {
	t.Parallel()
	all := append(policy.Modes(), "", "bogus", "Full-Access")
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SampledFrom(all).Draw(t, "a"), rapid.SampledFrom(all).Draw(t, "b")
		got := a.AtMost(b)
		if !got.Valid() || got.Looser(a) || got.Looser(b) {
			t.Fatalf("%q.AtMost(%q) = %q", a, b, got)
		}
		if got != b.AtMost(a) || a.Valid() && a.AtMost(a) != a {
			t.Fatalf("%q.AtMost(%q) = %q depends on the order", a, b, got)
		}
	})
}

func TestHumanOnlyIsAskedInEveryMode(t *testing.T) {
	t.Parallel()
	for _, c := range categories {
		want := c == policy.Credential || c == policy.Publish || c == policy.Payment || c == policy.Question
		if policy.HumanOnly(policy.Read, c) != want {
			t.Errorf("HumanOnly(%s) = %t", c, !want)
		}
		for _, m := range policy.Modes() {
			if v := policy.Decide(m, policy.Default, c); want && v != policy.Ask {
				t.Errorf("%s in %s is %s", c, m, v)
			}
		}
	}
	if policy.HumanOnly() || policy.HumanOnly(policy.Unknown) {
		t.Error("nothing and unknown are not human-only")
	}
}

func TestParseModeKnowsFourNamesAndNoDefault(t *testing.T) {
	t.Parallel()
	for _, m := range policy.Modes() {
		if got, err := policy.ParseMode(string(m)); got != m || err != nil {
			t.Errorf("ParseMode(%q) = %q, %v", m, got, err)
		}
	}
	for _, s := range []string{"", "Auto", " auto", "auto ", "full access", "plan", "bypass"} {
		if got, err := policy.ParseMode(s); got != "" || err == nil {
			t.Errorf("ParseMode(%q) = %q, %v", s, got, err)
		}
	}
}
