package config

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"drawbridge/policy"
)

// key is one thing that can be set by one text or one list of texts, in the environment and in the file alike.
type key struct {
	// name is the key in the file, env the variable.
	name, env string
	// def is the default as somebody would write it; empty means that it is not set.
	def    string
	secret bool
	// list keys are an array in the file and separated by commas in the environment.
	list bool
	// allowed says in a mistake what may stand there.
	allowed string
	// set takes the value over, or reports that it is not allowed. Lists come as their members.
	set func(c *Config, texts []string) bool
	// show is what is printed instead of the text, where the text is not fit for it.
	show func(text string) string
}

var (
	hostName      = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	botToken      = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{1,100}$`)
	webhookSecret = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
	projectName   = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,31}$`)
	runtimeName   = regexp.MustCompile(`^[a-z]{1,16}(:[a-z0-9._-]{1,32})?$`)
)

// maxID bounds Telegram's ids: they have at most 52 significant bits (Bot API, type User).
const maxID = 1<<52 - 1

// keys is the one list of all keys but those of projects and runtimes, in the order in which they are shown.
func (l *loader) keys() []key {
	text := func(name, env, def, allowed string, set func(c *Config, text string) bool) key {
		return key{name: name, env: env, def: def, allowed: allowed, set: func(c *Config, texts []string) bool { return set(c, texts[0]) }}
	}
	secret := func(k key) key {
		k.secret = true
		return k
	}
	ids := func(name, env string, field func(c *Config) *[]int64) key {
		return key{name: name, env: env, list: true, allowed: "ids of Telegram users, such as 123456789", set: func(c *Config, texts []string) bool {
			*field(c) = nil
			for _, t := range texts {
				id, err := strconv.ParseInt(t, 10, 64)
				if err != nil || id <= 0 || id > maxID {
					return false
				}
				*field(c) = append(*field(c), id)
			}
			return true
		}}
	}
	// The upper ends of the beats and sweeps are what the promise needs that a dead host's cards are closed within ten
	// seconds; the lower ends keep a store from being asked all the time.
	period := func(name, def string, least, most time.Duration, field func(t *Timing) *time.Duration) key {
		allowed := fmt.Sprintf("a duration from %s to %s, such as %s", short(least), short(most), def)
		return text(name, "DRAWBRIDGE_"+strings.ToUpper(name), def, allowed, func(c *Config, text string) bool {
			d, err := time.ParseDuration(text)
			*field(&c.Timing) = d
			return err == nil && d >= least && d <= most
		})
	}
	redis := secret(text("redis_url", "REDIS_URL", "", "redis://, rediss:// or unix:// and an address, such as redis://127.0.0.1:6379/0",
		func(c *Config, text string) bool {
			u, err := url.Parse(text)
			c.RedisURL = NewSecret(text)
			return err == nil && ((u.Scheme == "redis" || u.Scheme == "rediss") && u.Host != "" || u.Scheme == "unix" && u.Path != "")
		}))
	redis.show = showRedis
	dataDir := text("data_dir", "DRAWBRIDGE_DATA_DIR", l.defaultDataDir(), pathAllowed, func(c *Config, text string) (ok bool) {
		c.DataDir, ok = l.path(text)
		return ok
	})
	dataDir.show = func(text string) string {
		path, _ := l.path(text)
		return path
	}

	return []key{
		text("host_name", "DRAWBRIDGE_HOST_NAME", l.defaultHost(), "1 to 32 of a-z, 0-9 and -", func(c *Config, text string) bool {
			c.HostName = text
			return hostName.MatchString(text)
		}),
		dataDir,
		redis,
		text("namespace", "DRAWBRIDGE_NAMESPACE", "drawbridge", "1 to 32 of a-z, 0-9 and -", func(c *Config, text string) bool {
			c.Namespace = text
			return hostName.MatchString(text)
		}),
		secret(text("token", "DRAWBRIDGE_TOKEN", "", "the bot's token as @BotFather gives it: digits, a colon, and letters, digits, - and _", func(c *Config, text string) bool {
			c.Telegram.Token = NewSecret(text)
			return botToken.MatchString(text)
		})),
		text("bot_api_url", "DRAWBRIDGE_BOT_API_URL", "https://api.telegram.org", webAllowed, func(c *Config, text string) bool {
			var ok bool
			c.Telegram.APIURL, ok = webURL(text)
			return ok
		}),
		text("webhook_url", "DRAWBRIDGE_WEBHOOK_URL", "", "https:// (http:// on this machine) and an address without user, query and fragment", func(c *Config, text string) bool {
			u, ok := webURL(text)
			webhook(c).URL = u
			return ok && (strings.HasPrefix(u, "https://") || loopback(u))
		}),
		text("webhook_listen", "DRAWBRIDGE_WEBHOOK_LISTEN", "", "an address to listen on, such as 127.0.0.1:8443 or :8443", func(c *Config, text string) bool {
			webhook(c).Listen = text
			return listenAddress(text)
		}),
		secret(text("webhook_secret", "DRAWBRIDGE_WEBHOOK_SECRET", "", "1 to 256 of A-Z, a-z, 0-9, _ and -", func(c *Config, text string) bool {
			webhook(c).Secret = NewSecret(text)
			return webhookSecret.MatchString(text)
		})),
		ids("owners", "DRAWBRIDGE_OWNERS", func(c *Config) *[]int64 { return &c.People.Owners }),
		ids("operators", "DRAWBRIDGE_OPERATORS", func(c *Config) *[]int64 { return &c.People.Operators }),
		ids("viewers", "DRAWBRIDGE_VIEWERS", func(c *Config) *[]int64 { return &c.People.Viewers }),
		text("default_mode", "DRAWBRIDGE_DEFAULT_MODE", string(policy.ApprovalRequired), modesAllowed(), func(c *Config, text string) bool {
			m, err := policy.ParseMode(text)
			c.DefaultMode = m
			return err == nil
		}),
		text("default_runtime", "DRAWBRIDGE_DEFAULT_RUNTIME", "", "the name of a runtime that is configured", func(c *Config, text string) bool {
			c.DefaultRuntime = text
			return runtimeName.MatchString(text)
		}),
		period("approval_deadline", "10m", time.Second, 24*time.Hour, func(t *Timing) *time.Duration { return &t.ApprovalDeadline }),
		period("session_idle", "15m", time.Second, 24*time.Hour, func(t *Timing) *time.Duration { return &t.SessionIdle }),
		period("beat", "2s", 100*time.Millisecond, 2*time.Second, func(t *Timing) *time.Duration { return &t.Beat }),
		period("dead_after", "6s", 300*time.Millisecond, 6*time.Second, func(t *Timing) *time.Duration { return &t.DeadAfter }),
		period("sweep", "2s", 100*time.Millisecond, 2*time.Second, func(t *Timing) *time.Duration { return &t.Sweep }),
		period("lease", "4s", 300*time.Millisecond, 30*time.Second, func(t *Timing) *time.Duration { return &t.Lease }),
		period("renew", "1s", 100*time.Millisecond, 10*time.Second, func(t *Timing) *time.Duration { return &t.Renew }),
		period("reread", "2s", 100*time.Millisecond, 2*time.Second, func(t *Timing) *time.Duration { return &t.Reread }),
		text("pace", "DRAWBRIDGE_PACE", "1", "a number from 1 to 100: how many times faster all durations pass, for tests", func(c *Config, text string) bool {
			n, err := strconv.ParseFloat(text, 64)
			c.Timing.Pace = n
			return err == nil && n >= 1 && n <= 100
		}),
		text("log_level", "DRAWBRIDGE_LOG_LEVEL", "info", "debug, info, warn or error", func(c *Config, text string) bool {
			levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
			level, ok := levels[text]
			c.Log.Level = level
			return ok
		}),
		text("log_format", "DRAWBRIDGE_LOG_FORMAT", "text", "text or json", func(c *Config, text string) bool {
			c.Log.Format = text
			return text == "text" || text == "json"
		}),
	}
}

// loopback reports whether a server's address leads to this machine. A Bot API server that runs here takes webhooks by
// plain http (core.telegram.org/bots/api#using-a-local-bot-api-server); Telegram's own refuses them anyway.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

const webAllowed = "http:// or https:// and an address without user, query and fragment"

// webURL reports whether text is the address of a server, and returns it without a slash at its end. A password has
// keys of its own, which are masked; here it would be printed.
func webURL(text string) (string, bool) {
	u, err := url.Parse(text)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Hostname() != "" &&
		!strings.ContainsAny(text, "?#@")
	return strings.TrimRight(text, "/"), ok
}

func webhook(c *Config) *Webhook {
	if c.Telegram.Webhook == nil {
		c.Telegram.Webhook = &Webhook{}
	}
	return c.Telegram.Webhook
}

func modesAllowed() string {
	var names []string
	for _, m := range policy.Modes() {
		names = append(names, string(m))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// path returns the absolute path that text means. What is relative to some folder that the reader does not see is not
// allowed; ~ is the home of the one who starts the program.
func (l *loader) path(text string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || rest[0] == '/') && l.env["HOME"] != "" {
		text = filepath.Join(l.env["HOME"], rest)
	}
	return filepath.Clean(text), filepath.IsAbs(text) && !strings.ContainsRune(text, 0)
}

// defaultHost is the machine's name in the letters that a host's name may have.
func (l *loader) defaultHost() string {
	name, _, _ := strings.Cut(strings.ToLower(l.hostname()), ".")
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	if len(name) > 32 {
		name = name[:32]
	}
	if strings.Trim(name, "-") == "" {
		return "host"
	}
	return name
}

// defaultDataDir is the drawbridge folder of the XDG base directory specification's state folder; empty without a home.
func (l *loader) defaultDataDir() string {
	if dir := l.env["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "drawbridge")
	}
	if home := l.env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "drawbridge")
	}
	return ""
}

// showRedis keeps what tells one server from another, and drops the user, the password and the options.
func showRedis(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return Mask
	}
	at := ""
	if u.User != nil {
		at = Mask + "@"
	}
	query := ""
	if u.RawQuery != "" {
		query = "?" + Mask
	}
	return u.Scheme + "://" + at + u.Host + u.Path + query
}

// short prints a duration as people write it: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
