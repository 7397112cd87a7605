package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"drawbridge/internal/process"
	"drawbridge/runner"
)

// hookWait is how long a call may wait for the gate, in seconds: a week, since the gate has deadlines of its own. More
// than 2^31 ms would overflow the program's timers.
const hookWait = 7 * 24 * 60 * 60

// gateHook is the name under which the program calls our hook.
const gateHook = "drawbridge-gate"

// withheld are tools that the program is not given: they change its mode, make work trees, or begin turns at times of
// their own choosing. A task of Drawbridge does what the last are for, in sight of the chat.
func withheld() []string {
	return []string{
		"EnterPlanMode", "EnterWorktree", "ExitWorktree", "CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger", "Workflow",
	}
}

// launch is what a process of the program is started with.
type launch struct {
	mode    string // modeDefault or modePlan
	id      string // of the session
	resume  bool   // the session exists
	trusted bool   // the project's own settings count
	servers string // a file with MCP servers; empty for none
}

// arguments is the command line without the program.
func (r *Runtime) arguments(l launch) ([]string, error) {
	settings, err := json.Marshal(ownSettings(l.trusted))
	if err != nil {
		return nil, fmt.Errorf("claude: settings: %w", err)
	}
	sources := "" // no settings of the user's, the project's or the local ones
	if l.trusted {
		sources = "project"
	}
	args := []string{
		"--print", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		// The question that is left when the hook says nothing comes to us.
		"--permission-prompt-tool", "stdio",
		// Always given: without it, the mode comes from settings.
		"--permission-mode", l.mode,
		// No MCP servers but those in our file.
		"--setting-sources", sources, "--strict-mcp-config",
		"--settings", string(settings),
		"--disallowedTools", strings.Join(withheld(), ","),
	}
	if l.servers != "" {
		args = append(args, "--mcp-config", l.servers)
	}
	if model := r.model(l.resume); model != "" {
		args = append(args, "--model", model)
	}
	if l.resume {
		// A call that the program has kept is gone on with at once: not before it has our hook.
		args = append(args, "--resume", l.id, "--await-initialize")
	} else {
		args = append(args, "--session-id", l.id)
	}
	return args, nil
}

// environment is the program's whole environment, in a folder, with a folder for temporary files. Each process has one of
// its own: process ids, by which the program names its files there, repeat where each has a PID namespace.
func (r *Runtime) environment(folder, temporary string) []string {
	set := map[string]string{
		"CLAUDE_CONFIG_DIR": r.configuration(),
		"TMPDIR":            temporary,
		// Tells when the program is idle, which nothing else tells reliably.
		"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
		// Nothing is sent anywhere but to the model, and nothing changes the program while it runs.
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_TELEMETRY":                        "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		// The checklist, which a program without a terminal otherwise does without.
		"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
		// What one chat's agent notes down must not reach another's.
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
	}
	maps.Copy(set, r.config.Set)
	if r.config.Key != "" {
		set["ANTHROPIC_API_KEY"] = string(r.config.Key)
	}
	if r.config.BaseURL != "" {
		set["ANTHROPIC_BASE_URL"] = r.config.BaseURL
	}
	env := process.Environment(process.Spec{Home: r.home(), Lookup: os.LookupEnv, Set: set})
	if !r.trusts(folder) {
		// The program looks at the project with git as it starts.
		env = append(env, process.GitGuard()...)
	}
	return env
}

// initialize is the first request of a process: it puts our hook before every tool call.
type initialize struct {
	Hooks map[string][]hookMatcher `json:"hooks"`
	// Append is added to the system prompt.
	Append string `json:"appendSystemPrompt,omitempty"`
	// Servers are the MCP servers that we are ourselves.
	Servers []string `json:"sdkMcpServers,omitempty"`
}

// hookMatcher without a matcher is for every tool.
type hookMatcher struct {
	Callbacks []string `json:"hookCallbackIds"`
	Timeout   int      `json:"timeout"`
	// OnFailure has to be "block": unless it is, a hook that fails lets the call run.
	OnFailure string `json:"onFailure"`
}

func greeting(appended string, hosts bool) initialize {
	var servers []string
	if hosts {
		servers = []string{runner.ToolHost}
	}
	return initialize{
		Servers: servers,
		Hooks:   map[string][]hookMatcher{"PreToolUse": {{Callbacks: []string{gateHook}, Timeout: hookWait, OnFailure: "block"}}},
		Append:  appended,
	}
}
