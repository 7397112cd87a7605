package redis_test

import (
	"testing"

	"drawbridge/internal/store"
	"drawbridge/internal/store/storetest"
)

func TestListenerIsToldOfALostConnection(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	db := server.Open(t, "db:{1}:")
	ch, err := db.Listen(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Publish(t.Context(), "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if m := <-ch; m.Topic != "a" || string(m.Body) != "1" {
		t.Fatalf("got %+v", m)
	}
	if err := db.Commit(t.Context(), store.Batch{Put: map[string][]byte{"k": []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	if m := <-ch; m.Topic != "" || m.Body != nil {
		t.Fatalf("after a restart: got %+v, want the empty message", m)
	}
	if err := db.Publish(t.Context(), "a", []byte("2")); err != nil {
		t.Fatal(err)
	}
	if m := <-ch; m.Topic != "a" || string(m.Body) != "2" {
		t.Fatalf("got %+v", m)
	}
	_, docs, err := db.Read(t.Context(), "k", "none")
	if err != nil {
		t.Fatal(err)
	}
	if string(docs[0].Value) != "v" || docs[0].Rev == "" || docs[1].Rev != "" || docs[1].Value != nil {
		t.Errorf("read %+v", docs)
	}
}
