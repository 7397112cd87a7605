package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/config"
	"drawbridge/internal/desk"
	"drawbridge/internal/store"
)

// The control socket serves commands that need the open store, which with the embedded engine only one process has. It
// is a Unix socket that nobody but this user can open.

func controlSocket(c config.Config) string { return filepath.Join(c.DataDir, "control.sock") }

// maxSocketPath is what the kernels take: 104 bytes on macOS, 108 on Linux.
const maxSocketPath = 103

// serveControl serves the control socket; h is nil where the process has no host.
func serveControl(ctx context.Context, o Options, db store.DB, h *host) error {
	path := controlSocket(o.Config)
	if len(path) > maxSocketPath {
		o.Logger.Warn("no control socket: the data folder's path is too long", "path", path)
		<-ctx.Done()
		return nil
	}
	if o.Role != config.RoleServe { // several processes may share a data folder; the last one has the socket
		path = filepath.Join(o.Config.DataDir, "control-"+string(o.Role)+".sock")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("app: control socket: %w", err)
	}
	l, err := listenPrivate(ctx, path)
	if err != nil {
		return fmt.Errorf("app: control socket: %w", err)
	}
	svc := approvals.New(approvals.Config{DB: db, Logger: o.Logger})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /audit", func(w http.ResponseWriter, r *http.Request) { writeAudit(w, r, svc) })
	if h != nil {
		mux.Handle(desk.Path, desk.NewServer(ctx, desk.ServerConfig{
			Asker: h.approvals, Home: h.home, Within: o.Config.Timing.ApprovalDeadline, Logger: o.Logger,
			Chat: func(ctx context.Context) (string, error) { return bridge.DeskChat(ctx, db, o.Config.HostName) },
		}))
	}
	return serveHTTP(ctx, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, l)
}

// listenPrivate makes a socket with mode 0600. The folder is 0700, so nobody can connect in between either.
func listenPrivate(ctx context.Context, path string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func writeAudit(w http.ResponseWriter, r *http.Request, svc *approvals.Service) {
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	if err != nil {
		since = time.Time{}
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit <= 0 {
		limit = 1000
	}
	lines, err := svc.Audit(r.Context(), since, limit)
	if err != nil {
		http.Error(w, "the store could not be read", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc := json.NewEncoder(w)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return // whoever asked has gone
		}
	}
}

// Audit writes the audit log since a time as lines of JSON. It asks the running process, or opens the store itself if
// none runs (or if the store is Redis).
func Audit(ctx context.Context, c config.Config, since time.Time, limit int, w io.Writer) error {
	for _, name := range []string{"control.sock", "control-gateway.sock", "control-host.sock"} {
		if err := auditOver(ctx, filepath.Join(c.DataDir, name), since, limit, w); err == nil {
			return nil
		} else if !errors.Is(err, errNobody) {
			return err
		}
	}
	db, err := openStore(ctx, Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // read only
	lines, err := approvals.New(approvals.Config{DB: db}).Audit(ctx, since, limit)
	if err != nil {
		return fmt.Errorf("app: audit: %w", err)
	}
	enc := json.NewEncoder(w)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("app: audit: %w", err)
		}
	}
	return nil
}

// errNobody says that no process listens on a control socket.
var errNobody = errors.New("nobody listens")

func auditOver(ctx context.Context, socket string, since time.Time, limit int, w io.Writer) error {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	q := url.Values{"since": {since.Format(time.RFC3339)}, "limit": {strconv.Itoa(limit)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://control/audit?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return errNobody
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("app: audit: the running process answered %s", resp.Status)
	}
	_, err = io.Copy(w, resp.Body)
	return err
}
