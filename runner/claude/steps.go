package claude

import (
	"encoding/json"
	"slices"

	"drawbridge/runner"
)

// steps is the agent's checklist.
type steps struct {
	all []step
}

type step struct {
	id     string
	text   string
	status string // pending, in_progress, completed
}

// list is the checklist for an event.
func (s *steps) list() []runner.Step {
	list := make([]runner.Step, 0, len(s.all))
	for _, one := range s.all {
		list = append(list, runner.Step{Text: one.text, Done: one.status == "completed", Now: one.status == "in_progress"})
	}
	return list
}

// listed takes a call that only keeps the checklist. is says that it is one, changed that the list is another now.
func (c *conn) listed(name string, raw json.RawMessage) (changed, is bool) {
	switch name {
	case "TodoWrite":
		var in struct {
			Todos []struct {
				Content string `json:"content"`
				Status  string `json:"status"`
			} `json:"todos"`
		}
		if json.Unmarshal(raw, &in) != nil {
			return false, true
		}
		c.steps.all = nil
		for _, t := range in.Todos {
			c.steps.all = append(c.steps.all, step{text: line(t.Content), status: t.Status})
		}
		return true, true
	case "TaskUpdate":
		var in struct {
			ID      string `json:"taskId"`
			Subject string `json:"subject"`
			Status  string `json:"status"`
		}
		if json.Unmarshal(raw, &in) != nil {
			return false, true
		}
		i := slices.IndexFunc(c.steps.all, func(s step) bool { return s.id == in.ID })
		if i < 0 {
			return false, true
		}
		if in.Subject != "" {
			c.steps.all[i].text = line(in.Subject)
		}
		if in.Status == "deleted" {
			c.steps.all = slices.Delete(c.steps.all, i, i+1)
		} else if in.Status != "" {
			c.steps.all[i].status = in.Status
		}
		return true, true
	case "TaskCreate", "TaskGet", "TaskList":
		return false, true
	}
	return false, false
}

// created takes the result of TaskCreate, which tells the id of the step. It reports whether the list is another now.
func (s *steps) created(name string, input, structured json.RawMessage) bool {
	var in struct {
		Subject string `json:"subject"`
	}
	var out struct {
		Task struct {
			ID      string `json:"id"`
			Subject string `json:"subject"`
		} `json:"task"`
	}
	if name != "TaskCreate" || json.Unmarshal(input, &in) != nil || json.Unmarshal(structured, &out) != nil || out.Task.ID == "" {
		return false
	}
	s.all = append(s.all, step{id: out.Task.ID, text: line(in.Subject), status: "pending"})
	return true
}
