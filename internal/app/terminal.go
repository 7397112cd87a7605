package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"drawbridge/internal/telegramtest"
)

// terminal is the demo's chat in a terminal: lines are sent, numbers tap buttons. It is one more client of the simulated
// Telegram's control interface and sees nothing that a phone would not.
type terminal struct {
	api     string // address of the simulated Telegram
	project string
	in      io.Reader
	out     io.Writer
	colour  bool
	piped   bool // what is typed comes from a pipe or a file: nobody looks at the chat before the next line

	mu      sync.Mutex        // guards what follows, and out
	shown   map[int64]string  // what was printed of each message, to tell what an edit changed
	numbers map[int]simButton // what a number taps
	asked   map[int64]bool    // had buttons when it was printed last
	next    int
	status  bool // the last line is a status that the next output replaces
}

// simButton is a button that a number stands for.
type simButton struct {
	message  int64
	row, col int
	label    string
}

type simMessage struct {
	ID       int64       `json:"message_id"`
	From     int64       `json:"from"`
	Text     string      `json:"text"`
	Entities []simEntity `json:"entities"`
	Buttons  [][]struct {
		Text     string `json:"text"`
		Disabled bool   `json:"disabled"`
	} `json:"buttons"`
	Document *struct {
		Name   string `json:"name"`
		Size   int    `json:"size"`
		FileID string `json:"file_id"`
	} `json:"document"`
	Deleted bool `json:"deleted"`
}

type simEntity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

const welcome = `Drawbridge demo. You are Ada, and this is your private chat with the bot.
The agent works in %s; its model is scripted, everything else is real.

  Write to the bot, for example:  Fix the failing test
  Also:  Add a function · Run the tests · Explain main.go · /help · /mode
  A number taps the button with that number. A line that ends in \ goes on on the next.  quit  leaves.

`

// runTerminal lets a person chat until they leave, the input ends, or ctx does.
func runTerminal(ctx context.Context, t *terminal) error {
	t.shown, t.asked, t.numbers, t.next = map[int64]string{}, map[int64]bool{}, map[int]simButton{}, 1
	t.colour = isTerminal(t.out)
	t.piped = !isTerminal(t.in)
	fmt.Fprintf(t.out, welcome, t.project) //nolint:errcheck // a terminal that is gone ends the input too
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { t.watch(ctx) })
	defer watching.Wait()
	defer stop()

	// Reading a terminal cannot be interrupted, so it is the one goroutine that is not waited for: the process ends with it.
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(t.in)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	begun := "" // of a message of several lines
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-lines:
			if !ok {
				t.rest(ctx, func() bool { return false })
				return nil
			}
			if first, more := strings.CutSuffix(line, `\`); more {
				begun += first + "\n"
				continue
			}
			line, begun = begun+line, ""
			if line == "quit" || line == "exit" {
				return nil
			}
			if err := t.do(ctx, line); err != nil && ctx.Err() == nil {
				t.print(err.Error())
			}
		}
	}
}

// do sends a line, or taps what its number stands for.
func (t *terminal) do(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	if n, err := strconv.Atoi(line); err == nil {
		t.rest(ctx, func() bool { _, ok := t.button(n); return ok })
		b, ok := t.button(n)
		if !ok {
			return errors.New("there is no button with that number")
		}
		var answer struct {
			Answered bool   `json:"answered"`
			Text     string `json:"text"`
		}
		err := t.post(ctx, "/sim/taps", map[string]any{
			"chat": telegramtest.AdaID, "from": telegramtest.AdaID, "message_id": b.message, "button": []int{b.row, b.col},
		}, &answer)
		if err != nil {
			return errors.New("this button is gone")
		}
		if answer.Text != "" {
			t.print(t.style("2", "["+answer.Text+"]"))
		}
		return nil
	}
	return t.post(ctx, "/sim/messages", map[string]any{"chat": telegramtest.AdaID, "from": telegramtest.AdaID, "text": line}, nil)
}

func (t *terminal) button(n int) (simButton, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.numbers[n]
	return b, ok
}

// watch prints what changes in the chat.
func (t *terminal) watch(ctx context.Context) {
	after := int64(0)
	for ctx.Err() == nil {
		var news struct {
			Seq    int64 `json:"seq"`
			Events []struct {
				Chat int64 `json:"chat"`
			} `json:"events"`
		}
		if err := t.get(ctx, fmt.Sprintf("/sim/wait?after=%d&timeout=20", after), &news); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
			continue
		}
		after = news.Seq
		for _, e := range news.Events {
			if e.Chat == telegramtest.AdaID {
				t.look(ctx)
				break
			}
		}
	}
}

func (t *terminal) look(ctx context.Context) {
	var messages []simMessage
	if err := t.get(ctx, fmt.Sprintf("/sim/chats/%d/messages", telegramtest.AdaID), &messages); err != nil {
		return
	}
	for _, m := range messages {
		if m.From != telegramtest.AdaID && !m.Deleted {
			t.show(ctx, m)
		}
	}
}

// show prints a message that is new or has changed. What streams has one line that is written over; the whole of it comes
// with the answer.
func (t *terminal) show(ctx context.Context, m simMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	streaming := len(m.Buttons) == 1 && len(m.Buttons[0]) == 1 && m.Buttons[0][0].Text == "Stop"
	key := m.Text + fmt.Sprint(m.Buttons)
	if t.shown[m.ID] == key {
		return
	}
	first := t.shown[m.ID] == ""
	t.shown[m.ID] = key
	if closed := len(m.Buttons) == 0 && t.asked[m.ID]; closed {
		// A card that was decided: what it was about stands above, what came of it is its first line.
		outcome, _, _ := strings.Cut(m.Text, "\n")
		t.write(t.style("2", "→ "+outcome)+"\n", false)
		return
	}
	if streaming {
		if t.colour {
			line, _, _ := strings.Cut(strings.ReplaceAll(m.Text, "\n", " · "), "\r")
			t.write("\r\x1b[K"+t.style("2", clip(line, 100)), true)
		} else if first {
			t.write(m.Text+"\n", false)
		}
		return
	}
	var out strings.Builder
	out.WriteString("\n" + t.styled(m) + "\n")
	if m.Document != nil && first {
		out.WriteString(t.style("2", fmt.Sprintf("[file %s, %d bytes]", m.Document.Name, m.Document.Size)) + "\n")
		out.WriteString(t.file(ctx, m.Document.FileID))
	}
	for r, row := range m.Buttons {
		for c, b := range row {
			if b.Disabled {
				continue
			}
			t.asked[m.ID] = true
			t.numbers[t.next] = simButton{message: m.ID, row: r, col: c, label: b.Text}
			out.WriteString(t.style("1;36", fmt.Sprintf("  %d  %s", t.next, b.Text)) + "\n")
			t.next++
		}
	}
	t.write(out.String(), false)
}

// file is the beginning of a file that a message carries.
func (t *terminal) file(ctx context.Context, id string) string {
	b, err := t.fetch(ctx, "/sim/files/"+id)
	if err != nil {
		return ""
	}
	return clip(string(b), 4000) + "\n"
}

func (t *terminal) print(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(line+"\n", false)
}

// write prints over a status line. The caller holds mu.
func (t *terminal) write(s string, status bool) {
	if t.status && !status {
		s = "\r\x1b[K" + s
	}
	t.status = status
	fmt.Fprint(t.out, s) //nolint:errcheck // a terminal that is gone ends the input too
}

func (t *terminal) style(code, s string) string {
	if !t.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// styled draws a message's entities with a terminal's means.
func (t *terminal) styled(m simMessage) string {
	if !t.colour {
		return m.Text
	}
	codes := map[string]string{
		"bold": "1", "italic": "3", "underline": "4", "strikethrough": "9", "code": "33", "pre": "33", "text_link": "4",
		"blockquote": "2", "expandable_blockquote": "2",
	}
	units := utf16.Encode([]rune(m.Text))
	var out strings.Builder
	for i := 0; i < len(units); {
		end := len(units)
		var on []string
		for _, e := range m.Entities {
			switch {
			case e.Offset <= i && i < e.Offset+e.Length:
				if c := codes[e.Type]; c != "" {
					on = append(on, c)
				}
				end = min(end, e.Offset+e.Length)
			case e.Offset > i:
				end = min(end, e.Offset)
			}
		}
		piece := string(utf16.Decode(units[i:end]))
		if len(on) > 0 {
			piece = t.style(strings.Join(on, ";"), piece)
		}
		out.WriteString(piece)
		i = end
	}
	return out.String()
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

func (t *terminal) get(ctx context.Context, path string, v any) error {
	b, err := t.fetch(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

func (t *terminal) fetch(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.api+path, nil)
	if err != nil {
		return nil, err
	}
	return t.roundTrip(req)
}

func (t *terminal) post(ctx context.Context, path string, body, v any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.api+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := t.roundTrip(req)
	if err != nil || v == nil {
		return err
	}
	return json.Unmarshal(answer, v)
}

func (t *terminal) roundTrip(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the simulated Telegram says %s: %s", resp.Status, bytes.TrimSpace(b))
	}
	return b, nil
}
