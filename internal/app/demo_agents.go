package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"drawbridge/internal/config"
	"drawbridge/internal/modeltest"
)

// demoKey is an invented key: the model behind it is scripted.
const demoKey = "sk-demo-no-real-key"

// demoScript is what the model of the demonstration does, with the tools of the runtime.
func demoScript(runtime, project string) (modeltest.Script, error) {
	switch runtime {
	case config.KindNative:
		return modeltest.Demo(), nil
	case config.KindCodex:
		return modeltest.DemoFor(codexTools()), nil
	case config.KindClaude:
		return modeltest.DemoFor(claudeTools(project)), nil
	}
	return nil, fmt.Errorf("app: demo runtime %q: want native, codex or claude", runtime)
}

// demoRuntime is the runtime's table of the configuration file; native needs none.
func demoRuntime(runtime, model string) string {
	switch runtime {
	case config.KindCodex:
		return fmt.Sprintf("[[runtime]]\nname = \"codex\"\nmodel = \"gpt-5.5\"\nbase_url = %q\nkey = %q\nlogin = \"\"\n", model, demoKey)
	case config.KindClaude:
		return fmt.Sprintf("[[runtime]]\nname = \"claude\"\nbase_url = %q\nkey = %q\nlogin = \"\"\n", strings.TrimSuffix(model, "/v1"), demoKey)
	}
	return ""
}

// demoFolder makes a folder for what the demonstration writes. Codex's own data may not lie below a folder for temporary
// files, which its sandbox lets agents write.
func demoFolder(runtime string) (string, error) {
	parent := ""
	if runtime == config.KindCodex {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("app: demo folder: %w", err)
		}
		parent = cache
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return "", fmt.Errorf("app: demo folder: %w", err)
		}
	}
	folder, err := os.MkdirTemp(parent, "drawbridge-demo-")
	if err != nil {
		return "", fmt.Errorf("app: demo folder: %w", err)
	}
	return folder, nil
}

// codexTools are Codex's. What is to be run leaves its sandbox, so that a person is asked.
func codexTools() modeltest.AgentTools {
	return modeltest.AgentTools{
		Read: func(path string) modeltest.Call {
			return modeltest.CallOf("exec_command", map[string]any{"cmd": "cat " + path})
		},
		Edit: func(path, old, better string) modeltest.Call {
			return modeltest.Call{Name: "apply_patch", Arguments: "*** Begin Patch\n*** Update File: " + path + "\n@@\n-\t" + old + "\n+\t" + better + "\n*** End Patch"}
		},
		Run: func(command string) modeltest.Call {
			return modeltest.CallOf("exec_command", map[string]any{
				"cmd": command, "login": false, "sandbox_permissions": "require_escalated", "justification": "May I run the tests?", "yield_time_ms": 30_000,
			})
		},
	}
}

// claudeTools are Claude Code's, which takes absolute paths.
func claudeTools(project string) modeltest.AgentTools {
	return modeltest.AgentTools{
		Read: func(path string) modeltest.Call {
			return modeltest.CallOf("Read", map[string]any{"file_path": filepath.Join(project, path)})
		},
		Edit: func(path, old, better string) modeltest.Call {
			return modeltest.CallOf("Edit", map[string]any{"file_path": filepath.Join(project, path), "old_string": old, "new_string": better})
		},
		Run: func(command string) modeltest.Call {
			return modeltest.CallOf("Bash", map[string]any{"command": command, "description": "Run the tests"})
		},
	}
}
