package bridge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// workspace says which turn may write in a folder, under workspaceKey, and which chats wait for it, in their order.
type workspace struct {
	V       int      `json:"v"`
	Turn    string   `json:"turn,omitempty"`
	Chat    string   `json:"chat,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
}

// Placement says what became of a prompt.
type Placement struct {
	// Again: this prompt was taken before; nothing was done.
	Again bool
	// Stopped: a /stop that came after it was faster; it was not taken.
	Stopped bool
	// Started: its turn was handed to the host.
	Started bool
	// Ahead counts what comes before it in this chat.
	Ahead int
	// WaitsFor is the chat whose turn works in the folder, when that is why it waits.
	WaitsFor string
}

// Prompt takes a prompt into the chat's queue and hands it to the host at once if nothing is in its way. A prompt with an
// id that is known is taken once. Errors: ErrNoProject, ErrNoRuntime, ErrQueueFull.
func (s *Chats) Prompt(t *store.Txn, id string, p Prompt) (Placement, error) {
	c, err := s.Get(t, id)
	if err != nil {
		return Placement{}, err
	}
	known := c.Active != nil && c.Active.Prompt.ID == p.ID ||
		slices.ContainsFunc(c.Queue, func(q Prompt) bool { return q.ID == p.ID })
	switch {
	case known:
		return Placement{Again: true}, nil
	case !p.At.After(c.Stopped):
		return Placement{Stopped: true}, nil
	case c.Project == "":
		return Placement{}, fmt.Errorf("bridge: prompt in %s: %w", id, ErrNoProject)
	case c.Runtime == "":
		return Placement{}, fmt.Errorf("bridge: prompt in %s: %w", id, ErrNoRuntime)
	case len(c.Queue) >= MaxQueue:
		return Placement{}, fmt.Errorf("bridge: prompt in %s: %w", id, ErrQueueFull)
	}
	c.Queue = append(c.Queue, p)
	ahead := len(c.Queue) - 1
	if c.Active != nil {
		ahead++
	}
	if err := s.dispatch(t, &c); err != nil {
		return Placement{}, err
	}
	started := c.Active != nil && c.Active.Prompt.ID == p.ID
	if !started {
		c.Queue[len(c.Queue)-1].Waited = true
	}
	return Placement{Started: started, Ahead: ahead, WaitsFor: c.WaitsFor}, s.put(t, c)
}

// dispatch hands the oldest prompt of the queue to the host, if the chat has no turn and the workspace is free (a turn in
// plan writes nothing and does not wait for it). It is the only way in which an order comes to be. It changes c, which
// the caller stores.
func (s *Chats) dispatch(t *store.Txn, c *Chat) error {
	if c.Active != nil || len(c.Queue) == 0 {
		return nil
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	held, err := s.holder(t, *c)
	if err != nil {
		return err
	}
	p := c.Queue[0]
	turn := turnOf(p.ID)
	writer := held.Interaction != policy.Plan && !p.Plan
	if writer {
		key := workspaceKey(c.Host, c.Folder)
		w, err := s.workspace(t, key)
		if err != nil {
			return err
		}
		if w.Turn != "" && w.Turn != turn {
			c.WaitsFor = w.Chat
			if !slices.Contains(w.Waiting, c.ID) {
				w.Waiting = append(w.Waiting, c.ID)
				return store.Put(t, key, w)
			}
			return nil
		}
		w.V, w.Turn, w.Chat = Version, turn, c.ID
		if err := store.Put(t, key, w); err != nil {
			return err
		}
	}
	c.Queue, c.WaitsFor = c.Queue[1:], ""
	if c.Session == "" {
		c.Session = newID("s.")
	}
	c.Active = &Active{
		Turn: turn, Prompt: p, Host: c.Host, Folder: c.Folder, Runtime: c.Runtime, Session: c.Session, Writer: writer, Started: now,
	}
	o := Order{
		V: Version, Turn: turn, Chat: c.ID, Project: c.Project, Folder: c.Folder, Runtime: c.Runtime, Session: c.Session, Resume: c.Resume,
		Model: c.Model, Effort: c.Effort, Prompt: p, Created: now, Writer: writer,
	}
	if held.ID != c.ID {
		o.Of = held.ID
	}
	if err := store.Put(t, orderKey(c.Host, turn), o); err != nil {
		return err
	}
	t.Add(ordersIndex(c.Host), turn, store.Micros(now))
	t.Publish(wakeTopic(c.Host), nil)
	return nil
}

// Stopped is what a stop did.
type Stopped struct {
	Turn    bool // a turn is being interrupted
	Prompts int  // that were waiting and will not be run
	Jobs    int  // that go on in the background of the chat's session, and are ended
}

// Stop ends the chat's turn and every prompt that came before at, which is on the clock of Prompt.At; a zero at means all
// that wait. With session it also ends the agent's process; the next prompt resumes it. What goes on in the background of the
// chat's session ends in either case, if need be with the process.
func (s *Chats) Stop(t *store.Txn, id string, at time.Time, session bool) (Stopped, error) {
	c, err := s.Get(t, id)
	if err != nil {
		return Stopped{}, err
	}
	var done Stopped
	if at.After(c.Stopped) {
		c.Stopped = at
	}
	keep := c.Queue[:0:0]
	for _, p := range c.Queue {
		if !at.IsZero() && p.At.After(at) {
			keep = append(keep, p)
		} else if err := s.forgo(t, p); err != nil {
			return Stopped{}, err
		}
	}
	done.Prompts = len(c.Queue) - len(keep)
	c.Queue = keep
	if len(keep) == 0 {
		c.WaitsFor = ""
	}
	if done.Jobs, err = s.ownJobs(t, id); err != nil {
		return Stopped{}, err
	}
	if session || done.Jobs > 0 { // the turn may have ended on its host, and then nothing else ends them
		c.CloseSeq++
	}
	if c.Active != nil {
		done.Turn = true
		if err := s.interrupt(t, id, c.Active); err != nil {
			return Stopped{}, err
		}
	}
	return done, s.put(t, c)
}

// interrupt tells the host to end a turn. It changes a, which the caller stores with its chat.
func (s *Chats) interrupt(t *store.Txn, chat string, a *Active) error {
	a.Stopping = true
	t.Publish(wakeTopic(a.Host), nil)
	o, ok, err := store.Get[Order](t, orderKey(a.Host, a.Turn))
	if errors.Is(err, store.ErrDamaged) { // what it takes to be ended is known here
		o, ok, err = Order{V: Version, Turn: a.Turn, Chat: chat, Folder: a.Folder, Runtime: a.Runtime, Session: a.Session, Created: a.Started}, true, nil
	}
	if err != nil || !ok {
		return err
	}
	o.Stop = true
	return store.Put(t, orderKey(a.Host, a.Turn), o)
}

// Unqueue takes a waiting prompt back and reports whether it was still waiting.
func (s *Chats) Unqueue(t *store.Txn, id, prompt string) (bool, error) {
	id, err := present(t, id)
	if err != nil {
		return false, err
	}
	c, err := s.Get(t, id)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(c.Queue, func(p Prompt) bool { return p.ID == prompt })
	if i < 0 {
		return false, nil
	}
	if err := s.forgo(t, c.Queue[i]); err != nil {
		return false, err
	}
	c.Queue = slices.Delete(c.Queue, i, i+1)
	if len(c.Queue) == 0 {
		c.WaitsFor = ""
	}
	return true, s.put(t, c)
}

// forgo makes nothing of the kept call that a prompt, which will not be run, was to take up.
func (s *Chats) forgo(t *store.Txn, p Prompt) error {
	if p.Kept == "" || s.cfg.Approvals == nil {
		return nil
	}
	return s.cfg.Approvals.ForgoIn(t, p.Kept)
}

// Revise changes the text of a prompt that still waits, found by its Ref, and reports whether it did.
func (s *Chats) Revise(t *store.Txn, id, ref, text string) (bool, error) {
	c, err := s.Get(t, id)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(c.Queue, func(p Prompt) bool { return p.Ref == ref && ref != "" })
	if i < 0 {
		return false, nil
	}
	c.Queue[i].Text = text
	return true, s.put(t, c)
}

// begun notes that the host runs the turn.
func (s *Chats) begun(t *store.Txn, id, turn string) error {
	c, err := s.Get(t, id)
	if err != nil || c.Active == nil || c.Active.Turn != turn {
		return err
	}
	c.Active.Running = true
	return s.put(t, c)
}

// end is the only way in which a chat's turn ends: the order goes, the workspace is passed on to the chat that waits
// longest, and the next prompt is handed out. It reports whether the turn was the chat's; a turn that was ended before
// changes nothing.
func (s *Chats) end(t *store.Txn, host, id, turn string, r runner.Result) (bool, error) {
	o, _, err := store.Get[Order](t, orderKey(host, turn))
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return false, err
	}
	t.Delete(orderKey(host, turn))
	t.Drop(ordersIndex(host), turn)
	c, err := s.Get(t, id)
	if err != nil {
		return false, err
	}
	if c.Active == nil || c.Active.Turn != turn { // its record may have been lost, and then nobody else frees the folder
		return false, s.passOn(t, workspaceKey(host, o.Folder), turn)
	}
	a := *c.Active
	c.Active = nil
	if c.Ended, err = t.Now(); err != nil {
		return false, err
	}
	if r.Next != nil && r.Outcome == runner.Completed && !a.Stopping {
		next := Prompt{
			ID: NextPrompt(a.Prompt.ID), Text: r.Next.Text, By: a.Prompt.By, Name: a.Prompt.Name, At: a.Prompt.At,
			Limit: a.Prompt.Limit, Plan: a.Prompt.Plan, Work: a.Prompt.Work, // what bound the turn binds what follows from it
		}
		c.Queue = append([]Prompt{next}, c.Queue...)
	}
	if err := s.put(t, c); err != nil {
		return false, err
	}
	if a.Writer {
		if err := s.passOn(t, workspaceKey(a.Host, a.Folder), turn); err != nil {
			return false, err
		}
	}
	if c, err = s.Get(t, id); err != nil {
		return false, err
	}
	if err := s.dispatch(t, &c); err != nil {
		return false, err
	}
	return true, s.put(t, c)
}

// passOn frees a workspace that turn held, and hands out the prompts of those who waited until one of them takes it.
func (s *Chats) passOn(t *store.Txn, key, turn string) error {
	w, err := s.workspace(t, key)
	if err != nil || w.Turn != turn {
		return err
	}
	w.Turn, w.Chat = "", ""
	for len(w.Waiting) > 0 && w.Turn == "" {
		next, err := present(t, w.Waiting[0])
		if err != nil {
			return err
		}
		w.Waiting = w.Waiting[1:]
		if err := store.Put(t, key, w); err != nil {
			return err
		}
		c, err := s.Get(t, next)
		if err != nil {
			return err
		}
		if err := s.dispatch(t, &c); err != nil {
			return err
		}
		if err := s.put(t, c); err != nil {
			return err
		}
		if w, err = s.workspace(t, key); err != nil {
			return err
		}
	}
	return store.Put(t, key, w)
}

// workspace reads who has a folder. A damaged record counts as free: hosts themselves let no second turn write in a
// folder.
func (s *Chats) workspace(t *store.Txn, key string) (workspace, error) {
	w, _, err := store.Get[workspace](t, key)
	if errors.Is(err, store.ErrDamaged) {
		s.cfg.Logger.Error("the record of a workspace is damaged; it counts as free", "err", err)
		return workspace{}, nil
	}
	return w, err
}
