package approvals

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Event is what an audit line tells of.
type Event string

// The events. Any other is written as EventOther.
const (
	EventDecision Event = "decision"       // somebody or something decided
	EventRevoked  Event = "grants-revoked" // grants were taken back
	EventMode     Event = "mode"           // a chat's mode or interaction changed
	EventPeople   Event = "people"         // somebody was listed, or is no more
	EventOther    Event = "other"
)

// AuditLine is one line of the audit log. It holds identifiers, digests, counts and words from fixed lists, and never a
// command, a path, an address, a reason, a name or a model's text: AuditIn replaces what looks like one.
type AuditLine struct {
	V           int                `json:"v"`
	N           string             `json:"n"` // random; keeps equal lines apart
	At          time.Time          `json:"at"`
	Event       Event              `json:"event"`
	ID          ID                 `json:"id,omitempty"`
	Host        string             `json:"host,omitempty"`
	Chat        string             `json:"chat,omitempty"`
	Session     string             `json:"session,omitempty"`
	Run         string             `json:"run,omitempty"`
	Turn        string             `json:"turn,omitempty"`
	Prompted    string             `json:"prompted,omitempty"`
	Background  bool               `json:"background,omitempty"`
	Kind        string             `json:"kind,omitempty"`
	Categories  []policy.Category  `json:"categories,omitempty"`
	Mode        policy.Mode        `json:"mode,omitempty"`
	Interaction policy.Interaction `json:"interaction,omitempty"`
	Decision    runner.Decision    `json:"decision,omitempty"`
	Action      string             `json:"action,omitempty"`
	Source      runner.Source      `json:"source,omitempty"`
	By          int64              `json:"by,omitempty"` // Telegram user id
	HasReason   bool               `json:"has_reason"`
	Grant       string             `json:"grant,omitempty"` // the scope of what was granted with it
	Digest      string             `json:"digest,omitempty"`
	Count       int                `json:"count,omitempty"`
}

// AuditIn adds a line in the commit of what it tells of. It sets V, N and At.
func (s *Service) AuditIn(t *store.Txn, line AuditLine) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	line = line.clean()
	line.V, line.N, line.At = Version, rand.Text(), now
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("approvals: audit: %w", err)
	}
	index := AuditIndex
	if s.c.Host != "" {
		index = HostAuditIndex(s.c.Host)
	}
	t.Add(index, string(b), store.Micros(now))
	return nil
}

// Audit returns the lines since a time, oldest first, at most limit of them (0: all), of gateways and hosts together.
func (s *Service) Audit(ctx context.Context, since time.Time, limit int) ([]AuditLine, error) {
	fail := func(err error) ([]AuditLine, error) { return nil, fmt.Errorf("approvals: audit: %w", err) }
	hosts, err := s.hosts(ctx)
	if err != nil {
		return fail(err)
	}
	var lines []AuditLine
	for _, index := range append([]string{AuditIndex}, hostAudits(hosts)...) {
		items, err := s.db.Range(ctx, index, store.Micros(since), math.MaxInt64, limit)
		if err != nil {
			return fail(err)
		}
		for _, i := range items {
			var line AuditLine
			if err := json.Unmarshal([]byte(i.Member), &line); err != nil {
				s.log.ErrorContext(ctx, "an audit line is damaged", "err", err)
				continue
			}
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b AuditLine) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.N, b.N)) })
	if limit > 0 && len(lines) > limit {
		lines = lines[:limit]
	}
	return lines, nil
}

func hostAudits(hosts []string) []string {
	out := make([]string, 0, len(hosts))
	for _, h := range hosts {
		out = append(out, HostAuditIndex(h))
	}
	return out
}

func (s *Service) pruneAudit(ctx context.Context, index string, now time.Time) error {
	for {
		old, err := s.db.Range(ctx, index, math.MinInt64, store.Micros(now.Add(-keepAudit)), pruneMost)
		if err != nil || len(old) == 0 {
			return err
		}
		err = store.Update(ctx, s.db, func(t *store.Txn) error {
			for _, i := range old {
				t.Drop(index, i.Member)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// auditDecision is the line of a decision that a gateway makes.
func (s *Service) auditDecision(t *store.Txn, r Record, d Decision, grant string) error {
	line := r.auditLine()
	line.Decision, line.Action, line.Source, line.By, line.Grant = d.Decision, d.Action, d.Source, d.By, grant
	line.HasReason = d.Reason != "" || len(d.Answers) > 0
	return s.AuditIn(t, line)
}

// auditResolved is the line of what a host decides by itself. What it only carries out has its line from the gateway.
func (s *Service) auditResolved(t *store.Txn, r Record) error {
	line := r.auditLine()
	switch {
	case r.State == Changed:
		return nil
	case r.State == Handed && r.Decision != nil && r.Decision.Source == runner.SourceUser:
		return nil
	case r.State == Handed && r.Decision != nil:
		line.Decision, line.Source = r.Decision.Decision, r.Decision.Source
	default:
		d, err := peekDecision(t, r.ID)
		if err != nil || (d != nil && d.Decision != runner.Allowed) {
			return err
		}
		line.Decision, line.Source = r.State.source()
	}
	return s.AuditIn(t, line)
}

func (r Record) auditLine() AuditLine {
	return AuditLine{
		Event: EventDecision, ID: r.ID, Host: r.ID.Host(), Chat: r.Chat, Session: r.Session, Run: r.Run, Turn: r.Turn,
		Prompted: r.Prompted, Background: r.Background, Kind: string(r.Question.Kind), Categories: r.Question.Categories,
		Mode: r.Mode, Interaction: r.Interaction, Digest: r.Digest,
	}
}

// auditAnswer writes the line of an answer for which there is no record.
func (s *Service) auditAnswer(ctx context.Context, a *asking, answer runner.Answer) error {
	line := AuditLine{
		Event: EventDecision, Host: s.c.Host, Chat: a.run.Chat, Session: a.run.Session, Run: a.run.ID, Turn: a.run.Turn,
		Prompted: a.run.Prompted, Background: a.background, Kind: string(a.q.Kind), Categories: a.categories,
		Mode: a.policy.Mode, Interaction: a.policy.Interaction, Digest: digest(a.q, a.files),
		Decision: answer.Decision, Source: answer.Source, HasReason: answer.Reason != "",
	}
	return store.Update(ctx, s.db, func(t *store.Txn) error { return s.AuditIn(t, line) })
}

// clean keeps what is on a fixed list or looks like an identifier of ours.
func (l AuditLine) clean() AuditLine {
	l.Event = listed(l.Event, EventOther, EventDecision, EventRevoked, EventMode, EventPeople)
	l.ID, l.Host, l.Chat = ID(identifier(string(l.ID))), identifier(l.Host), chatIdentifier(l.Chat)
	l.Session, l.Run, l.Turn, l.Prompted = identifier(l.Session), identifier(l.Run), identifier(l.Turn), identifier(l.Prompted)
	l.Kind = string(listed(runner.QuestionKind(l.Kind), "", runner.KindCommand, runner.KindFileChange, runner.KindTool, runner.KindPlan,
		runner.KindQuestion, runner.KindProposal))
	l.Mode = listed(l.Mode, "", policy.Modes()...)
	l.Interaction = listed(l.Interaction, "", policy.Default, policy.Plan)
	l.Decision = listed(l.Decision, "", runner.Allowed, runner.Denied, runner.Withdrawn)
	l.Source = listed(l.Source, "", runner.SourceUser, runner.SourceRule, runner.SourceGrant, runner.SourceReviewer,
		runner.SourceRuntime, runner.SourceTimeout, runner.SourceShutdown)
	if l.Action != "" {
		l.Action = listed(l.Action, "own", runner.ActionAllow, runner.ActionAllowSession, runner.ActionAllowProject, runner.ActionDeny, runner.ActionMake)
	}
	l.Grant = listed(l.Grant, "", ScopeSession, ScopeProject)
	l.Digest = identifier(l.Digest)
	categories := slices.Clone(l.Categories)
	for i, c := range categories {
		categories[i] = listed(c, policy.Unknown, policy.Read, policy.Secret, policy.ReadOutside, policy.Write, policy.Protected,
			policy.System, policy.Delete, policy.Terminal, policy.Fetch, policy.Network, policy.Credential, policy.Publish,
			policy.Payment, policy.Question)
	}
	slices.Sort(categories)
	l.Categories = slices.Compact(categories)
	return l
}

// listed returns word if it is one of list, else instead.
func listed[T ~string](word, instead T, list ...T) T {
	if slices.Contains(list, word) || word == "" {
		return word
	}
	return instead
}

// chatIdentifier is identifier for a chat, which may be a topic of another one: "-1001/7". Only numbers have a slash, so
// that it is no path.
func chatIdentifier(id string) string {
	chat, topic, in := strings.Cut(id, "/")
	if !in || strings.Trim(chat, "-0123456789") != "" || strings.Trim(topic, "0123456789") != "" {
		return identifier(id)
	}
	return id
}

// identifier returns id unless it holds anything that none of our identifiers holds.
func identifier(id string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	if len(id) > 160 || strings.Trim(id, letters) != "" {
		return "other"
	}
	return id
}
