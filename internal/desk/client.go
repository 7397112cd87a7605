package desk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// ClientConfig is what a Client is made of.
type ClientConfig struct {
	Agent   Agent
	Sockets []string // of the host, in the order in which they are tried
	// Within is how long the terminal waits for an answer; zero where it asks meanwhile.
	Within time.Duration
	Getenv func(string) string
}

// Client is a hook: it lives as long as a question of an agent.
type Client struct {
	c ClientConfig
	// look is how often it is looked whether the terminal has answered.
	look time.Duration
}

// NewClient returns a client that does nothing until Run.
func NewClient(c ClientConfig) *Client { return &Client{c: c, look: 200 * time.Millisecond} }

// Run hands a request to the host and writes its answer. It returns without having written anything when there is none
// for whatever reason; the error says which, for nobody but a test: an agent must not hear of it.
func (c *Client) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	raw, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxRequest:
		return errors.New("desk: the request is too large")
	case !json.Valid(raw):
		return errors.New("desk: the request is no JSON")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.c.Within > 0 {
		// The host keeps the time, so that the card says why it was closed. This is for a host that is frozen.
		defer time.AfterFunc(c.c.Within+connectTime, func() { cancel(errNobody) }).Stop()
	}
	t := c.terminal(raw)
	watched := make(chan struct{})
	go func() { defer close(watched); t.watch(ctx, c.look, func() { cancel(errThere) }) }()
	defer func() { cancel(nil); <-watched }()

	body, err := json.Marshal(wireAsk{V: wireVersion, Agent: c.c.Agent, Title: t.name(), Within: int(c.c.Within / time.Second), Request: raw})
	if err != nil {
		return err
	}
	err = errNobody
	for _, socket := range c.c.Sockets {
		var answer []byte
		if answer, err = post(ctx, socket, body); err == nil {
			_, err = out.Write(answer)
			return err
		}
		if !errors.Is(err, errNobody) {
			break
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

var (
	// errNobody says that no host listens.
	errNobody = errors.New("desk: nobody listens")
	// errSilence says that the host has no answer.
	errSilence = errors.New("desk: no answer")
	// errThere says that the terminal was answered.
	errThere = errors.New("desk: it was answered in the terminal")
)

func post(ctx context.Context, socket string, body []byte) ([]byte, error) {
	client := overUnix(socket)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, wireURL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, errNobody
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if resp.StatusCode != http.StatusOK {
		return nil, errSilence
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 2*maxRequest))
	if err != nil || !json.Valid(answer) {
		return nil, errSilence // cut off in the middle
	}
	return answer, nil
}

// Stand asks the host that listens on one of the sockets how its desk stands. It reports false if none does.
func Stand(ctx context.Context, sockets []string) (Standing, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*connectTime)
	defer cancel()
	for _, socket := range sockets {
		if s, err := stand(ctx, socket); err == nil {
			return s, true
		}
	}
	return Standing{}, false
}

func stand(ctx context.Context, socket string) (s Standing, err error) {
	client := overUnix(socket)
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, wireURL, http.NoBody)
	if err != nil {
		return s, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if resp.StatusCode != http.StatusOK {
		return s, errSilence
	}
	err = json.NewDecoder(resp.Body).Decode(&s)
	return s, err
}
