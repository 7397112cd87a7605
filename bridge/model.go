package bridge

import (
	"errors"
	"fmt"
	"slices"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

// ErrNoModel says that the chat's runtime does not list the model, or the model not the effort.
var ErrNoModel = errors.New("bridge: no such model or effort")

// SetModel changes the model of the chat's next turns, which go on in the same session. The effort stays where the model
// takes it. ErrNoModel if the chat's runtime does not list it.
func (s *Chats) SetModel(t *store.Txn, id, model string) (Chat, error) {
	c, capability, err := s.capability(t, id)
	if err != nil {
		return Chat{}, err
	}
	m, ok := capability.Model(model)
	if model == "" || !ok {
		return Chat{}, fmt.Errorf("bridge: set model %q of %s: %w", model, id, ErrNoModel)
	}
	c.Model = m.ID
	if !slices.Contains(m.Efforts, c.Effort) {
		c.Effort = ""
	}
	return c, s.put(t, c)
}

// SetEffort changes the effort of the chat's next turns; empty for the model's own. ErrNoModel if the chat's model does not
// take it.
func (s *Chats) SetEffort(t *store.Txn, id, effort string) (Chat, error) {
	c, capability, err := s.capability(t, id)
	if err != nil {
		return Chat{}, err
	}
	if m, _ := capability.Model(c.Model); effort != "" && !slices.Contains(m.Efforts, effort) {
		return Chat{}, fmt.Errorf("bridge: set effort %q of %s: %w", effort, id, ErrNoModel)
	}
	c.Effort = effort
	return c, s.put(t, c)
}

func (s *Chats) capability(t *store.Txn, id string) (Chat, runner.Capability, error) {
	c, err := s.Get(t, id)
	if err != nil {
		return Chat{}, runner.Capability{}, err
	}
	hello, _, err := s.Hello(t, c.Host)
	return c, hello.Runtimes[c.Runtime], err
}

// use makes a runtime the chat's. What was chosen of another one's models means nothing to it.
func (c *Chat) use(runtime string) {
	if c.Runtime != runtime {
		c.Runtime, c.Model, c.Effort = runtime, "", ""
	}
}

// chosen is what of a chat's choice a runtime still lists, and, for people, what is used instead of the rest. What is not
// listed is never sent: some programs take any name and fail with it.
func chosen(runtime string, c runner.Capability, model, effort string) (m, e string, told []string) {
	known, ok := c.Model(model)
	if model != "" && !ok {
		told = append(told, fmt.Sprintf("%s does not list the model %s any more, so its default is used.", runtime, model))
		known, _ = c.Model("")
		model = known.ID
	}
	if effort != "" && !slices.Contains(known.Efforts, effort) {
		told = append(told, fmt.Sprintf("The model does not take the effort %s, so its default is used.", effort))
		effort = known.Effort
	}
	return model, effort, told
}

// choose looks the chat's choice up, and tells what is used instead of what is gone.
func (t *hostTurn) choose(in runner.Input) runner.Input {
	o := t.order
	s := t.h.sights[o.Runtime]
	if s == nil || o.Model == "" && o.Effort == "" {
		return in
	}
	c, _ := s.known()
	var told []string
	in.Model, in.Effort, told = chosen(o.Runtime, c, o.Model, o.Effort)
	for _, words := range told {
		t.rec.take(runner.Event{Kind: runner.Notice, Turn: o.Turn, Text: words})
	}
	return in
}
