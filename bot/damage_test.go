package bot

import (
	"context"
	"encoding/json"
	"testing"

	"drawbridge/internal/store"
)

// TestDamagedDocumentsKeepNobodyFromTelegram: a gateway takes the lease and updates in although what it last wrote about
// them cannot be decoded, and under a fence that no earlier term had.
func TestDamagedDocumentsKeepNobodyFromTelegram(t *testing.T) {
	t.Parallel()
	db := bubbleStore(t)
	b := store.Batch{Rev: store.NewRev(), Put: map[string][]byte{leaseKey("poll"): []byte(`{"v":1,"fence":7,`), inboxIntake: []byte(`{"v":`)}}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	fence, won, err := lease(t, db, "a").acquire(t.Context())
	if err != nil || !won || fence <= 7 {
		t.Errorf("fence %d, won %v, %v", fence, won, err)
	}
	inbox := NewInbox(InboxConfig{DB: db, Logger: lease(t, db, "a").Logger})
	if err := inbox.Accept(context.WithoutCancel(t.Context()), nil, json.RawMessage(`{"update_id":1}`)); err != nil {
		t.Error(err)
	}
	if items, err := db.Range(t.Context(), inboxIndex, 0, store.MaxScore, 0); err != nil || len(items) != 1 {
		t.Errorf("%d updates wait, %v", len(items), err)
	}
}
