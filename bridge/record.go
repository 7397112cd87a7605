package bridge

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"drawbridge/approvals"
	"drawbridge/policy"
	"drawbridge/runner"
)

// Version is the version of the records of this package as they are written.
const Version = 1

// Chat is what one chat is, under chatKey. Only gateways write it.
type Chat struct {
	V       int    `json:"v"`
	ID      string `json:"id"` // opaque here; the messenger's key of a chat or topic
	Host    string `json:"host,omitempty"`
	Project string `json:"project,omitempty"`
	Folder  string `json:"folder,omitempty"` // of the project on the host
	Runtime string `json:"runtime,omitempty"`
	// Model and Effort are those that were chosen of the runtime's; empty for its own.
	Model  string `json:"model,omitempty"`
	Effort string `json:"effort,omitempty"`
	// Mode as it is stored; use Effective, which never yields anything looser for what it cannot read.
	Mode        policy.Mode        `json:"mode,omitempty"`
	Interaction policy.Interaction `json:"interaction,omitempty"`
	Session     string             `json:"session,omitempty"` // ours; the host keeps the runtime's token
	// Resume is the runtime's token of a session that was adopted, for its first turn here.
	Resume string `json:"resume,omitempty"`
	// CloseSeq counts requests to end the agent's process; the host closes it when the number moves on.
	CloseSeq int `json:"close_seq,omitempty"`
	// Active is the turn that was handed to the host, or waits for the workspace.
	Active *Active `json:"active,omitempty"`
	// Queue holds the prompts behind it, oldest first.
	Queue []Prompt `json:"queue,omitempty"`
	// WaitsFor is the chat whose turn holds the workspace that the first of Queue wants; empty if none does.
	WaitsFor string `json:"waits_for,omitempty"`
	// Ended is when its last turn ended, as far as gateways know.
	Ended time.Time `json:"ended,omitzero"`
	// Stopped is when the last stop arrived; a prompt that arrived before it is not taken any more.
	Stopped time.Time `json:"stopped,omitzero"`
	// Of is the chat to whose mode and interaction this one is held: it is a lane of that chat. See Lane.
	Of string `json:"of,omitempty"`
	// Beside names the hosts on which lanes of this chat work, besides its own: they have to know its mode too.
	Beside []string `json:"beside,omitempty"`
}

// Active is the turn of a chat that is not ended.
type Active struct {
	Turn     string    `json:"turn"`
	Prompt   Prompt    `json:"prompt"`
	Host     string    `json:"host"`
	Folder   string    `json:"folder"`
	Runtime  string    `json:"runtime"`
	Session  string    `json:"session"`
	Writer   bool      `json:"writer,omitempty"` // holds the workspace
	Started  time.Time `json:"started"`
	Running  bool      `json:"running,omitempty"`  // the host has begun
	Stopping bool      `json:"stopping,omitempty"` // somebody stopped it
}

// Prompt is something that a person wants done.
type Prompt struct {
	// ID is given by who enqueues ("u:<update>"); the same one is taken once, however often it comes.
	ID    string `json:"id"`
	Text  string `json:"text"`
	Files []Blob `json:"files,omitempty"`
	By    string `json:"by,omitempty"`   // who wrote it, as approvals.Record.Prompted
	Name  string `json:"name,omitempty"` // their name
	// At orders prompts and stops of one chat, on the clock of whoever enqueues.
	At time.Time `json:"at"`
	// Ref is for whoever enqueued it, to find the message again; opaque here.
	Ref string `json:"ref,omitempty"`
	// Limit bounds the mode of its turn below the chat's; empty for no bound.
	Limit policy.Mode `json:"limit,omitempty"`
	// Plan makes its turn one in plan, whatever the chat's interaction is.
	Plan bool `json:"plan,omitempty"`
	// Waited says that it could not be handed out at once.
	Waited bool `json:"waited,omitempty"`
	// Resume says that this continues a turn that was lost or interrupted.
	Resume bool `json:"resume,omitempty"`
	// Work is set for a prompt of a task: nobody sits in front of it, and without a Limit that can be read it is held to
	// approval-required.
	Work *Work `json:"work,omitempty"`
	// Kept is the approval that was kept over a stop of the host and with which its turn goes on; see KeptPrompt.
	Kept approvals.ID `json:"kept,omitempty"`
}

// Work is what a task's prompt says about its turn, besides what any prompt does.
type Work struct {
	Task string `json:"task"`
	// Attended says that somebody asked to be in front of it after all: its asks are those of the foreground.
	Attended bool `json:"attended,omitempty"`
	// Card is the chat that is asked, if it is not the one to whose mode the work is held.
	Card string `json:"card,omitempty"`
	// Patience is how long a person has for an ask; zero for the host's own deadline.
	Patience time.Duration `json:"patience,omitempty"`
	// Quiet is when asks wait silently.
	Quiet *Quiet `json:"quiet,omitempty"`
	// Alone says that nobody is asked: what a person would have to decide is refused at once.
	Alone bool `json:"alone,omitempty"`
}

// Order is a turn as it is handed to a host, under orderKey. Only gateways write it.
type Order struct {
	V       int       `json:"v"`
	Turn    string    `json:"turn"`
	Chat    string    `json:"chat"`
	Project string    `json:"project"`
	Folder  string    `json:"folder"`
	Runtime string    `json:"runtime"`
	Session string    `json:"session"`
	Resume  string    `json:"resume,omitempty"` // the runtime's token, if the host has not kept one for the session
	Model   string    `json:"model,omitempty"`  // as in Chat
	Effort  string    `json:"effort,omitempty"`
	Prompt  Prompt    `json:"prompt"`
	Created time.Time `json:"created"`
	Of      string    `json:"of,omitempty"`     // the chat to whose mode it is held, if that is not Chat
	Writer  bool      `json:"writer,omitempty"` // has the workspace to itself
	Stop    bool      `json:"stop,omitempty"`
}

// Mirror is what a host may know of a chat, under mirrorKey: a copy that is made in every commit that changes the chat.
// The host reads it at each ask.
type Mirror struct {
	V           int                `json:"v"`
	Mode        policy.Mode        `json:"mode"`
	Interaction policy.Interaction `json:"interaction"`
	Session     string             `json:"session"`
	CloseSeq    int                `json:"close_seq,omitempty"`
}

// Turn is a turn as its host sees it, under turnKey. Only that host writes it, and only forward: running, then ended.
type Turn struct {
	V           int            `json:"v"`
	ID          string         `json:"id"`
	Chat        string         `json:"chat"`
	Incarnation string         `json:"incarnation"`
	State       TurnState      `json:"state"`
	Started     time.Time      `json:"started"`
	Ended       time.Time      `json:"ended,omitzero"`
	Result      *runner.Result `json:"result,omitempty"`
}

// TurnState is how a turn stands on its host.
type TurnState string

// The states of a Turn.
const (
	TurnRunning TurnState = "running"
	TurnEnded   TurnState = "ended"
)

// SessionRecord is what a host knows of a session, under sessionKey. Only that host writes it.
type SessionRecord struct {
	V       int       `json:"v"`
	ID      string    `json:"id"`
	Chat    string    `json:"chat"`
	Runtime string    `json:"runtime"`
	Folder  string    `json:"folder"`
	Token   string    `json:"token,omitempty"` // the runtime's
	Used    time.Time `json:"used"`
}

// Entry is one line of a host's log, under entryKey: the timelines of all its chats in one order. Only that host writes it.
type Entry struct {
	V       int          `json:"v"`
	Seq     int64        `json:"seq"` // from 1, without gaps
	At      time.Time    `json:"at"`
	Chat    string       `json:"chat"`
	Turn    string       `json:"turn,omitempty"`
	Session string       `json:"session,omitempty"`
	Event   runner.Event `json:"event,omitzero"`
	// Summary is set where a turn has ended on its host: what the host itself has seen of it.
	Summary *Summary `json:"summary,omitempty"`
	// Errand is set, and Event is not, for what a gateway has asked for.
	Errand *ErrandResult `json:"errand,omitempty"`
	// Host is whose log this is; it stands in the key and is filled in by who reads.
	Host string `json:"-"`
}

// Hello is what a host offers, under helloKey. Only that host writes it.
type Hello struct {
	V        int                          `json:"v"`
	Host     string                       `json:"host"`
	Projects []Project                    `json:"projects"`
	Runtimes map[string]runner.Capability `json:"runtimes"`
	// Reviewer names the model that decides on this host what the mode auto leaves to a reviewer; empty if there is none,
	// and a person is asked.
	Reviewer string `json:"reviewer,omitempty"`
}

// Blob is a file on its way to a host, in pieces under blobKey.
type Blob struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Size   int    `json:"size"`
	Pieces int    `json:"pieces"`
}

// Project is a named workspace on a host.
type Project struct {
	Name    string `json:"name"`
	Folder  string `json:"folder"`
	Runtime string `json:"runtime,omitempty"` // for chats that choose none
	// PublishIsOrdinary is the owner's word that publishing from this project is not human-only.
	PublishIsOrdinary bool `json:"publish_is_ordinary,omitempty"`
}

// Live is a turn as it streams: the whole bounded text so far and a number, so that a loss heals itself.
type Live struct {
	Chat  string        `json:"chat"`
	Turn  string        `json:"turn"`
	Seq   int64         `json:"seq"`
	Text  string        `json:"text,omitempty"`  // of the message that is being written; its end if it is long
	Doing string        `json:"doing,omitempty"` // what runs: a command, the title of another item, or what the runtime says of a wait
	Steps int           `json:"steps,omitempty"` // items that are done
	Plan  []runner.Step `json:"plan,omitempty"`
	Since time.Time     `json:"since"`
}

func newID(prefix string) string { return prefix + rand.Text() }

// Keys. What begins with g: is written by gateways alone, with to:<host>: by gateways for one host, with from:<host>:
// by that host alone.

const (
	chatsIndex = "g:chats" // every chat, by when it was first seen
	lanesIndex = "g:lanes" // every lane, the same
)

func chatKey(id string) string                { return "g:chat:" + id }
func movedKey(id string) string               { return "g:moved:" + id }
func cursorKey(host string) string            { return "g:cursor:" + host }
func workspaceKey(host, folder string) string { return "g:workspace:" + host + ":" + digest(folder) }
func orderKey(host, turn string) string       { return "to:" + host + ":turn:" + turn }
func ordersIndex(host string) string          { return "to:" + host + ":turns" }
func mirrorKey(host, chat string) string      { return "to:" + host + ":chat:" + chat }
func wakeTopic(host string) string            { return "to:" + host + ":wake" }
func turnKey(host, turn string) string        { return "from:" + host + ":turn:" + turn }
func sessionKey(host, session string) string  { return "from:" + host + ":session:" + session }
func headKey(host string) string              { return "from:" + host + ":head" }
func entryPrefix(host string) string          { return "from:" + host + ":log:" }
func entryKey(host string, seq int64) string  { return entryPrefix(host) + strconv.FormatInt(seq, 10) }
func timelineIndex(host, chat string) string  { return "from:" + host + ":timeline:" + chat }
func forgetIndex(host string) string          { return "from:" + host + ":old" }
func helloKey(host string) string             { return "from:" + host + ":hello" }
func logTopic(host string) string             { return "from:" + host + ":log" }
func liveTopic(host string) string            { return "from:" + host + ":live" }
func blobKey(host, id string, n int) string   { return fmt.Sprintf("to:%s:blob:%s:%d", host, id, n) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

func decode[T any](b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}
