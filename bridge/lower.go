package bridge

import (
	"context"

	"drawbridge/policy"
	"drawbridge/runner"
)

// stricter reports whether what runs under one policy has to be told of another one.
func stricter(was, now runner.Policy) bool {
	return was.Mode.Looser(now.Mode) || was.Interaction != now.Interaction && now.Interaction == policy.Plan
}

// lowerIdle is tighten for what goes on between turns: sub-agents and commands in the background, which keep the policy
// that their agent's program was last told. A session whose program can't be held to a stricter one is closed, and they end
// with it. Turns begin on the same goroutine, as for closeIdle.
func (h *Host) lowerIdle(ctx context.Context) error {
	h.mu.Lock()
	busy := map[string]bool{}
	for _, t := range h.turns {
		busy[t.order.Chat] = true
	}
	var idle []*hostSession
	var keys []string
	for chat, s := range h.sessions {
		if _, ok := s.session.(runner.PolicySetter); ok && s.turn == nil && s.last != nil && !busy[chat] {
			idle = append(idle, s)
			keys = append(keys, mirrorKey(h.cfg.Name, s.last.order.held()))
		}
	}
	h.mu.Unlock()
	if len(idle) == 0 {
		return nil
	}
	_, docs, err := h.cfg.DB.Read(ctx, keys...)
	if err != nil {
		return err
	}
	for i, s := range idle {
		m, err := decode[Mirror](docs[i].Value)
		if err != nil {
			m = Mirror{} // the strictest
		}
		now := s.last.order.policy(m)
		h.mu.Lock()
		was := s.last.under
		s.last.under = now
		h.mu.Unlock()
		if was == (runner.Policy{}) || !stricter(was, now) {
			continue
		}
		applied, err := s.session.(runner.PolicySetter).SetPolicy(ctx, now) //nolint:forcetypeassert // looked at above
		if err == nil && applied {
			continue
		}
		h.cfg.Logger.Info("a session is closed, since what it does in the background can't be held to the chat's stricter mode", "chat", s.chat)
		h.discard(s)
	}
	return nil
}
