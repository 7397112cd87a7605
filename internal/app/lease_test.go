package app

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"drawbridge/bot"
	"drawbridge/internal/config"
	"drawbridge/internal/store"
	"drawbridge/internal/store/bolt"
	"drawbridge/internal/store/storetest"
)

// TestEmbeddedGatewayNeedNotWaitForADeadOne: the lease of a gateway that was killed on the embedded store would stand for
// an hour here, and is taken at once, with a fence of its own.
func TestEmbeddedGatewayNeedNotWaitForADeadOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "drawbridge.db")
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := term(t, db, func() {
		if err := db.Close(); err != nil { // as a kill would, before the lease can be given back
			t.Error(err)
		}
	})
	if db, err = bolt.Open(path, bolt.Options{}); err != nil {
		t.Fatal(err)
	}
	second := term(t, db, func() {})
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
}

// term takes the lease as a gateway on the embedded store does and returns its fence.
func term(t *testing.T, db store.DB, during func()) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got int64
	l := bot.Lease{DB: db, Name: leaseName, Owner: leaseOwner(config.Config{}), TTL: time.Hour, Renew: time.Minute, Logger: storetest.Logger(t)}
	err := l.Run(ctx, func(_ context.Context, fence int64) error {
		got = fence
		during()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got == 0 {
		t.Fatal("the lease was not taken")
	}
	return got
}

// TestGatewaysOnRedisHaveNamesOfTheirOwn: one that was killed may be alive for all that the others know.
func TestGatewaysOnRedisHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := config.Config{RedisURL: config.NewSecret("redis://127.0.0.1:1")}
	if a, b := leaseOwner(c), leaseOwner(c); a == b {
		t.Errorf("two gateways both own the lease as %q", a)
	}
}
