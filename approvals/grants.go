package approvals

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// The scopes of a Grant, as an Action's Grant names them.
const (
	ScopeSession = "session"
	ScopeProject = "project"
)

// maxGrants is how many grants a chat has on one host; the oldest goes when one more is given.
const maxGrants = 200

// offer is what could be granted for a question, nil if nothing may be: never what is human-only, secret or deletes, and
// never a command that can't be parsed.
func offer(a *asking) *Grant {
	q := a.q
	if !a.grantable() {
		return nil
	}
	g := &Grant{V: Version, Folder: q.Folder, Background: a.background, Categories: slices.Clone(a.categories)}
	switch q.Kind {
	case runner.KindCommand:
		if !filepath.IsAbs(q.Folder) {
			return nil
		}
		if prefix, ok := policy.Prefix(q.Command); ok {
			g.Prefix = prefix
		} else {
			g.Command = q.Command
		}
	case runner.KindFileChange:
		for _, f := range q.Files {
			if f.Op != runner.FileCreate && f.Op != runner.FileEdit {
				return nil
			}
			g.Paths = append(g.Paths, f.Path)
		}
		if len(g.Paths) == 0 {
			return nil
		}
		slices.Sort(g.Paths)
		g.Paths = slices.Compact(g.Paths)
	case runner.KindTool:
		if q.Tool == "" {
			return nil
		}
		g.Folder, g.Tool = "", q.Tool
	case runner.KindPlan, runner.KindQuestion, runner.KindProposal:
		return nil
	}
	return g
}

// grantable reports whether a grant may be given for the question, and serve it.
func (a *asking) grantable() bool {
	if policy.HumanOnly(a.categories...) || a.q.Has(policy.Secret, policy.Delete) {
		return false
	}
	return a.q.Kind != runner.KindCommand || policy.Grantable(a.q.Command, a.run.Workspace)
}

// granted reports whether a grant serves the question.
func (s *Service) granted(ctx context.Context, a *asking) (bool, error) {
	if !a.grantable() {
		return false, nil
	}
	gs, err := s.Grants(ctx, s.c.Host, a.run.Chat)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(gs, func(g Grant) bool { return g.serves(a) }), nil
}

// serves reports whether g spares this question. A grant of a kind or a version that is not known serves nothing.
func (g Grant) serves(a *asking) bool {
	switch {
	case g.V > Version,
		a.background && !g.Background,
		!g.Mode.Valid() || g.Mode.Looser(a.policy.Mode),
		len(g.Categories) > 0 && slices.ContainsFunc(a.categories, func(c policy.Category) bool { return !slices.Contains(g.Categories, c) }):
		return false
	case g.Scope == ScopeSession:
		if g.Session == "" || g.Session != a.run.Session {
			return false
		}
	case g.Scope == ScopeProject:
		if g.Project == "" || g.Project != a.run.Project {
			return false
		}
	default:
		return false
	}
	return g.fits(a.q)
}

// fits reports whether q is what g was given for.
func (g Grant) fits(q runner.Question) bool {
	switch q.Kind {
	case runner.KindCommand:
		if g.Folder == "" || g.Folder != q.Folder {
			return false
		}
		if g.Prefix != "" {
			return policy.Covers(g.Prefix, q.Command)
		}
		return g.Command != "" && g.Command == q.Command
	case runner.KindFileChange:
		if g.Folder != q.Folder || len(q.Files) == 0 {
			return false
		}
		return !slices.ContainsFunc(q.Files, func(f runner.FileChange) bool {
			return (f.Op != runner.FileCreate && f.Op != runner.FileEdit) || !slices.Contains(g.Paths, f.Path)
		})
	case runner.KindTool:
		return g.Tool != "" && g.Tool == q.Tool
	case runner.KindPlan, runner.KindQuestion, runner.KindProposal:
	}
	return false
}

// Grants returns the grants of a chat on a host, oldest first. Which of them serve depends on the mode, the session and
// the project at the moment of an ask.
func (s *Service) Grants(ctx context.Context, host, chat string) ([]Grant, error) {
	var gs Grants
	err := s.read(ctx, func(t *store.Txn) (err error) {
		gs, _, err = store.Peek[Grants](t, GrantsKey(host, chat))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("approvals: grants of %s on %s: %w", chat, host, err)
	}
	return gs.Grants, nil
}

// giveIn adds what an action grants, in the commit of the decision. The same grant given again replaces the older one.
func giveIn(t *store.Txn, r Record, scope string, d Decision) error {
	g := *r.Grant
	g.V, g.ID, g.Scope, g.Mode, g.By, g.Name, g.At = Version, rand.Text(), scope, r.Mode, d.By, d.Name, d.At
	g.Background = r.Background
	if scope == ScopeSession {
		g.Session = r.Session
	} else {
		g.Project = r.Project
	}
	return changeGrants(t, r.ID.Host(), r.Chat, func(gs []Grant) []Grant {
		gs = slices.DeleteFunc(gs, func(old Grant) bool { return old.same(g) })
		gs = append(gs, g)
		return gs[max(0, len(gs)-maxGrants):]
	})
}

// same reports whether g and o differ in no more than who gave them and when.
func (g Grant) same(o Grant) bool {
	return g.Scope == o.Scope && g.Session == o.Session && g.Project == o.Project && g.Folder == o.Folder &&
		g.Prefix == o.Prefix && g.Command == o.Command && slices.Equal(g.Paths, o.Paths) && g.Tool == o.Tool && slices.Equal(g.Categories, o.Categories) &&
		g.Background == o.Background && g.Mode == o.Mode
}

// RevokeIn takes back one grant, from the next ask on. It reports false if there was none of this id.
func (s *Service) RevokeIn(t *store.Txn, host, chat, id string) (bool, error) {
	n, err := s.dropGrants(t, host, chat, func(g Grant) bool { return g.ID != id })
	return n > 0, err
}

// DropGrantsIn takes back every grant of a chat that keep does not hold on to; a nil keep holds none. It is for what ends
// grants: a new session, a lower mode.
func (s *Service) DropGrantsIn(t *store.Txn, host, chat string, keep func(Grant) bool) error {
	_, err := s.dropGrants(t, host, chat, keep)
	return err
}

func (s *Service) dropGrants(t *store.Txn, host, chat string, keep func(Grant) bool) (dropped int, err error) {
	err = changeGrants(t, host, chat, func(gs []Grant) []Grant {
		before := len(gs)
		gs = slices.DeleteFunc(gs, func(g Grant) bool { return keep == nil || !keep(g) })
		dropped = before - len(gs)
		return gs
	})
	if err != nil || dropped == 0 {
		return 0, err
	}
	return dropped, s.AuditIn(t, AuditLine{Event: EventRevoked, Host: host, Chat: chat, Count: dropped})
}

// changeGrants writes only if something changed, so that a look costs no commit.
func changeGrants(t *store.Txn, host, chat string, change func([]Grant) []Grant) error {
	gs, _, err := store.Get[Grants](t, GrantsKey(host, chat))
	if err != nil {
		return fmt.Errorf("approvals: grants of %s on %s: %w", chat, host, err)
	}
	before := slices.Clone(gs.Grants)
	gs.V, gs.Grants = Version, change(gs.Grants)
	if slices.EqualFunc(before, gs.Grants, func(a, b Grant) bool { return a.ID == b.ID }) {
		return nil
	}
	return store.Put(t, GrantsKey(host, chat), gs)
}
