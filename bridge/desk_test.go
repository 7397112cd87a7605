package bridge

import (
	"testing"

	"drawbridge/internal/store"
)

func TestTheDeskOfEveryHostMoves(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.host("laptop")
	h.host("tower")
	desk := func(host string) string {
		t.Helper()
		chat, err := DeskChat(t.Context(), h.db, host)
		if err != nil {
			t.Fatal(err)
		}
		return chat
	}
	h.update(func(tx *store.Txn) error {
		n, err := h.chats.SetDesk(tx, "-5")
		if n != 2 {
			t.Errorf("%d hosts were told", n)
		}
		return err
	})
	h.update(func(tx *store.Txn) error {
		return h.chats.MoveDesk(tx, func(chat string) bool { return chat == "-5" }, "-1005")
	})
	if a, b := desk("laptop"), desk("tower"); a != "-1005" || b != "-1005" {
		t.Errorf("the desks are %q and %q", a, b)
	}
	h.update(func(tx *store.Txn) error {
		_, err := h.chats.SetDesk(tx, "")
		return err
	})
	if a := desk("laptop"); a != "" {
		t.Errorf("the desk is %q after it was ended", a)
	}
}
