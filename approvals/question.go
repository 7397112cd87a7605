package approvals

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"drawbridge/policy"
	"drawbridge/runner"
)

const (
	maxActions  = 8
	maxQuestion = 1 << 20 // bytes of JSON; more can't be read by a person and would fill the store
)

// prepare makes a question ready to be asked. A problem is a sentence for the agent: the question can't be asked.
func prepare(run Run, q runner.Question) (*asking, string) {
	a := &asking{run: run, q: q, background: run.Background || q.Background}
	a.q.Background = a.background
	if a.q.Turn == "" {
		a.q.Turn = run.Turn
	}
	a.categories = categorise(q, run.Workspace)
	a.q.Categories = a.categories
	if problem := malformed(q); problem != "" {
		return a, problem
	}
	if run.Card == "" || run.Card == run.Chat {
		a.grant = offer(a)
	}
	if a.q.Actions, _ = actions(q, a.grant != nil); !slices.ContainsFunc(a.q.Actions, func(x runner.Action) bool { return x.Grant != "" }) {
		a.grant = nil
	}
	return a, ""
}

// malformed says why q can't be asked, or nothing.
func malformed(q runner.Question) string {
	switch q.Kind {
	case runner.KindCommand, runner.KindFileChange, runner.KindTool, runner.KindPlan, runner.KindQuestion:
	case runner.KindProposal:
		if q.Proposal == nil {
			return "It proposes nothing."
		}
		if err := q.Proposal.Check(); err != nil {
			return err.Error() + "."
		}
	default:
		return "Its kind is unknown."
	}
	if q.Proposal != nil && q.Kind != runner.KindProposal {
		return "Its kind proposes nothing."
	}
	b, err := json.Marshal(q)
	if err != nil {
		return "Its arguments are malformed."
	}
	if len(b) > maxQuestion {
		return fmt.Sprintf("It is larger than %d KiB, which nobody can read.", maxQuestion>>10)
	}
	// JSON would replace what is not UTF-8, and a person would see something else than what runs.
	texts := []string{q.Command, q.Folder, q.Tool, q.Plan, string(q.Arguments)}
	for _, f := range q.Files {
		texts = append(texts, f.Path, f.Diff)
	}
	if !utf8.ValidString(strings.Join(texts, "")) {
		return "It holds bytes that are not UTF-8 and can't be shown."
	}
	if _, problem := actions(q, true); problem != "" {
		return problem
	}
	ids := map[string]bool{}
	for _, query := range q.Queries {
		if query.ID == "" || ids[query.ID] {
			return "Its queries need different ids."
		}
		ids[query.ID] = true
	}
	if q.Kind == runner.KindQuestion && len(q.Queries) == 0 {
		return "It asks nothing."
	}
	return ""
}

// actions are the buttons of q: its own, or the usual ones of its kind with those that grant. What can't be granted is
// left out, and there is always one that denies.
func actions(q runner.Question, grantable bool) ([]runner.Action, string) {
	given := q.Actions
	if len(given) == 0 {
		given = runner.UsualActions(q.Kind)
		if len(given) > 0 && grantable {
			given = slices.Insert(given, 1,
				runner.Action{ID: runner.ActionAllowSession, Label: "Allow for this session", Allows: true, Grant: ScopeSession},
				runner.Action{ID: runner.ActionAllowProject, Label: "Allow for this project", Allows: true, Grant: ScopeProject})
		}
	}
	if len(given) > maxActions {
		return nil, fmt.Sprintf("It brings more than %d actions.", maxActions)
	}
	var out []runner.Action
	ids, denies := map[string]bool{}, false
	for _, x := range given {
		if x.ID == "" || len(x.ID) > 64 || x.Label == "" || ids[x.ID] {
			return nil, "Its actions need labels and different ids."
		}
		ids[x.ID] = true
		if x.Grant != "" && (!grantable || !x.Allows || (x.Grant != ScopeSession && x.Grant != ScopeProject)) {
			continue
		}
		denies = denies || !x.Allows
		out = append(out, x)
	}
	if !denies && q.Kind != runner.KindQuestion {
		if ids[runner.ActionDeny] {
			return nil, "Its action named deny allows."
		}
		out = append(out, runner.Action{ID: runner.ActionDeny, Label: "Deny", Style: runner.StyleDanger})
	}
	return out, ""
}

// categorise adds to the categories that the runtime names what the question itself shows. It never takes one away, so
// that the verdict can only become stricter. The runtime alone knows in what sandbox a command will run, hence of a
// command's text only that counts which no sandbox changes.
func categorise(q runner.Question, in policy.Workspace) []policy.Category {
	c := slices.Clone(q.Categories)
	switch q.Kind {
	case runner.KindPlan, runner.KindQuestion, runner.KindProposal:
		c = append(c, policy.Question)
	case runner.KindFileChange:
		for _, f := range q.Files {
			op := policy.OpWrite
			if f.Op == runner.FileDelete {
				op = policy.OpDelete
			}
			c = append(c, policy.ClassifyPath(op, f.Path, in)...)
		}
	case runner.KindCommand:
		for _, one := range policy.Classify(q.Command, in) {
			if one == policy.Secret || policy.HumanOnly(one) {
				c = append(c, one)
			}
		}
	case runner.KindTool:
	}
	if len(c) == 0 {
		c = append(c, policy.Unknown)
	}
	if q.Terminal != "" {
		// A person's own session: no table, grant or reviewer of a chat speaks for it.
		c = append(c, policy.Question)
	}
	slices.Sort(c)
	return slices.Compact(c)
}

// digest is taken over everything that would be carried out, and the files that it touches.
func digest(q runner.Question, files string) string {
	b, err := json.Marshal(struct {
		Kind      runner.QuestionKind `json:"kind"`
		Command   string              `json:"command"`
		Folder    string              `json:"folder"`
		Files     []runner.FileChange `json:"files"`
		Tool      string              `json:"tool"`
		Arguments []byte              `json:"arguments"`
		Plan      string              `json:"plan"`
		Queries   []runner.Query      `json:"queries"`
		Proposal  *runner.Proposal    `json:"proposal,omitempty"` // what is asked without one keeps the digest that it had
		Digest    string              `json:"digest"`
	}{q.Kind, q.Command, q.Folder, q.Files, q.Tool, q.Arguments, q.Plan, q.Queries, q.Proposal, files})
	if err != nil {
		panic("approvals: digest: " + err.Error()) // strings and slices of strings always have a form in JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
