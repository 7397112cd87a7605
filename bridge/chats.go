package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"drawbridge/approvals"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

var (
	// ErrNoProject says that the chat has no project, so nothing can be run, or that the named one does not exist.
	ErrNoProject = errors.New("bridge: no such project")
	// ErrNoRuntime says that no host of the chat's project has a runtime of that name.
	ErrNoRuntime = errors.New("bridge: no such runtime")
	// ErrQueueFull says that MaxQueue prompts wait already.
	ErrQueueFull = errors.New("bridge: queue is full")
)

// MaxQueue bounds the prompts that wait behind a chat's turn.
const MaxQueue = 20

// ChatsConfig is what Chats needs.
type ChatsConfig struct {
	DB        store.DB
	Logger    *slog.Logger
	Approvals *approvals.Service // whose grants end with a session or a mode
	// DefaultMode is for chats that have none; empty is approval-required.
	DefaultMode policy.Mode
	// DefaultProject and DefaultRuntime are for chats that chose none; either may be empty.
	DefaultProject, DefaultRuntime string
}

// Chats is the gateway's view of the chats: every change of one passes here. Its methods join the caller's transaction,
// so that a change and what led to it are one commit. It is safe for concurrent use.
type Chats struct{ cfg ChatsConfig }

// NewChats returns the chats kept in the configured store.
func NewChats(c ChatsConfig) *Chats {
	c.DefaultMode = cmp.Or(c.DefaultMode, policy.ApprovalRequired)
	return &Chats{cfg: c}
}

// Get returns a chat. One that was never changed has the defaults. A mode that cannot be read is approval-required, and
// is reported; so is a record of which nothing can be read.
func (s *Chats) Get(t *store.Txn, id string) (Chat, error) {
	c, ok, err := store.Get[Chat](t, chatKey(id))
	switch {
	case errors.Is(err, store.ErrDamaged):
		s.cfg.Logger.Error("a chat's record is damaged; it begins again, in approval-required", "chat", id, "err", err)
		c = Chat{V: Version, ID: id, Mode: policy.ApprovalRequired}
	case err != nil:
		return Chat{}, fmt.Errorf("bridge: read chat %s: %w", id, err)
	case !ok:
		c = Chat{V: Version, ID: id}
	}
	if c.Mode == "" {
		c.Mode = s.cfg.DefaultMode
	}
	if !c.Mode.Valid() {
		s.cfg.Logger.Warn("chat has an unknown mode; approval-required is in force", "chat", id)
		c.Mode = policy.ApprovalRequired
	}
	switch c.Interaction {
	case policy.Default, policy.Plan:
	case "":
		c.Interaction = policy.Default
	default:
		s.cfg.Logger.Warn("chat has an unknown interaction; plan is in force", "chat", id)
		c.Interaction = policy.Plan
	}
	if c.Project == "" && s.cfg.DefaultProject != "" {
		if p, host, err := s.Find(t, s.cfg.DefaultProject); err == nil {
			c.Project, c.Folder, c.Host = p.Name, p.Folder, host
			c.Runtime = cmp.Or(c.Runtime, p.Runtime)
		}
	}
	c.Runtime = cmp.Or(c.Runtime, s.cfg.DefaultRuntime)
	return c, nil
}

// Read is Get outside of a transaction.
func (s *Chats) Read(ctx context.Context, id string) (c Chat, err error) {
	err = store.Update(ctx, s.cfg.DB, func(t *store.Txn) error {
		c, err = s.Get(t, id)
		return err
	})
	return c, err
}

// put stores a chat and, in the same commit, what its host may know of it.
func (s *Chats) put(t *store.Txn, c Chat) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	was, known, err := store.Get[Chat](t, chatKey(c.ID))
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	if !known {
		t.Add(c.index(), c.ID, store.Micros(now))
	}
	c.V = Version
	if err := store.Put(t, chatKey(c.ID), c); err != nil {
		return err
	}
	hosts := []string{c.Host, was.Host} // the host that it leaves closes the session
	hosts = append(hosts, c.Beside...)
	if c.Active != nil {
		hosts = append(hosts, c.Active.Host) // its running turn still asks there
	}
	slices.Sort(hosts)
	for _, h := range slices.Compact(hosts) {
		if h == "" {
			continue
		}
		m := Mirror{V: Version, Mode: c.Mode, Interaction: c.Interaction, Session: c.Session, CloseSeq: c.CloseSeq}
		if err := store.Put(t, mirrorKey(h, c.ID), m); err != nil {
			return err
		}
		t.Publish(wakeTopic(h), []byte(c.ID))
	}
	return nil
}

// ModeChange is what a change of mode did.
type ModeChange struct{ From, To policy.Mode }

// SetMode changes the chat's mode. It answers nothing that waits; it is in force from the next ask on, also in a
// running turn. Grants that were given under a higher mode end.
func (s *Chats) SetMode(t *store.Txn, id string, m policy.Mode) (ModeChange, error) {
	if !m.Valid() {
		return ModeChange{}, fmt.Errorf("bridge: set mode of %s: %w", id, policy.ErrUnknownMode)
	}
	c, err := s.Get(t, id)
	if err != nil {
		return ModeChange{}, err
	}
	ch := ModeChange{From: c.Mode, To: m}
	if c.Mode.Looser(m) {
		if err := s.dropGrants(t, id, func(g approvals.Grant) bool { return !g.Mode.Looser(m) }); err != nil {
			return ModeChange{}, err
		}
	}
	c.Mode = m
	return ch, s.put(t, c)
}

// DefaultMode is the mode of chats that chose none.
func (s *Chats) DefaultMode() policy.Mode { return s.cfg.DefaultMode }

// SetInteraction changes the chat's interaction, in force from the next ask on.
func (s *Chats) SetInteraction(t *store.Txn, id string, i policy.Interaction) error {
	if i != policy.Default && i != policy.Plan {
		return fmt.Errorf("bridge: set interaction of %s: unknown %q", id, i)
	}
	c, err := s.Get(t, id)
	if err != nil {
		return err
	}
	c.Interaction = i
	if err := s.dispatch(t, &c); err != nil { // a turn in plan waits for no workspace
		return err
	}
	return s.put(t, c)
}

// SetProject moves the chat to a project, with a session of its own. ErrNoProject if no host has it.
func (s *Chats) SetProject(t *store.Txn, id, project string) (Chat, error) {
	p, host, err := s.Find(t, project)
	if err != nil {
		return Chat{}, err
	}
	c, err := s.Get(t, id)
	if err != nil {
		return Chat{}, err
	}
	if c.Project == p.Name && c.Folder == p.Folder && c.Host == host {
		return c, s.put(t, c)
	}
	c.Host, c.Project, c.Folder = host, p.Name, p.Folder
	if p.Runtime != "" {
		c.use(p.Runtime)
	}
	err = s.fresh(t, &c)
	return c, err
}

// SetRuntime changes the runtime of the chat's next turns, with a session of its own. ErrNoRuntime if the chat's host
// does not have it.
func (s *Chats) SetRuntime(t *store.Txn, id, name string) (Chat, error) {
	c, err := s.Get(t, id)
	if err != nil {
		return Chat{}, err
	}
	hello, _, err := s.Hello(t, c.Host)
	if err != nil {
		return Chat{}, err
	}
	if _, ok := hello.Runtimes[name]; !ok {
		return Chat{}, fmt.Errorf("bridge: set runtime %q of %s: %w", name, id, ErrNoRuntime)
	}
	if c.Runtime == name {
		return c, s.put(t, c)
	}
	c.use(name)
	err = s.fresh(t, &c)
	return c, err
}

// New begins a new session with the next prompt: the present one is closed, and the grants given for it end. The mode
// and the interaction stay. A turn that runs is finished in the old session.
func (s *Chats) New(t *store.Txn, id string) error {
	c, err := s.Get(t, id)
	if err != nil {
		return err
	}
	return s.fresh(t, &c)
}

func (s *Chats) fresh(t *store.Txn, c *Chat) error {
	c.Session, c.Resume = "", ""
	c.CloseSeq++
	if err := s.dropGrants(t, c.ID, func(g approvals.Grant) bool { return g.Scope != approvals.ScopeSession }); err != nil {
		return err
	}
	if err := s.dispatch(t, c); err != nil { // the workspace that it waited for may not be its own any more
		return err
	}
	return s.put(t, *c)
}

func (s *Chats) dropGrants(t *store.Txn, chat string, keep func(approvals.Grant) bool) error {
	hosts, err := t.Range(approvals.HostsIndex, 0, maxScore, 0)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if err := s.cfg.Approvals.DropGrantsIn(t, h.Member, chat, keep); err != nil {
			return err
		}
	}
	return nil
}

const maxScore = 1<<53 - 1

// Offer is a project together with the host that has it.
type Offer struct {
	Project
	Host string
}

// Projects lists the projects of all hosts that ever said hello, by name. A project that stands on several hosts is
// listed once for each, named name@host.
func (s *Chats) Projects(t *store.Txn) ([]Offer, error) {
	hosts, err := t.Range(approvals.HostsIndex, 0, maxScore, 0)
	if err != nil {
		return nil, err
	}
	var all []Offer
	count := map[string]int{}
	for _, h := range hosts {
		hello, _, err := s.Hello(t, h.Member)
		if err != nil {
			return nil, err
		}
		for _, p := range hello.Projects {
			all = append(all, Offer{Project: p, Host: h.Member})
			count[p.Name]++
		}
	}
	for i, o := range all {
		if count[o.Name] > 1 {
			all[i].Name += "@" + o.Host
		}
	}
	slices.SortFunc(all, func(a, b Offer) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Hello returns what a host offers, and false if it never said, or nothing that can be read: it says it again when it
// starts.
func (s *Chats) Hello(t *store.Txn, host string) (Hello, bool, error) {
	m, ok, err := store.Peek[Hello](t, helloKey(host))
	if errors.Is(err, store.ErrDamaged) {
		return Hello{}, false, nil
	}
	return m, ok, err
}

// Find returns the project that a name means, as Projects lists it, and its host. ErrNoProject.
func (s *Chats) Find(t *store.Txn, name string) (Project, string, error) {
	all, err := s.Projects(t)
	if err != nil {
		return Project{}, "", err
	}
	for _, o := range all {
		if o.Name == name || o.Name == name+"@"+o.Host {
			p := o.Project
			p.Name, _, _ = strings.Cut(p.Name, "@")
			return p, o.Host, nil
		}
	}
	return Project{}, "", fmt.Errorf("bridge: find project %q: %w", name, ErrNoProject)
}

// All returns the keys of the chats that have a record, oldest first, at most limit of them.
func (s *Chats) All(ctx context.Context, limit int) ([]string, error) {
	items, err := s.cfg.DB.Range(ctx, chatsIndex, 0, maxScore, limit)
	if err != nil {
		return nil, fmt.Errorf("bridge: list chats: %w", err)
	}
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.Member
	}
	return ids, nil
}

// Migrate moves a chat's record to another key, as it is: mode, interaction, session and queue stay (a group that became
// a supergroup). Grants do not come along. A turn that runs is stopped, since its host knows the chat by its old key; its
// end is told under the new one. It reports whether there was anything to move and the new key was free; if it was not,
// the mode there is not looser afterwards than the old one.
func (s *Chats) Migrate(t *store.Txn, from, to string) (bool, error) {
	c, ok, err := store.Get[Chat](t, chatKey(from))
	if err != nil || !ok {
		return false, err
	}
	if _, taken, err := store.Get[Chat](t, chatKey(to)); err != nil {
		return false, err
	} else if taken {
		if err := s.lower(t, from, to); err != nil {
			return false, err
		}
		if err := s.leave(t, &c, from); err != nil {
			return false, err
		}
		// Nobody sits there any more: what still waits there may only look.
		c.Mode, c.Interaction = policy.ApprovalRequired, policy.Plan
		c.CloseSeq++
		return false, s.put(t, c)
	}
	t.Delete(chatKey(from))
	t.Drop(chatsIndex, from)
	if err := store.Put(t, movedKey(from), moved{V: Version, To: to}); err != nil {
		return false, err
	}
	if err := s.leave(t, &c, from); err != nil {
		return false, err
	}
	c.ID = to
	if err := s.put(t, c); err != nil {
		return false, err
	}
	if err := s.dispatch(t, &c); err != nil { // it may have waited for a workspace under its old name
		return false, err
	}
	return true, s.put(t, c)
}

// moved says under which key a chat is kept that had another one, under movedKey.
type moved struct {
	V  int    `json:"v"`
	To string `json:"to"`
}

// present is the key under which a chat is kept.
func present(t *store.Txn, id string) (string, error) {
	m, ok, err := store.Peek[moved](t, movedKey(id))
	if err != nil || !ok {
		return id, err
	}
	return m.To, nil
}

// leave ends what goes on under a chat's old key: its turn, and the agent's process, which the next turn resumes. What runs
// beside the conversation goes on, without grants and in plan: the old key hears of no change of mode any more.
func (s *Chats) leave(t *store.Txn, c *Chat, from string) error {
	hosts := append([]string{c.Host}, c.Beside...)
	if a := c.Active; a != nil {
		if a.Host != c.Host {
			hosts = append(hosts, a.Host)
		}
		if err := s.interrupt(t, from, a); err != nil {
			return err
		}
	}
	if err := s.dropGrants(t, from, nil); err != nil {
		return err
	}
	for _, h := range hosts {
		if h == "" {
			continue
		}
		m := Mirror{V: Version, Mode: policy.ApprovalRequired, Interaction: policy.Plan, Session: c.Session, CloseSeq: c.CloseSeq + 1}
		if err := store.Put(t, mirrorKey(h, from), m); err != nil {
			return err
		}
		t.Publish(wakeTopic(h), []byte(from))
	}
	return nil
}

// lower takes care that the mode of a chat is not looser than that of another one.
func (s *Chats) lower(t *store.Txn, from, to string) error {
	was, err := s.Get(t, from)
	if err != nil {
		return err
	}
	is, err := s.Get(t, to)
	if err != nil || !is.Mode.Looser(was.Mode) {
		return err
	}
	_, err = s.SetMode(t, to, was.Mode)
	return err
}
