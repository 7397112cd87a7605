package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// imitatedClaude speaks as much of Claude Code's protocol as a turn takes. What it says of its version and its login stands
// in the files beside it, which a test changes, as somebody does who updates the program or logs in.
const imitatedClaude = `#!/bin/sh
here=$(dirname "$0")
case "$1" in
--version) cat "$here/version"; exit 0 ;;
auth) cat "$here/login"; exit 0 ;;
esac
session=none mode=default
while [ $# -gt 0 ]; do
	case "$1" in
	--session-id | --resume) session=$2 ;;
	--permission-mode) mode=$2 ;;
	esac
	shift
done
field() { printf '%s' "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
answer() { echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"$(field request_id)"'","response":{'"$1"'}}}'; }
state() { echo '{"type":"system","subtype":"session_state_changed","state":"'"$1"'"}'; }
while read -r line; do
	case "$line" in
	*'"subtype":"initialize"'*)
		answer '"claude_code_version":"2.1.332","current_permission_mode":"'"$mode"'","hooks_applied":true,"hook_on_failure_supported":true,"models":[{"value":"default","displayName":"Default"},{"value":"haiku","displayName":"Haiku"}]' ;;
	*'"type":"control_request"'*) answer '' ;;
	*'"type":"user"'*)
		uuid=$(field uuid)
		state running
		echo '{"type":"system","subtype":"init","session_id":"'"$session"'","permissionMode":"'"$mode"'","mcp_servers":[]}'
		echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"It works again."}]}}'
		echo '{"type":"result","subtype":"success","is_error":false,"result":"It works again.","terminal_reason":"completed","user_message_uuid":"'"$uuid"'"}'
		echo '{"type":"command_lifecycle","command_uuid":"'"$uuid"'","state":"completed"}'
		state idle ;;
	esac
done
`

// TestARemovedCauseRestoresTheAbility: an agent that is too old, does not say its version or is not logged in says which it
// is, runs nothing, and works with the next prompt once that is mended, without anybody restarting anything.
func TestARemovedCauseRestoresTheAbility(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{env: map[string]string{"DRAWBRIDGE_DEFAULT_RUNTIME": "claude", "DRAWBRIDGE_AGENTS": "claude"}})
	bin := filepath.Join(w.dir, "bin")
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		// In one step: the program may be reading it.
		if err := os.WriteFile(filepath.Join(bin, name+".new"), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(bin, name+".new"), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	put("claude", imitatedClaude, 0o755)
	put("version", "1.0.99 (Claude Code)\n", 0o644)
	put("login", `{"loggedIn":true}`, 0o644)
	w.env["PATH"] = bin + ":" + os.Getenv("PATH")
	w.start("serve")
	me := w.private(ada)
	for _, c := range []struct{ version, login, word, why string }{
		{"1.0.99 (Claude Code)", `{"loggedIn":true}`, "Runtime: claude, version 1.0.99 – too old", "Claude Code 1.0.99 is older than 2.1.332"},
		{"Claude Code", `{"loggedIn":true}`, "Runtime: claude – version unreadable", "does not say its version"},
		{"2.1.332 (Claude Code)", `{"loggedIn":false}`, "Runtime: claude, version 2.1.332 – not logged in", "Claude Code is not logged in"},
	} {
		put("version", c.version+"\n", 0o644)
		put("login", c.login, 0o644)
		prompt := me.say("go on")
		me.hears(prompt, "claude can't be used here: ")
		seen := me.hears(me.say("/runtime"), c.word)
		if !strings.Contains(seen.Text, c.why) {
			t.Errorf("/runtime says\n%s", seen.Text)
		}
		tapped := me.tap(seen.ID, "🚫 claude – "+strings.SplitN(c.word, " – ", 2)[1])
		if !strings.Contains(tapped.Text, c.why) {
			t.Errorf("the button answers %q", tapped.Text)
		}
	}
	put("login", `{"loggedIn":true}`, 0o644)
	me.hears(me.say("go on"), "It works again.")
	seen := me.hears(me.say("/runtime"), "Runtime: claude, version 2.1.332\n")
	if !strings.Contains(seen.Text, "Model: Default") || strings.Contains(seen.Text, "🚫 claude") || seen.has("🚫 claude – not logged in") {
		t.Errorf("/runtime says\n%s", seen.Text)
	}
	menu := me.hears(me.say("/model"), "Choose one:")
	me.tap(menu.ID, "Haiku")
	me.turns(menu.ID, "this chat uses the model Haiku")
	me.hears(me.say("go on"), "It works again.")
}
