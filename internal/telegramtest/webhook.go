package telegramtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

const (
	webhookTimeout   = 60 * time.Second
	firstRedelivery  = 100 * time.Millisecond
	longestRedeliver = 30 * time.Second
	maxSecret        = 256
)

// webhook is where updates go while it has an address.
type webhook struct {
	url     string
	secret  string
	errAt   time.Time
	errText string
	// version changes with each setting, so that a delivery that is under way does not count for the next one.
	version int
}

func (c *call) setWebhook() (any, error) {
	p := c.params
	if p.values["url"] == "" {
		return c.deleteWebhook()
	}
	if err := webhookURL(p.values["url"]); err != nil {
		return nil, err
	}
	secret := p.values["secret_token"]
	if len(secret) > maxSecret {
		return nil, badRequest("secret token is too long")
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]*$`).MatchString(secret) {
		return nil, badRequest("secret token contains unallowed characters")
	}
	if err := c.allow(); err != nil {
		return nil, err
	}
	if p.bool("drop_pending_updates") {
		c.s.updates.pending = nil
	}
	c.s.webhook = webhook{url: p.values["url"], secret: secret, version: c.s.webhook.version + 1}
	c.s.endPoll()
	return true, nil
}

// webhookURL accepts https, and plain http on a loopback address, which Telegram refuses but tests need.
func webhookURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return badRequest("bad webhook: invalid URL host specified")
	case u.Scheme == "http" && loopback(u.Host):
		return nil
	case u.Scheme != "https":
		return badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	switch u.Port() {
	case "", "443", "80", "88", "8443":
		return nil
	default:
		if loopback(u.Host) {
			return nil
		}
		return badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	}
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (c *call) deleteWebhook() (any, error) {
	if c.params.bool("drop_pending_updates") {
		c.s.updates.pending = nil
	}
	c.s.webhook = webhook{version: c.s.webhook.version + 1}
	return true, nil
}

func (c *call) getWebhookInfo() (any, error) {
	h, q := c.s.webhook, &c.s.updates
	q.forget(c.now)
	info := map[string]any{"url": h.url, "has_custom_certificate": false, "pending_update_count": len(q.pending)}
	if h.url != "" {
		info["max_connections"] = 40
	}
	if !h.errAt.IsZero() {
		info["last_error_date"], info["last_error_message"] = h.errAt.Unix(), h.errText
	}
	if len(q.allowed) > 0 {
		info["allowed_updates"] = q.allowed
	}
	return info, nil
}

// deliver posts updates to the webhook, one after the other, until ctx is done. One that is not answered with a
// status of 2xx is posted again after a pause that doubles.
func (s *Server) deliver(ctx context.Context) {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{
		Timeout: webhookTimeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	delay := firstRedelivery
	for {
		var hook webhook
		var next update
		if !s.await(ctx, -1, func() bool {
			s.updates.forget(s.clock())
			if s.webhook.url == "" || len(s.updates.pending) == 0 {
				return false
			}
			hook, next = s.webhook, s.updates.pending[0]
			return true
		}) {
			return
		}
		err := post(ctx, client, hook, next)
		if ctx.Err() != nil {
			return
		}
		if s.delivered(hook, next, err) {
			delay = firstRedelivery
			continue
		}
		s.await(ctx, delay, func() bool { return s.webhook.version != hook.version })
		delay = min(2*delay, longestRedeliver)
	}
}

// delivered notes how a delivery ended and reports whether the next update may follow.
func (s *Server) delivered(hook webhook, u update, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.webhook.version != hook.version {
		return true
	}
	if err != nil {
		s.webhook.errAt, s.webhook.errText = s.clock(), err.Error()
		return false
	}
	if p := s.updates.pending; len(p) > 0 && p[0].id == u.id {
		s.updates.pending = p[1:]
	}
	s.touch()
	return true
}

func post(ctx context.Context, client *http.Client, hook webhook, u update) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.url, bytes.NewReader(u.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if hook.secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hook.secret)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("Wrong response from the webhook: %s", resp.Status) //nolint:staticcheck // Telegram's words
	}
	return nil
}
