package bridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"drawbridge/internal/store"
	"drawbridge/policy"
)

var (
	// ErrNoChat says that a chat has no record, or none that can be read: it was never used, or it is gone.
	ErrNoChat = errors.New("bridge: no such chat")
	// ErrNoHost says that the host was never seen.
	ErrNoHost = errors.New("bridge: no such host")
)

// lanePrefix begins the keys of lanes. No messenger's key of a chat begins so.
const lanePrefix = "lane:"

// IsLane reports whether a chat's key is that of a lane.
func IsLane(id string) bool { return strings.HasPrefix(id, lanePrefix) }

// LaneName is the name of the lane of a key.
func LaneName(id string) string { return strings.TrimPrefix(id, lanePrefix) }

// LaneID is the key of the lane of a name.
func LaneID(name string) string { return lanePrefix + name }

// Lane is a place where work of a chat goes on beside its conversation: with a session and a queue of its own, on any
// host, and yet under the mode and the interaction that the chat has at the moment of each ask. It is kept as a Chat, so
// that a workspace, an order and a turn are the same things everywhere; it has no mode of its own.
type Lane struct {
	Name    string // of the work; the same name is the same lane
	Of      string // the chat
	Host    string
	Project string
	Runtime string
	// Fresh begins with a new session, also where the lane has one.
	Fresh bool
}

// Lane makes a lane, or makes an existing one as l says, and returns it. Errors: ErrNoChat and policy.ErrUnknownMode of the
// chat (see Standing), ErrNoHost, ErrNoProject, ErrNoRuntime.
func (s *Chats) Lane(t *store.Txn, l Lane) (Chat, error) {
	home, err := s.Standing(t, l.Of)
	if err != nil {
		return Chat{}, err
	}
	p, err := s.Offered(t, l.Host, l.Project, l.Runtime)
	if err != nil {
		return Chat{}, err
	}
	if !slices.Contains(home.Beside, l.Host) {
		home.Beside = append(home.Beside, l.Host)
	}
	if err := s.put(t, home); err != nil { // the host has to know the chat's mode before it asks
		return Chat{}, err
	}
	id := LaneID(l.Name)
	c, known, err := store.Get[Chat](t, chatKey(id))
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return Chat{}, err
	}
	moved := c.Host != l.Host || c.Folder != p.Folder || c.Runtime != l.Runtime
	if !known || moved || l.Fresh {
		c.Session, c.Resume = "", ""
		c.CloseSeq++
	}
	c.ID, c.Of, c.Host, c.Project, c.Folder, c.Runtime = id, home.ID, l.Host, p.Name, p.Folder, l.Runtime
	if c.Model, c.Effort = "", ""; l.Runtime == home.Runtime {
		c.Model, c.Effort = home.Model, home.Effort
	}
	c.Mode, c.Interaction = policy.ApprovalRequired, policy.Default // nobody reads these; if somebody did, nothing would be looser
	return c, s.put(t, c)
}

// Retire closes what a lane has open on its host, and with forget removes it. One with a turn or a queue is left alone.
func (s *Chats) Retire(t *store.Txn, id string, forget bool) error {
	c, known, err := store.Get[Chat](t, chatKey(id))
	if err != nil || !known || c.Of == "" || c.Active != nil || len(c.Queue) > 0 {
		return err
	}
	if forget {
		t.Delete(chatKey(id))
		t.Delete(mirrorKey(c.Host, id))
		t.Drop(lanesIndex, id)
		return nil
	}
	c.CloseSeq++
	return s.put(t, c)
}

// Standing is Get for work that nobody sits in front of, which takes nothing for granted: a chat without a record is
// ErrNoChat, one in a mode that is not known policy.ErrUnknownMode. A chat that has moved is found under its present key.
func (s *Chats) Standing(t *store.Txn, id string) (Chat, error) {
	id, err := present(t, id)
	if err != nil {
		return Chat{}, err
	}
	c, known, err := store.Get[Chat](t, chatKey(id))
	switch {
	case errors.Is(err, store.ErrDamaged), err == nil && !known:
		return Chat{}, fmt.Errorf("bridge: work of %s: %w", id, ErrNoChat)
	case err != nil:
		return Chat{}, fmt.Errorf("bridge: read chat %s: %w", id, err)
	case c.Mode != "" && !c.Mode.Valid():
		return Chat{}, fmt.Errorf("bridge: work of %s: %w", id, policy.ErrUnknownMode)
	}
	return s.Get(t, id)
}

// Keep makes sure that a chat has a record, so that work can be held to it, and returns it.
func (s *Chats) Keep(t *store.Txn, id string) (Chat, error) {
	id, err := present(t, id)
	if err != nil {
		return Chat{}, err
	}
	c, err := s.Get(t, id)
	if err != nil {
		return Chat{}, err
	}
	return c, s.put(t, c)
}

// Offered returns a project as its host offers it, if it also has the runtime (any, if none is named). Errors: ErrNoHost,
// ErrNoProject, ErrNoRuntime.
func (s *Chats) Offered(t *store.Txn, host, project, runtime string) (Project, error) {
	hello, ok, err := s.Hello(t, host)
	if err != nil {
		return Project{}, err
	}
	if !ok {
		return Project{}, fmt.Errorf("bridge: %q of %s: %w", project, host, ErrNoHost)
	}
	i := slices.IndexFunc(hello.Projects, func(p Project) bool { return p.Name == project })
	if i < 0 {
		return Project{}, fmt.Errorf("bridge: %q of %s: %w", project, host, ErrNoProject)
	}
	if _, has := hello.Runtimes[runtime]; !has && runtime != "" {
		return Project{}, fmt.Errorf("bridge: %q of %s: %w", runtime, host, ErrNoRuntime)
	}
	return hello.Projects[i], nil
}

// Holds reports whether a prompt waits or runs in a chat, also as what a turn of its own is followed by.
func (s *Chats) Holds(t *store.Txn, id, prompt string) (bool, error) {
	id, err := present(t, id)
	if err != nil {
		return false, err
	}
	c, err := s.Get(t, id)
	if err != nil {
		return false, err
	}
	is := func(p Prompt) bool { return p.ID == prompt }
	return c.Active != nil && is(c.Active.Prompt) || slices.ContainsFunc(c.Queue, is), nil
}

// holder is the chat to whose mode and interaction c is held: itself, or that of which it is a lane.
func (s *Chats) holder(t *store.Txn, c Chat) (Chat, error) {
	if c.Of == "" {
		return c, nil
	}
	of, err := present(t, c.Of)
	if err != nil {
		return Chat{}, err
	}
	return s.Get(t, of)
}

func (c *Chat) index() string {
	if c.Of != "" {
		return lanesIndex
	}
	return chatsIndex
}

// held is the chat to whose mode the turn is held.
func (o Order) held() string {
	if o.Of != "" {
		return o.Of
	}
	return o.Chat
}

// Bound returns p with its mode bound by m as well.
func (p Prompt) Bound(m policy.Mode) Prompt {
	if p.Limit != "" {
		m = m.AtMost(p.Limit)
	}
	p.Limit = m.AtMost(policy.FullAccess)
	return p
}

func turnOf(prompt string) string { return "t." + prompt }

// PromptOf is the id of the prompt of a turn.
func PromptOf(turn string) string { return strings.TrimPrefix(turn, "t.") }

// NextPrompt is the id of the prompt by which a turn goes on by itself (runner.Result.Next).
func NextPrompt(prompt string) string { return prompt + "+" }

// Interrupt ends the chat's turn if it is of the prompt.
func (s *Chats) Interrupt(t *store.Txn, id, prompt string) error {
	id, err := present(t, id)
	if err != nil {
		return err
	}
	c, err := s.Get(t, id)
	if err != nil || c.Active == nil || c.Active.Prompt.ID != prompt {
		return err
	}
	if err := s.interrupt(t, id, c.Active); err != nil {
		return err
	}
	return s.put(t, c)
}

// Bind bounds the mode of a prompt that waits or runs by m, from its next ask on. It never makes it looser.
func (s *Chats) Bind(t *store.Txn, id, prompt string, m policy.Mode) error {
	id, err := present(t, id)
	if err != nil {
		return err
	}
	c, err := s.Get(t, id)
	if err != nil {
		return err
	}
	for i, p := range c.Queue {
		if p.ID == prompt {
			c.Queue[i] = p.Bound(m)
		}
	}
	if a := c.Active; a != nil && a.Prompt.ID == prompt {
		a.Prompt = a.Prompt.Bound(m)
		o, ok, err := store.Get[Order](t, orderKey(a.Host, a.Turn))
		if err != nil {
			return err
		}
		if ok {
			o.Prompt = o.Prompt.Bound(m)
			if err := store.Put(t, orderKey(a.Host, a.Turn), o); err != nil {
				return err
			}
			t.Publish(wakeTopic(a.Host), nil)
		}
	}
	return s.put(t, c)
}
