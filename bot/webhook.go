package bot

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"time"
)

const (
	// maxUpdate bounds the body of a webhook request. An update is some tens of KB.
	maxUpdate = 2 << 20
	// acceptTimeout bounds the commit of a webhook's update; Telegram waits for about a minute and then sends it again.
	acceptTimeout = 20 * time.Second

	//nolint:gosec // the name of a header, not a secret
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
)

var secretForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// Webhook takes updates that Telegram posts. Every gateway may serve it, whoever holds the lease: it only fills the inbox.
// It answers 200 when the update is committed and not before, so that Telegram repeats what was not.
type Webhook struct {
	inbox  *Inbox
	secret [sha256.Size]byte
	token  string
	log    *slog.Logger
}

// NewWebhook returns the handler. Telegram proves itself by secret, 1 to 256 of A-Z, a-z, 0-9, _ and -; there is no
// webhook without one.
func NewWebhook(inbox *Inbox, secret string, log *slog.Logger) (*Webhook, error) {
	if !secretForm.MatchString(secret) {
		return nil, errors.New("bot: webhook secret: want 1 to 256 of A-Z, a-z, 0-9, _ and -")
	}
	return &Webhook{inbox: inbox, secret: sha256.Sum256([]byte(secret)), token: secret, log: log}, nil
}

// Register tells Telegram to post updates to url with the secret.
func (h *Webhook) Register(ctx context.Context, api *API, url string) error {
	if err := api.SetWebhook(ctx, url, h.token); err != nil {
		return fmt.Errorf("bot: register webhook: %w", err)
	}
	return nil
}

// ServeHTTP takes one update.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Hashing first makes the comparison blind to the length as well.
	given := sha256.Sum256([]byte(r.Header.Get(secretHeader)))
	if subtle.ConstantTimeCompare(given[:], h.secret[:]) != 1 {
		http.Error(w, "wrong secret", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "application/json only", http.StatusUnsupportedMediaType)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		code := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "body can't be read", code)
		return
	}
	if !json.Valid(raw) {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	// The commit is not cut short when Telegram hangs up: it would only come again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), acceptTimeout)
	defer cancel()
	if err := h.inbox.Accept(ctx, nil, raw); err != nil {
		h.log.Warn("webhook update not accepted, Telegram will repeat it", "err", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}
