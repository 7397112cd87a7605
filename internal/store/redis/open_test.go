package redis_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"drawbridge/internal/store"
	"drawbridge/internal/store/redis"
	"drawbridge/internal/store/storetest"
)

func TestOpenChecksTheServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		url     func(url string) string
		refused string // the whole error
		warned  string // a part of the log; empty: nothing is logged
	}{
		"as it should be": {},
		"evicts":          {args: []string{"--maxmemory-policy", "allkeys-lru"}, refused: "redis: open: the server's maxmemory-policy is allkeys-lru and would drop data; it must be noeviction"},
		"evicts, and refuses CONFIG": {
			args:    []string{"--maxmemory-policy", "volatile-ttl", "--rename-command", "CONFIG", ""},
			refused: "redis: open: the server's maxmemory-policy is volatile-ttl and would drop data; it must be noeviction",
			warned:  "refuses CONFIG GET",
		},
		"refuses CONFIG":      {args: []string{"--rename-command", "CONFIG", ""}, warned: "refuses CONFIG GET"},
		"no append-only file": {args: []string{"--appendonly", "no"}, warned: "keeps no append-only file"},
		"no fsync":            {args: []string{"--appendfsync", "no"}, warned: "leaves writing to the operating system"},
		"wrong password":      {url: func(u string) string { return strings.Replace(u, "//", "//default:wrong@", 1) }, args: []string{"--requirepass", "right"}, refused: "redis: open: forbidden by the server's ACL: WRONGPASS invalid username-password pair or user is disabled."},
		"a database":          {url: func(u string) string { return u + "/3" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := storetest.StartRedis(t, storetest.RedisOptions{Args: c.args})
			url := server.URL()
			if c.url != nil {
				url = c.url(url)
			}
			var log bytes.Buffer
			db, err := redis.Open(t.Context(), url, redis.Options{Prefix: "db:{1}:", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			switch {
			case err == nil && c.refused != "":
				t.Error("it was not refused")
			case err != nil && err.Error() != c.refused:
				t.Errorf("refused with %q, want %q", err, c.refused)
			}
			if db != nil {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
			if (c.warned == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.warned) {
				t.Errorf("logged %q, want %q", log.String(), c.warned)
			}
		})
	}
}

func TestOpenRefusesAddresses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url, prefix, want string
		is                error
	}{
		"nobody there":    {url: "redis://127.0.0.1:1", is: store.ErrUnavailable},
		"no socket":       {url: "unix:///nonexistent/redis.sock", is: store.ErrUnavailable},
		"no scheme":       {url: "localhost:6379", want: "redis: invalid URL scheme: localhost"},
		"another scheme":  {url: "http://localhost", want: "redis: invalid URL scheme: http"},
		"bad password":    {url: "redis://:se%cret@localhost", want: "the address is not a URL; special characters in a password must be percent-encoded"},
		"unknown option":  {url: "redis://localhost?colour=red", want: "redis: unexpected option: colour"},
		"a Cluster":       {url: "redis://127.0.0.1:1?addr=127.0.0.1:2", is: store.ErrUnavailable},
		"behind Sentinel": {url: "redis://127.0.0.1:1?master_name=m", is: store.ErrUnavailable},
		"no hash tag":     {url: "redis://127.0.0.1:1", prefix: "db:", want: `the prefix "db:" has no hash tag`},
		"empty hash tag":  {url: "redis://127.0.0.1:1", prefix: "db:{}:", want: `the prefix "db:{}:" has no hash tag`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.prefix == "" {
				c.prefix = "db:{1}:"
			}
			_, err := redis.Open(t.Context(), c.url, redis.Options{Prefix: c.prefix})
			switch {
			case err == nil:
				t.Error("it was not refused")
			case c.is != nil && !errors.Is(err, c.is):
				t.Errorf("refused with %v, want %v", err, c.is)
			case c.want != "" && err.Error() != "redis: open: "+c.want:
				t.Errorf("refused with %q, want %q", err, c.want)
			case strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "cret"):
				t.Errorf("%q is not one line without the password", err)
			}
		})
	}
}
