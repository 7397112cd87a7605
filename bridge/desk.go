package bridge

import (
	"context"
	"fmt"

	"drawbridge/approvals"
	"drawbridge/internal/store"
)

// Desk is the chat in which a host asks what agents ask that a person runs in terminals of their own, under deskKey. Only
// gateways write it. Without one, the terminals alone ask.
type Desk struct {
	V    int    `json:"v"`
	Chat string `json:"chat"`
}

func deskKey(host string) string { return "to:" + host + ":desk" }

// SetDesk makes a chat the desk of every host that is known, or of none if id is empty. It returns how many hosts those are.
func (s *Chats) SetDesk(t *store.Txn, id string) (int, error) {
	hosts, err := deskHosts(t)
	if err != nil {
		return 0, err
	}
	for _, host := range hosts {
		if id == "" {
			t.Delete(deskKey(host))
			continue
		}
		if err := store.Put(t, deskKey(host), Desk{V: Version, Chat: id}); err != nil {
			return 0, err
		}
	}
	return len(hosts), nil
}

// MoveDesk gives a desk for which fits reports true to another chat, or to none if id is empty.
func (s *Chats) MoveDesk(t *store.Txn, fits func(chat string) bool, id string) error {
	hosts, err := deskHosts(t)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		d, ok, err := store.Get[Desk](t, deskKey(host))
		switch {
		case err != nil:
			return fmt.Errorf("bridge: read the desk of %s: %w", host, err)
		case !ok || !fits(d.Chat):
			continue
		case id == "":
			t.Delete(deskKey(host))
			continue
		}
		if err := store.Put(t, deskKey(host), Desk{V: Version, Chat: id}); err != nil {
			return err
		}
	}
	return nil
}

func deskHosts(t *store.Txn) ([]string, error) {
	items, err := t.Range(approvals.HostsIndex, 0, maxScore, 0)
	if err != nil {
		return nil, fmt.Errorf("bridge: list the hosts of the desk: %w", err)
	}
	hosts := make([]string, 0, len(items))
	for _, it := range items {
		hosts = append(hosts, it.Member)
	}
	return hosts, nil
}

// DeskChat is the chat of a host's desk; empty if it has none.
func DeskChat(ctx context.Context, db store.DB, host string) (chat string, err error) {
	err = store.Update(ctx, db, func(t *store.Txn) error {
		d, _, err := store.Peek[Desk](t, deskKey(host))
		chat = d.Chat
		return err
	})
	if err != nil {
		return "", fmt.Errorf("bridge: read the desk of %s: %w", host, err)
	}
	return chat, nil
}
