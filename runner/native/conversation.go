package native

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"drawbridge/internal/chatapi"
	"drawbridge/runner"
)

// fileVersion is the version of a conversation's file: JSON lines, the first a header, each other one an entry. Lines
// are only ever added, each with one write, so that a kill leaves at most a last line that is not whole.
const fileVersion = 1

type header struct {
	V      int    `json:"v"`
	Folder string `json:"folder"`
}

// entry is one line. Exactly one field is set.
type entry struct {
	Message *chatapi.Message `json:"message,omitempty"`
	// Elide says that from here on the results of tools before this message's index are left out.
	Elide int `json:"elide,omitempty"`
	// Drop says that from here on the messages before this index are left out; it is where a prompt stands.
	Drop int `json:"drop,omitempty"`
	// Files are paths that a person attached; they may be read although they lie outside the workspace.
	Files []string `json:"files,omitempty"`
}

// conversation is what was said, in memory and on disk. It is used by one goroutine at a time.
type conversation struct {
	token    string
	file     *os.File
	size     int64 // of the file, all of it whole lines
	messages []chatapi.Message
	elided   int
	dropped  int
	attached map[string]bool
}

// begin makes the file of a fresh conversation.
func begin(dir, folder string) (*conversation, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("begin a conversation: %w", err)
	}
	c := &conversation{token: rand.Text(), attached: make(map[string]bool)}
	var err error
	c.file, err = os.OpenFile(filepath.Join(dir, c.token+".jsonl"), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("begin a conversation: %w", err)
	}
	if err := errors.Join(lock(c.file), c.write(header{V: fileVersion, Folder: folder})); err != nil {
		_ = c.done()
		return nil, fmt.Errorf("begin a conversation: %w", err)
	}
	return c, nil
}

// ours is what rand.Text makes; a token of another form must not become a path.
var ours = regexp.MustCompile(`^[A-Z2-7]{26,64}$`)

// resume reads a conversation and repairs what a kill may have left: a line that is not whole is cut off, and a tool call
// without a result gets one that says that it is not run again. Whatever is no token of ours is runner.ErrNoSession.
func resume(dir, token string) (*conversation, error) {
	if !ours.MatchString(token) {
		return nil, fmt.Errorf("resume: %w", runner.ErrNoSession)
	}
	f, err := os.OpenFile(filepath.Join(dir, token+".jsonl"), os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("resume: %w", runner.ErrNoSession)
	} else if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	c := &conversation{token: token, file: f, attached: make(map[string]bool)}
	for _, step := range []func() error{func() error { return lock(f) }, c.read, c.repair} {
		if err := step(); err != nil { // without the lock, nothing is read and nothing repaired
			_ = c.done()
			return nil, fmt.Errorf("resume: %w", err)
		}
	}
	return c, nil
}

// lock keeps a second process from going on with the same conversation. The lock ends with the file or the process.
// Whoever lists sessions holds it for a moment, so a few tries are made.
func lock(f *os.File) error {
	var err error
	for range 5 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("the session is open elsewhere: %w", err)
}

// done lets go of the file. The lock is taken off by hand: a program that is being started at this moment holds a copy of
// the file, and the lock with it, until it has been loaded.
func (c *conversation) done() error {
	return errors.Join(unix.Flock(int(c.file.Fd()), unix.LOCK_UN), c.file.Close())
}

// read takes in the whole file, and cuts off a last line that is not whole.
func (c *conversation) read() error {
	if _, err := c.scan(); err != nil {
		return err
	}
	return c.file.Truncate(c.size)
}

// scan takes in the whole lines of the file, and returns the folder in which the conversation was begun.
func (c *conversation) scan() (folder string, err error) {
	br := bufio.NewReader(c.file)
	var whole int64
	for n := 0; ; n++ {
		line, err := br.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
		if n == 0 {
			var h header
			if err := json.Unmarshal(line, &h); err != nil || h.V != fileVersion {
				return "", fmt.Errorf("%w: its file is of another version", runner.ErrNoSession)
			}
			folder = h.Folder
		} else if err := c.apply(line); err != nil {
			return "", fmt.Errorf("%w: line %d of its file: %w", runner.ErrNoSession, n+1, err)
		}
		whole += int64(len(line))
	}
	if whole == 0 {
		return "", fmt.Errorf("%w: its file is empty", runner.ErrNoSession)
	}
	c.size = whole
	return folder, nil
}

func (c *conversation) apply(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.Elide > len(c.messages) || e.Drop > len(c.messages) {
		return errors.New("it speaks of messages that are not there")
	}
	if e.Message != nil {
		c.messages = append(c.messages, *e.Message)
	}
	c.elided, c.dropped = max(c.elided, e.Elide), max(c.dropped, e.Drop)
	for _, f := range e.Files {
		c.attached[f] = true
	}
	return nil
}

// notRunAgain is the result of a call whose own was lost.
const notRunAgain = "Interrupted: the program was stopped during or before this call, and it is not run again. " +
	"It may have had an effect; look before you repeat it."

// repair answers calls without a result and closes a turn that was broken off, so that the conversation is one that any
// endpoint takes: calls and results match, and prompts and answers alternate.
func (c *conversation) repair() error {
	for _, id := range c.unanswered() {
		if err := c.add(chatapi.Message{Role: chatapi.ToolRole, ToolCallID: id, Content: notRunAgain}); err != nil {
			return err
		}
	}
	return c.close("The turn was interrupted.")
}

// close ends a turn that has no final answer with a line in its place.
func (c *conversation) close(why string) error {
	if n := len(c.messages); n == 0 || c.messages[n-1].Role == chatapi.Assistant {
		return nil
	}
	return c.add(chatapi.Message{Role: chatapi.Assistant, Content: "[" + why + "]"})
}

// unanswered are the ids of the last answer's tool calls that have no result.
func (c *conversation) unanswered() []string {
	answered := make(map[string]bool)
	for _, m := range slices.Backward(c.messages) {
		if m.Role == chatapi.ToolRole {
			answered[m.ToolCallID] = true
			continue
		}
		var ids []string
		for _, call := range m.ToolCalls {
			if !answered[call.ID] {
				ids = append(ids, call.ID)
			}
		}
		return ids
	}
	return nil
}

// add appends a message, on disk first.
func (c *conversation) add(m chatapi.Message) error {
	if err := c.write(entry{Message: &m}); err != nil {
		return fmt.Errorf("keep the conversation: %w", err)
	}
	c.messages = append(c.messages, m)
	return nil
}

// attach lets files be read that a person attached.
func (c *conversation) attach(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := c.write(entry{Files: paths}); err != nil {
		return fmt.Errorf("keep the conversation: %w", err)
	}
	for _, p := range paths {
		c.attached[p] = true
	}
	return nil
}

func (c *conversation) write(line any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line); err != nil {
		return err
	}
	n, err := c.file.Write(b.Bytes())
	if err != nil && n > 0 {
		// The disk is full: half a line must not stand before the next one.
		err = errors.Join(err, c.file.Truncate(c.size))
	}
	if err == nil {
		c.size += int64(n)
	}
	return err
}
