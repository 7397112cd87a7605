package codex_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// replayVariable makes the test binary an imitation of codex, as the JSON of an imitation says.
const replayVariable = "DRAWBRIDGE_TEST_REPLAY"

// imitation is what the imitation of codex does.
type imitation struct {
	Version   string `json:"version"`
	LoggedOut bool   `json:"logged_out"`
	Dies      string `json:"dies"`    // its last words at the start
	Sandbox   string `json:"sandbox"` // "broken": nothing runs in it; "open": it holds nothing
	Echo      string `json:"echo"`    // what is wrong with what it says it is held to
	Turn      string `json:"turn"`    // a recorded turn that it plays
	Record    string `json:"record"`  // where it writes what it is told
	Starts    string `json:"starts"`  // where it writes a line for each start
	Models    string `json:"models"`  // what it lists, as JSON
	Tier      string `json:"tier"`    // the service tier of its threads, if they have one
}

const imitatedThread = "01a22f41-4c0c-76d0-909d-c7ad53734b66"

type frame map[string]any

func (f frame) text(path ...string) string {
	var v any = map[string]any(f)
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	s, _ := v.(string)
	return s
}

// imitator is the imitation while it runs.
type imitator struct {
	imitation
	in       *bufio.Scanner
	out      *bufio.Writer
	record   *os.File
	recorded []struct {
		Dir   string `json:"dir"`
		Frame frame  `json:"frame"`
	}
	thread   string
	cwd      string
	settings frame
	asked    int
	turns    int
	id       string // of the turn
	strayed  bool   // it goes on with the turn that nobody asked for
	// terminals are the commands in the background, by thread.
	terminals map[string][]any
}

func runReplay(config string) int {
	m := &imitator{out: bufio.NewWriter(os.Stdout), thread: imitatedThread}
	if err := json.Unmarshal([]byte(config), &m.imitation); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	switch {
	case slices.Contains(os.Args, "--version"):
		fmt.Println(m.Version)
		return 0
	case slices.Contains(os.Args, "sandbox"):
		return m.sandbox()
	case m.Dies != "":
		fmt.Fprintln(os.Stderr, "some noise\n"+m.Dies)
		return 1
	}
	if m.Starts != "" {
		f, err := os.OpenFile(m.Starts, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 2
		}
		_, _ = fmt.Fprintln(f, "started")
		_ = f.Close()
	}
	if m.Record != "" {
		f, err := os.OpenFile(m.Record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 2
		}
		m.record = f
	}
	if m.Turn != "" {
		b, err := os.ReadFile(m.Turn)
		if err != nil {
			return 2
		}
		for line := range strings.Lines(string(b)) {
			m.recorded = append(m.recorded, struct {
				Dir   string `json:"dir"`
				Frame frame  `json:"frame"`
			}{})
			if err := json.Unmarshal([]byte(line), &m.recorded[len(m.recorded)-1]); err != nil {
				return 2
			}
		}
		m.thread = m.recorded[0].Frame.text("params", "threadId")
	}
	m.in = bufio.NewScanner(os.Stdin)
	m.in.Buffer(nil, 64<<20)
	for {
		f := m.read()
		if f == nil {
			return 0
		}
		m.serve(f)
	}
}

func (m *imitator) sandbox() int {
	script := strings.Join(os.Args, " ")
	switch {
	case m.Sandbox == "broken":
		fmt.Fprintln(os.Stderr, "bwrap: Creating new namespace failed")
		return 1
	case strings.Contains(script, "exit 0"):
		return 0
	case m.Sandbox == "open":
		_ = os.WriteFile(os.Args[len(os.Args)-1], nil, 0o600)
		return 0
	}
	return 1
}

func (m *imitator) read() frame {
	if !m.in.Scan() {
		return nil
	}
	if m.record != nil {
		_, _ = fmt.Fprintln(m.record, m.in.Text())
	}
	f := frame{}
	if json.Unmarshal(m.in.Bytes(), &f) != nil {
		os.Exit(3)
	}
	return f
}

func (m *imitator) write(f frame) {
	b, err := json.Marshal(f)
	if err != nil {
		os.Exit(3)
	}
	_, _ = m.out.Write(append(b, '\n'))
	_ = m.out.Flush()
}

func (m *imitator) answer(to frame, result any) { m.write(frame{"id": to["id"], "result": result}) }

func (m *imitator) notify(method string, params any) {
	m.write(frame{"method": method, "params": params})
}

// held is the thread's settings under the names of a thread's opening.
func (m *imitator) opened() frame {
	return frame{
		"thread": frame{"id": m.thread}, "model": "gpt-5.5", "cwd": m.cwd, "approvalPolicy": "on-request", "approvalsReviewer": "user",
		"sandbox": frame{"type": "readOnly", "networkAccess": false}, "activePermissionProfile": nil, "serviceTier": m.tier(),
	}
}

// tier is null where there is none.
func (m *imitator) tier() any {
	if m.Tier == "" {
		return nil
	}
	return m.Tier
}

func (m *imitator) serve(f frame) {
	params, _ := f["params"].(map[string]any)
	switch f["method"] {
	case "initialize":
		m.answer(f, frame{"userAgent": "drawbridge/" + strings.TrimPrefix(m.Version, "codex-cli ") + " (Debian 12.0.0; x86_64) unknown"})
	case "account/read":
		m.answer(f, frame{"account": nil, "requiresOpenaiAuth": m.LoggedOut})
	case "thread/start", "thread/resume":
		m.cwd, _ = params["cwd"].(string)
		m.answer(f, m.opened())
	case "thread/settings/update":
		m.answer(f, frame{})
		if s := m.echo(params); s != nil {
			m.notify("thread/settings/updated", frame{"threadId": m.thread, "threadSettings": s})
		}
	case "turn/start":
		if tier, ok := params["serviceTier"].(string); ok && tier != m.Tier {
			m.Tier, m.settings["serviceTier"] = tier, tier
			m.notify("thread/settings/updated", frame{"threadId": m.thread, "threadSettings": m.settings})
		}
		if m.recorded != nil {
			m.play(f)
			return
		}
		m.turn(f, params)
	case "model/list":
		if m.Models != "" {
			m.answer(f, json.RawMessage(m.Models))
			return
		}
		m.answer(f, frame{"data": []any{}})
	case "thread/backgroundTerminals/list":
		m.answer(f, frame{"data": slices.Clone(m.terminals[f.text("params", "threadId")])})
	default:
		if f["id"] != nil && f["method"] != nil {
			m.answer(f, frame{})
		}
	}
}

// echo is what the imitation says it is held to.
func (m *imitator) echo(p map[string]any) frame {
	s := frame{
		"model": "gpt-5.5", "cwd": m.cwd, "approvalPolicy": p["approvalPolicy"], "approvalsReviewer": p["approvalsReviewer"],
		"sandboxPolicy": p["sandboxPolicy"], "activePermissionProfile": nil, "collaborationMode": p["collaborationMode"],
		"serviceTier": m.tier(),
	}
	if id, ok := p["permissions"].(string); ok {
		s["activePermissionProfile"] = frame{"id": id, "extends": nil}
		s["sandboxPolicy"] = frame{"type": "readOnly", "networkAccess": false}
		if id == "botedit" {
			s["sandboxPolicy"] = frame{"type": "workspaceWrite", "networkAccess": false}
		}
	}
	switch m.Echo {
	case "none":
		return nil
	case "another reviewer":
		s["approvalsReviewer"] = "auto_review"
	case "no reviewer":
		s["approvalsReviewer"] = "user"
	case "another folder":
		s["cwd"] = "/somewhere/else"
	case "never asks":
		s["approvalPolicy"] = "never"
	case "granular":
		s["approvalPolicy"] = frame{"granular": frame{"sandbox_approval": false}}
	case "no sandbox":
		s["sandboxPolicy"], s["activePermissionProfile"] = frame{"type": "dangerFullAccess"}, nil
	case "the network":
		s["sandboxPolicy"] = frame{"type": "readOnly", "networkAccess": true}
	case "its own sandbox":
		s["activePermissionProfile"] = nil
	case "an older version's":
		delete(s, "activePermissionProfile")
	case "another profile":
		s["activePermissionProfile"] = frame{"id": ":workspace"}
	case "editing":
		s["activePermissionProfile"] = frame{"id": "botedit"}
	case "reading":
		s["activePermissionProfile"], s["sandboxPolicy"] = frame{"id": "botread"}, frame{"type": "readOnly"}
	case "asks always":
		s["approvalPolicy"] = "untrusted"
	case "another interaction":
		s["collaborationMode"] = frame{"mode": "whatever"}
	}
	m.settings = s
	return s
}

// play plays the recorded turn: what codex said as it said it, waiting wherever it waited for us.
func (m *imitator) play(start frame) {
	first, begun := m.recorded[0].Frame["id"], false
	for _, r := range m.recorded[1:] {
		f := r.Frame
		begun = begun || f["method"] == "turn/started"
		switch {
		case f["method"] == "thread/settings/updated" && !begun: // the turn was recorded under another policy
		case r.Dir == "<" && f["method"] != nil:
			m.write(f)
		case r.Dir == "<" && f["id"] == first:
			m.answer(start, f["result"])
		case r.Dir == ">" && f["method"] == nil:
			m.until(func(got frame) bool { return got["method"] == nil && got["id"] == f["id"] })
		}
	}
}

// until serves requests until the one that is waited for comes.
func (m *imitator) until(is func(frame) bool) frame {
	for {
		f := m.read()
		if f == nil {
			os.Exit(0)
		}
		if is(f) {
			return f
		}
		m.serve(f)
	}
}

func (m *imitator) item(method, kind, id string, more frame) {
	item := frame{"type": kind, "id": id}
	maps.Copy(item, more)
	m.notify(method, frame{"threadId": m.thread, "turnId": m.id, "item": item})
}

func (m *imitator) complete(status string) {
	m.notify("turn/completed", frame{"threadId": m.thread, "turn": frame{"id": m.id, "rootTurnId": m.id, "status": status}})
}

// request asks and waits for the answer.
func (m *imitator) request(method string, params frame) frame {
	id := m.asked
	m.asked++
	params["threadId"], params["turnId"] = m.thread, m.id
	m.write(frame{"id": id, "method": method, "params": params})
	return m.until(func(f frame) bool { return f["method"] == nil && f["id"] == float64(id) })
}

// taken answers a request of ours and reports whether it is the one that is waited for.
func (m *imitator) taken(f frame, method, turn string) bool {
	if f["method"] != method || turn != "" && f.text("params", "turnId") != turn {
		return false
	}
	m.answer(f, frame{})
	return true
}

// turn does what the prompt says.
func (m *imitator) turn(start frame, params map[string]any) {
	m.turns++
	if m.strayed {
		m.answer(start, frame{"turn": frame{"id": "stray", "rootTurnId": "stray", "status": "inProgress"}})
		return
	}
	m.id = fmt.Sprintf("turn-%d-%d", m.turns, time.Now().UnixNano())
	turn := frame{"id": m.id, "rootTurnId": m.id, "status": "inProgress"}
	if b, err := json.Marshal(params["input"]); err == nil && strings.Contains(string(b), "loosen at once") {
		m.notify("thread/settings/updated", frame{"threadId": m.thread, "threadSettings": frame{
			"cwd": m.cwd, "approvalPolicy": "never", "approvalsReviewer": "user", "sandboxPolicy": frame{"type": "dangerFullAccess"},
		}})
	}
	m.answer(start, frame{"turn": turn})
	m.notify("turn/started", frame{"threadId": m.thread, "turn": turn})
	prompt := ""
	if list, ok := params["input"].([]any); ok && len(list) > 0 {
		one, _ := list[0].(map[string]any)
		prompt, _ = one["text"].(string)
	}
	switch prompt {
	case "crash":
		fmt.Fprintln(os.Stderr, "thread 'main' panicked: out of luck")
		os.Exit(101)
	case "hang":
		m.item("item/started", "commandExecution", "call_1", frame{"command": "/bin/bash -lc 'sleep 600'"})
		m.until(func(f frame) bool {
			if f["method"] == "turn/interrupt" {
				m.answer(f, frame{})
			}
			return f["method"] == "turn/interrupt"
		})
		m.complete("interrupted")
		return
	case "deaf":
		m.until(func(frame) bool { return false })
	case "loosen":
		m.notify("thread/settings/updated", frame{"threadId": m.thread, "threadSettings": frame{
			"cwd": m.cwd, "approvalPolicy": "never", "approvalsReviewer": "user", "sandboxPolicy": frame{"type": "dangerFullAccess"},
		}})
		m.until(func(f frame) bool {
			if f["method"] == "turn/interrupt" {
				m.answer(f, frame{})
			}
			return f["method"] == "turn/interrupt"
		})
		m.complete("interrupted")
		return
	case "loosen at once":
		m.until(func(f frame) bool { return m.taken(f, "turn/interrupt", m.id) })
		m.complete("interrupted")
		return
	case "stray that goes on":
		m.strayed = true
		m.complete("completed")
		m.notify("turn/started", frame{"threadId": m.thread, "turn": frame{"id": "stray", "rootTurnId": "stray"}})
		return
	case "refused login":
		for i := range 5 {
			m.notify("error", frame{"threadId": m.thread, "turnId": m.id, "willRetry": true, "error": frame{
				"message": fmt.Sprintf("Reconnecting... %d/5", i+1), "codexErrorInfo": frame{"responseStreamDisconnected": frame{"httpStatusCode": 401}},
				"additionalDetails": "unexpected status 401 Unauthorized: Missing bearer, url: http://127.0.0.1:1/v1/responses",
			}})
			if i == 1 {
				m.until(func(f frame) bool { return m.taken(f, "turn/interrupt", m.id) })
				m.complete("interrupted")
				return
			}
		}
	case "late child":
		m.notify("guardianWarning", frame{"threadId": m.thread, "message": "begun"})
		m.until(func(f frame) bool { return m.taken(f, "turn/interrupt", m.id) })
		m.complete("interrupted")
		m.notify("turn/started", frame{"threadId": "child", "turn": frame{"id": "child-turn", "rootTurnId": m.id}})
		m.until(func(f frame) bool { return m.taken(f, "turn/interrupt", "child-turn") })
		m.until(func(f frame) bool {
			return m.taken(f, "thread/backgroundTerminals/clean", "") && f.text("params", "threadId") == "child"
		})
		m.notify("guardianWarning", frame{"threadId": m.thread, "message": "stopped"})
		return
	case "child with a command":
		m.terminals = map[string][]any{"child": {frame{"itemId": "call_1"}}}
		m.notify("turn/started", frame{"threadId": "child", "turn": frame{"id": "child-turn", "rootTurnId": m.id}})
		for _, id := range []string{"call_1", "call_2"} {
			m.notify("item/started", frame{"threadId": "child", "turnId": "child-turn", "item": frame{"type": "commandExecution", "id": id, "command": id}})
		}
		m.notify("turn/completed", frame{"threadId": "child", "turn": frame{"id": "child-turn", "rootTurnId": m.id, "status": "completed"}})
	case "strange":
		_, _ = m.out.WriteString("this is no frame\n{\"half\":\n[1,2]\n\xff\xfe\n")
		m.notify("item/sparkled", frame{"threadId": m.thread})
		m.item("item/started", "hologram", "h1", nil)
		m.notify("item/started", "not an object")
		for _, method := range []string{"execCommandApproval", "applyPatchApproval", "item/tool/call", "attestation/generate"} {
			if got := m.request(method, frame{"command": []string{"true"}}); got["error"] == nil {
				os.Exit(4)
			}
		}
		for _, p := range []frame{
			{"kind": "writeStdin", "itemId": "x", "command": "true"},
			{"kind": "humanCommand", "itemId": "x", "command": "true"},
			{"itemId": "x"},
			{"itemId": "x", "command": "true", "networkApprovalContext": frame{"host": "example.com"}},
			{"itemId": "x", "command": "true", "additionalPermissions": frame{"network": true}},
		} {
			if got := m.request("item/commandExecution/requestApproval", p); got["error"] == nil {
				os.Exit(4)
			}
		}
		if got := m.request("item/fileChange/requestApproval", frame{"itemId": "unknown"}); got["error"] == nil {
			os.Exit(4)
		}
	case "odd patches":
		for i, p := range []frame{
			{"path": m.cwd + "/pipe", "kind": frame{"type": "add"}, "diff": "x\n"},
			{"path": "/dev/zero", "kind": frame{"type": "add"}, "diff": "x\n"},
			{"path": "/proc/self/environ", "kind": frame{"type": "add"}, "diff": "x\n"},
			{"path": "relative", "kind": frame{"type": "add"}, "diff": "x\n"},
			{"path": "", "kind": frame{"type": "add"}, "diff": "x\n"},
			{"path": m.cwd + "/there", "kind": frame{"type": "chmod"}, "diff": "x\n"},
			{"path": m.cwd + "/there", "kind": frame{}, "diff": "x\n"},
			{"path": m.cwd + "/new", "kind": frame{"type": "add", "move_path": m.cwd + "/newer"}, "diff": "x\n"},
			{"path": m.cwd + "/there", "kind": frame{"type": "update", "move_path": m.cwd + "/too"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
			{"path": m.cwd + "/there", "kind": frame{"type": "update", "move_path": "away"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
		} {
			id := fmt.Sprintf("odd_%d", i)
			m.item("item/started", "fileChange", id, frame{"changes": []frame{p}})
			if got := m.request("item/fileChange/requestApproval", frame{"itemId": id}); got["error"] == nil {
				fmt.Fprintln(os.Stderr, "taken:", p)
				os.Exit(4)
			}
		}
	case "huge":
		m.item("item/started", "commandExecution", "call_1", frame{"command": "yes"})
		m.item("item/completed", "commandExecution", "call_1", frame{
			"command": "yes", "status": "completed", "aggregatedOutput": strings.Repeat("yyyyyyy\n", 200<<10) + "end",
		})
	case "stray":
		m.complete("completed")
		m.notify("turn/started", frame{"threadId": m.thread, "turn": frame{"id": "stray", "rootTurnId": "stray"}})
		m.until(func(f frame) bool { return f["method"] == "turn/interrupt" && f.text("params", "turnId") == "stray" })
		m.notify("guardianWarning", frame{"threadId": m.thread, "message": "stopped"})
		return
	}
	m.item("item/started", "agentMessage", "msg_1", frame{"text": ""})
	m.notify("item/agentMessage/delta", frame{"threadId": m.thread, "turnId": m.id, "itemId": "msg_1", "delta": "hello"})
	m.item("item/completed", "agentMessage", "msg_1", frame{"text": "hello"})
	m.complete("completed")
}
