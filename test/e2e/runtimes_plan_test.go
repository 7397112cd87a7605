//go:build runtimes

package e2e_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"drawbridge/internal/modeltest"
)

// plannerHands are the tool calls of each agent for planStory.
func plannerHands(agent string) modeltest.Hands {
	if agent == "native" {
		return planHands()
	}
	h := realHands(agent)
	h.Refused = modeltest.RefusedResult
	options := func(q modeltest.Asked) (list []any) {
		for _, o := range q.Options {
			list = append(list, map[string]any{"label": o, "description": "that is " + o})
		}
		return list
	}
	if agent == "codex" {
		h.Write = func(path, text string) modeltest.Call {
			return modeltest.Call{Name: "apply_patch", Arguments: "*** Begin Patch\n*** Add File: " + path + "\n+" + text + "*** End Patch"}
		}
		h.Questions = func(list []modeltest.Asked) modeltest.Call {
			var questions []any
			for _, q := range list {
				questions = append(questions, map[string]any{"id": q.ID, "header": "Question", "question": q.Text, "options": options(q)})
			}
			return modeltest.CallOf("request_user_input", map[string]any{"questions": questions})
		}
		h.Plan = func(plan string) modeltest.Reply {
			return modeltest.Reply{Text: "<proposed_plan>\n" + plan + "\n</proposed_plan>"}
		}
		return h
	}
	h.Write = func(path, text string) modeltest.Call {
		return modeltest.CallOf("Write", map[string]any{"file_path": path, "content": text})
	}
	h.Questions = func(list []modeltest.Asked) modeltest.Call {
		var questions []any
		for _, q := range list {
			questions = append(questions, map[string]any{"question": q.Text, "header": q.ID, "multiSelect": false, "options": options(q)})
		}
		return modeltest.CallOf("AskUserQuestion", map[string]any{"questions": questions})
	}
	h.Plan = func(plan string) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{modeltest.CallOf("ExitPlanMode", map[string]any{"plan": plan})}}
	}
	return h
}

// insertions are what Claude Code puts between and around a person's words.
var insertions = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>\s*`)

// plainly hides from a script what the agent itself tells the model.
func plainly(script modeltest.Script) modeltest.Script {
	return func(ctx context.Context, r modeltest.Request) modeltest.Reply {
		var kept []modeltest.Message
		for _, m := range r.Messages {
			if m.Role == "user" {
				m.Content = strings.TrimSpace(insertions.ReplaceAllString(m.Content, ""))
			}
			if m.Role != "system" && (m.Role != "user" || m.Content != "") {
				kept = append(kept, m)
			}
		}
		r.Messages = kept
		return script(ctx, r)
	}
}

// TestRealAgentsPlansLookAlike: plan, revise and implement on each runtime, with the same cards: the same text, the same
// buttons, in the same order.
func TestRealAgentsPlansLookAlike(t *testing.T) {
	for _, agent := range []string{"native", "codex", "claude"} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t, on{model: plainly(modeltest.Follow(plannerHands(agent))), env: map[string]string{"DRAWBRIDGE_DEFAULT_RUNTIME": agent}})
			if agent != "native" {
				w.uses(agent)
			}
			planStory(w, agent)
		})
	}
}
