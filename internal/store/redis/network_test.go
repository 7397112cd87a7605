package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/redis"
	"drawbridge/internal/store/storetest"
)

// serve accepts loopback connections until the test ends, and returns the address.
func serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			all.Go(func() { handle(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// cable passes everything on between clients and a server until it is cut: then the connections of that time stay open
// and carry nothing any more, as when a router forgets them.
type cable struct {
	server string
	mu     sync.Mutex
	live   context.Context
	cut    context.CancelFunc
}

func (c *cable) handle(client net.Conn) {
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		_ = client.Close()
		return
	}
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { pass(live, client, server) })
	both.Go(func() { pass(live, server, client) })
	both.Wait()
}

func pass(live context.Context, from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if live.Err() != nil {
			n = 0
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			_ = to.Close()
			return
		}
	}
}

func (c *cable) plug() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut != nil {
		c.cut()
	}
	c.live, c.cut = context.WithCancel(context.Background())
}

// TestSilentConnectionIsReplaced: nothing tells a client that waits for hints that its connection carries nothing any
// more, so it must ask.
func TestSilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	c := &cable{server: server.Addr()}
	c.plug()
	defer func() { c.cut() }()
	db, err := redis.Open(t.Context(), "redis://"+serve(t, c.handle), redis.Options{Prefix: "db:{1}:", Silence: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	direct := server.Open(t, "db:{1}:")
	ch, err := db.Listen(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	// A quiet connection that is well stays: no empty message comes while the signs of life do.
	wait := time.NewTimer(500 * time.Millisecond)
	select {
	case m := <-ch:
		t.Fatalf("got %+v of a connection that is well", m)
	case <-wait.C:
	}
	c.plug()
	if err := direct.Publish(t.Context(), "a", []byte("lost")); err != nil {
		t.Fatal(err)
	}
	if m := <-ch; m.Topic != "" {
		t.Fatalf("got %+v, want the empty message", m)
	}
	if err := direct.Publish(t.Context(), "a", []byte("found")); err != nil {
		t.Fatal(err)
	}
	if m := <-ch; string(m.Body) != "found" {
		t.Fatalf("got %+v", m)
	}
}

// TestServerAway: calls fail with ErrUnavailable and without much delay, and succeed again once it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t, storetest.RedisOptions{})
	db := server.Open(t, "db:{1}:")
	server.Kill()
	_, _, readErr := db.Read(t.Context(), "a")
	_, _, timeErr := db.Read(t.Context())
	_, rangeErr := db.Range(t.Context(), "i", 0, 9, 0)
	_, listenErr := db.Listen(t.Context(), "a")
	for name, err := range map[string]error{
		"read": readErr, "time": timeErr, "range": rangeErr, "listen": listenErr,
		"commit":  db.Commit(t.Context(), store.Batch{Put: map[string][]byte{"a": nil}}),
		"publish": db.Publish(t.Context(), "a", nil),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	server.Restart()
	ch, err := db.Listen(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	err = db.Commit(t.Context(), store.Batch{Put: map[string][]byte{"a": nil}, Publish: []store.Message{{Topic: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m := <-ch; m.Topic != "a" {
		t.Errorf("got %+v", m)
	}
}

// TestOldServerIsRefused has a server that says HELLO and no more.
func TestOldServerIsRefused(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"6.2.14": "redis: open: the server has version 6.2.14, at least 7 is needed",
		"":       "redis: open: the server does not tell its version",
		"x":      "redis: open: the server has version x, at least 7 is needed",
	} {
		addr := serve(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			for {
				command, err := readCommand(in)
				if err != nil {
					return
				}
				reply := "-ERR unknown command\r\n"
				if command == "hello" {
					reply = fmt.Sprintf("%%2\r\n$7\r\nversion\r\n$%d\r\n%s\r\n$5\r\nproto\r\n:3\r\n", len(version), version)
				}
				if _, err := io.WriteString(c, reply); err != nil {
					return
				}
			}
		})
		if _, err := redis.Open(t.Context(), "redis://"+addr, redis.Options{Prefix: "db:{1}:"}); err == nil || err.Error() != want {
			t.Errorf("version %q: %v, want %s", version, err, want)
		}
	}
}

// readCommand returns the name of the next command.
func readCommand(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "*")))
	if err != nil {
		return "", err
	}
	var words []string
	for range 2 * n { // a length and a word each
		if line, err = in.ReadString('\n'); err != nil {
			return "", err
		}
		words = append(words, strings.TrimSpace(line))
	}
	if len(words) < 2 {
		return "", io.ErrUnexpectedEOF
	}
	return strings.ToLower(words[1]), nil
}
