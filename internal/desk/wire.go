package desk

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// Path is where a Server stands on the control socket.
const Path = "/desk"

// wireVersion is that of what is sent over the control socket.
const wireVersion = 1

// wireAsk is what a hook sends to the host. The answer is what the hook prints, or 204 if it prints nothing.
type wireAsk struct {
	V     int    `json:"v"`
	Agent Agent  `json:"agent"`
	Title string `json:"title,omitempty"` // of the terminal's session
	// Within is how many seconds the terminal waits before it asks by itself; 0 where it asks meanwhile.
	Within  int             `json:"within,omitempty"`
	Request json.RawMessage `json:"request"` // as the agent gave it
}

// Standing is what a host says of its desk.
type Standing struct {
	Chat bool `json:"chat"` // a chat was chosen
}

// connectTime is how long a hook waits for a socket; a host that lives takes a connection at once.
const connectTime = 2 * time.Second

// overUnix is a client that speaks to one socket.
func overUnix(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := net.Dialer{Timeout: connectTime}
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}

const wireURL = "http://control" + Path
