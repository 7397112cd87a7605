package claude

import (
	"context"
	"fmt"

	"drawbridge/runner"
)

// modelDefault is the program's word for the model that it uses by itself. A conversation that is resumed keeps the model
// that it had, so the word is given then.
const modelDefault = "default"

// model is what a process is started with, empty to say nothing.
func (r *Runtime) model(resume bool) string {
	if r.config.Model == "" && resume {
		return modelDefault
	}
	return r.config.Model
}

// choose has the turn's model and effort used by what the program does next. One that it does not take is told, and what
// it uses by itself stays in force.
func (c *conn) choose(ctx context.Context, in runner.Input) error {
	if c.model != in.Model {
		err := c.setModel(ctx, in.Model)
		if err != nil && in.Model != "" {
			c.refusedChoice(in.Turn, "model "+in.Model, err)
			err = c.setModel(ctx, "")
		}
		if err != nil {
			return err
		}
	}
	if c.effort == in.Effort {
		return nil
	}
	err := c.setEffort(ctx, in.Effort)
	if err != nil && in.Effort != "" {
		c.refusedChoice(in.Turn, "effort "+in.Effort, err)
		err = c.setEffort(ctx, "")
	}
	return err
}

func (c *conn) refusedChoice(turn, what string, err error) {
	s := c.session
	s.logger.Warn("program refused a choice", "runtime", s.runtime.config.Name, "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(runner.Event{Kind: runner.Notice, Turn: turn, Text: "Claude Code does not take the " + what + ", so its default is used."})
}

// setModel changes the model; an empty one is the configured one, or the program's.
func (c *conn) setModel(ctx context.Context, model string) error {
	if c.model == model {
		return nil
	}
	name := model
	if name == "" {
		name = c.session.runtime.model(true)
	}
	if err := c.peer.Call(ctx, "set_model", map[string]string{"model": name}, nil); err != nil {
		return fmt.Errorf("claude: set model: %w", err)
	}
	c.model = model
	return nil
}

// setEffort changes the effort; an empty one is the program's. The settings that the process was started with are given
// again, so that none of them is lost.
func (c *conn) setEffort(ctx context.Context, effort string) error {
	settings := ownSettings(c.trusted)
	settings["effortLevel"] = nil
	if effort != "" {
		settings["effortLevel"] = effort
	}
	if err := c.peer.Call(ctx, "apply_flag_settings", map[string]any{"settings": settings}, nil); err != nil {
		return fmt.Errorf("claude: set effort: %w", err)
	}
	c.effort = effort
	return nil
}

// ownSettings are those that a process is started with; they are stronger than a project's. Commands in plan mode go to the
// program's reviewer otherwise, and are refused where there is none. A trusted project's hooks do not run: they could
// change a call after it was shown and allowed, or answer a question in a person's place. Ours is none of the settings.
func ownSettings(trusted bool) map[string]any {
	settings := map[string]any{"useAutoModeDuringPlan": false}
	if trusted {
		settings["disableAllHooks"] = true
	}
	return settings
}
