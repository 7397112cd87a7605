package claude_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// fakeVariable names the transcript that the test binary plays in place of the program.
const fakeVariable = "FAKE_CLAUDE"

// The files that a fake writes beside its transcript.
const (
	argumentsFile = ".arguments" // a line for each process: its arguments, as JSON
	receivedFile  = ".received"  // a line for each frame that it was sent
)

// line is one line of a transcript: what the program said ("in") or was told ("out"), as jsonl.Recorder writes it; or
// the end of the process, with its last words.
type line struct {
	Dir   string          `json:"dir"`
	Frame json.RawMessage `json:"frame,omitempty"`
	Raw   string          `json:"raw,omitempty"`
	Size  int             `json:"size,omitempty"` // a frame of so many bytes; so many answers
	Exit  *int            `json:"exit,omitempty"`
	Says  string          `json:"says,omitempty"`
}

// fake is the program as its transcript has it. It says what was said, once it was told what was told; ids that the host
// chooses, of requests, prompts and sessions, may be others.
type fake struct {
	in       *bufio.Reader
	out      io.Writer
	received io.Writer
	ids      []string // pairs of ids: recorded, real
	writes   map[string]change
}

// change is what a call does to a file, by the request of its hook.
type change struct {
	Command string  `json:"command"`
	Path    string  `json:"file_path"`
	Content *string `json:"content"`
	Old     string  `json:"old_string"`
	New     string  `json:"new_string"`
}

// do changes the file, as the program does once it may.
func (c change) do() error {
	if word, rest, _ := strings.Cut(c.Command, " "); word == "touch" {
		name, _, _ := strings.Cut(rest, ";")
		return os.WriteFile(name, nil, 0o600)
	}
	if c.Path == "" {
		return nil
	}
	if c.Content == nil && c.Old == "" {
		return nil // it reads
	}
	if c.Content == nil {
		b, err := os.ReadFile(c.Path)
		if err != nil {
			return err
		}
		text := strings.Replace(string(b), c.Old, c.New, 1)
		c.Content = &text
	}
	return os.WriteFile(c.Path, []byte(*c.Content), 0o600)
}

// play is the fake's main. It returns the exit status.
func play(transcript string, args []string) int {
	file, err := os.ReadFile(transcript)
	if err != nil {
		return broken(err)
	}
	if len(args) > 0 && args[0] == "--version" {
		fmt.Println(cutLine(string(file), "version"))
		return 0
	}
	if len(args) > 0 && args[0] == "auth" {
		fmt.Println(cutLine(string(file), "auth"))
		return 0
	}
	b, err := json.Marshal(args)
	if err != nil {
		return broken(err)
	}
	if err := add(transcript+argumentsFile, append(b, '\n')); err != nil {
		return broken(err)
	}
	received, err := os.OpenFile(transcript+receivedFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return broken(err)
	}
	folder, err := os.Getwd()
	if err != nil {
		return broken(err)
	}
	f := &fake{in: bufio.NewReader(os.Stdin), out: os.Stdout, received: received, writes: map[string]change{}, ids: []string{
		recordedSession, sessionOf(args), "/FOLDER", folder, "/DATA", filepath.Dir(os.Getenv("CLAUDE_CONFIG_DIR")),
	}}
	code, err := f.play(part(string(file), transcript))
	if err != nil {
		return broken(err)
	}
	return code
}

func broken(err error) int {
	fmt.Fprintln(os.Stderr, "fake:", err)
	return 99
}

// recordedSession stands in transcripts for the session's id.
const recordedSession = "00000000-0000-4000-8000-000000000001"

func sessionOf(args []string) string {
	for i, a := range args {
		if (a == "--session-id" || a == "--resume") && i+1 < len(args) {
			return args[i+1]
		}
	}
	return recordedSession
}

// cutLine is the text of a line {"dir":"version","raw":"…"}, which is not part of the conversation.
func cutLine(file, dir string) string {
	for text := range strings.Lines(file) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil && l.Dir == dir {
			return l.Raw
		}
	}
	return ""
}

// part is the transcript of this process: a line {"dir":"process"} begins that of the next one.
func part(file, transcript string) string {
	parts := strings.Split(file, `{"dir":"process"}`+"\n")
	n := 0
	if b, err := os.ReadFile(transcript + argumentsFile); err == nil {
		n = strings.Count(string(b), "\n") - 1
	}
	return parts[min(max(n, 0), len(parts)-1)]
}

func add(file string, b []byte) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

func (f *fake) play(transcript string) (int, error) {
	for text := range strings.Lines(transcript) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return 0, fmt.Errorf("transcript: %w", err)
		}
		switch l.Dir {
		case "in":
			frame := l.Raw
			switch {
			case l.Size > 0:
				frame = `{"type":"huge","text":"` + strings.Repeat("x", l.Size) + `"}`
			case l.Frame != nil:
				frame = strings.NewReplacer(f.ids...).Replace(string(l.Frame))
			}
			f.remember(frame)
			if _, err := io.WriteString(f.out, frame+"\n"); err != nil {
				return 0, err
			}
		case "out":
			if err := f.expect(json.RawMessage(strings.NewReplacer(f.ids...).Replace(string(l.Frame)))); err != nil {
				return 0, err
			}
		case "answers": // so many, to whatever was asked
			for range l.Size {
				if _, err := f.read(); err != nil {
					return 0, err
				}
			}
		case "exit":
			fmt.Fprintln(os.Stderr, l.Says)
			return *l.Exit, nil
		}
	}
	for { // as the program does: until its input is closed
		if _, err := f.read(); err != nil {
			return 0, nil
		}
	}
}

// remember keeps what a call would write, until it may.
func (f *fake) remember(frame string) {
	var h struct {
		head
		Request struct {
			Subtype string `json:"subtype"`
			Input   struct {
				Input change `json:"tool_input"`
			} `json:"input"`
		} `json:"request"`
	}
	if json.Unmarshal([]byte(frame), &h) == nil && h.Request.Subtype == "hook_callback" {
		f.writes[h.RequestID] = h.Request.Input.Input
	}
}

func (f *fake) read() (string, error) {
	text, err := f.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(f.received, text)
	return text, err
}

// head is what tells frames apart.
type head struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	UUID      string `json:"uuid"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
	} `json:"response"`
}

// expect waits for a frame of the recorded kind; answers have to be to the same request and the same in words.
func (f *fake) expect(recorded json.RawMessage) error {
	var want head
	if err := json.Unmarshal(recorded, &want); err != nil {
		return err
	}
	text, err := f.read()
	if err != nil {
		return fmt.Errorf("waiting for %s %s: %w", want.Type, want.Request.Subtype, err)
	}
	var got head
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return err
	}
	if got.Type != want.Type || got.Request.Subtype != want.Request.Subtype {
		return fmt.Errorf("got %s %s, want %s %s", got.Type, got.Request.Subtype, want.Type, want.Request.Subtype)
	}
	switch want.Type {
	case "control_request":
		f.ids = append(f.ids, want.RequestID, got.RequestID)
	case "user":
		f.ids = append(f.ids, want.UUID, got.UUID)
	case "control_response":
		if got.Response.RequestID != want.Response.RequestID || string(got.Response.Response) != string(want.Response.Response) {
			return fmt.Errorf("got the answer %s, want %s", text, recorded)
		}
		if c, ok := f.writes[got.Response.RequestID]; ok && strings.Contains(text, `"permissionDecision":"allow"`) {
			return c.do()
		}
	}
	return nil
}
