package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	neturl "net/url"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"drawbridge/internal/store"
)

const (
	dialTimeout = 2 * time.Second
	// replyTimeout is how long a command may take. The scripts take far below a millisecond; a redis-server that saves a
	// large data set can pause for a second.
	replyTimeout = 3 * time.Second
	// minVersion: scripts that only read (EVALSHA_RO) and ACLs on keys by reading and writing came with Redis 7.
	minVersion = 7
)

// connect makes the client for a URL: redis://, rediss:// (TLS) or unix:// for one server; with ?master_name=NAME the
// Sentinels at the given addresses are asked for the master; with ?addr=HOST:PORT, which may be repeated, it is a Cluster.
//
// go-redis does not repeat anything by itself: a repeated commit can meet its own effect, and only Update knows what
// that means. Reads go to the master, as a replica may lag behind a guard.
func connect(url string) (goredis.UniversalClient, error) {
	logging.Disable() // go-redis would print to standard error what is also returned as an error
	u, err := neturl.Parse(url)
	if err != nil { // the error quotes the URL with its password
		return nil, errors.New("the address is not a URL; special characters in a password must be percent-encoded")
	}
	switch q := u.Query(); {
	case q.Has("master_name"):
		o, err := goredis.ParseFailoverURL(url)
		if err != nil {
			return nil, err
		}
		o.Protocol, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = 3, -1, 1, true, true
		o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, dialTimeout), cmp.Or(o.ReadTimeout, replyTimeout)
		o.RouteByLatency, o.RouteRandomly, o.ReplicaOnly = false, false, false
		return goredis.NewFailoverClient(o), nil
	case q.Has("addr"):
		o, err := goredis.ParseClusterURL(url)
		if err != nil {
			return nil, err
		}
		o.Protocol, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = 3, -1, 1, true, true
		o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, dialTimeout), cmp.Or(o.ReadTimeout, replyTimeout)
		o.RouteByLatency, o.RouteRandomly, o.ReadOnly = false, false, false
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return goredis.NewClusterClient(o), nil
	default:
		o, err := goredis.ParseURL(url)
		if err != nil {
			return nil, err
		}
		o.Protocol, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = 3, -1, 1, true, true
		o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, dialTimeout), cmp.Or(o.ReadTimeout, replyTimeout)
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return goredis.NewClient(o), nil
	}
}

// check refuses a server that would lose data, and warns of what it can't see. Of a Cluster every master is asked.
func check(ctx context.Context, client goredis.UniversalClient, log *slog.Logger) error {
	switch c := client.(type) {
	case *goredis.ClusterClient:
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
			return checkNode(ctx, node, log.With("node", node.Options().Addr))
		})
		return translate(ctx, err)
	case *goredis.Client:
		return checkNode(ctx, c, log)
	default:
		return fmt.Errorf("unknown client %T", client)
	}
}

func checkNode(ctx context.Context, node *goredis.Client, log *slog.Logger) error {
	// HELLO needs no permission, unlike INFO.
	hello, err := node.Do(ctx, "hello").Result()
	if err != nil {
		return translate(ctx, err)
	}
	version, err := helloVersion(hello)
	if err != nil {
		return err
	}
	if major, err := strconv.Atoi(version[:strings.IndexByte(version+".", '.')]); err != nil || major < minVersion {
		return fmt.Errorf("the server has version %s, at least %d is needed", version, minVersion)
	}
	settings := map[string]string{}
	for _, name := range []string{"maxmemory-policy", "appendonly", "appendfsync"} {
		got, err := node.ConfigGet(ctx, name).Result()
		switch err := translate(ctx, err); {
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
			return err
		case err != nil:
			log.WarnContext(ctx, "redis refuses CONFIG GET; its persistence can't be checked: appendonly should be yes", "err", err)
			return checkPolicy(infoPolicy(ctx, node))
		}
		settings[name] = got[name]
	}
	switch {
	case settings["appendonly"] != "yes":
		log.WarnContext(ctx, "redis keeps no append-only file: what was written last is lost when the server ends", "appendonly", settings["appendonly"])
	case settings["appendfsync"] == "no":
		log.WarnContext(ctx, "redis leaves writing to the operating system: a loss of power can lose half a minute", "appendfsync", "no")
	}
	return checkPolicy(settings["maxmemory-policy"])
}

// checkPolicy lets an unknown policy pass, since a user with few rights can see neither CONFIG nor INFO.
func checkPolicy(policy string) error {
	if policy != "" && policy != "noeviction" {
		return fmt.Errorf("the server's maxmemory-policy is %s and would drop data; it must be noeviction", policy)
	}
	return nil
}

// infoPolicy finds the policy where CONFIG is refused, as hosted servers do; empty if INFO is refused too.
func infoPolicy(ctx context.Context, node *goredis.Client) string {
	info, err := node.Info(ctx, "memory").Result()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			return strings.TrimSpace(policy)
		}
	}
	return ""
}

func helloVersion(hello any) (string, error) {
	fields, ok := hello.(map[any]any)
	if !ok {
		return "", fmt.Errorf("the server answered HELLO with a %T", hello)
	}
	version, ok := fields["version"].(string)
	if !ok || version == "" {
		return "", errors.New("the server does not tell its version")
	}
	return version, nil
}
