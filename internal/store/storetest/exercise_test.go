package storetest_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBolt(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, storetest.OpenBolt)
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	var n atomic.Int64
	storetest.Exercise(t, func(t testing.TB) store.DB {
		t.Helper()
		return server.Open(t, fmt.Sprintf("db:{%d}:", n.Add(1)))
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t testing.TB) store.DB {
		t.Helper()
		m := storetest.NewMemory(nil)
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return m
	})
}
