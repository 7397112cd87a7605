package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"drawbridge/internal/process"
)

// ErrNotInstalled says that there is no codex where it was to be.
var ErrNotInstalled = errors.New("codex: not installed")

// program is where codex's own files are.
type program struct {
	path  string // the native program, without links
	bwrap string // the bubblewrap that comes with it; empty if none does
}

// find resolves the program. npm installs a wrapper that needs a node of its own, doubles the processes and, when it is
// killed, leaves the real program behind; so the program behind it is used.
func (r *Runtime) find() (program, error) {
	name := r.config.Program
	if !strings.ContainsRune(name, filepath.Separator) {
		path, _ := r.config.Lookup("PATH")
		found := ""
		for _, dir := range filepath.SplitList(path) {
			if file := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(file) {
				found = file
				break
			}
		}
		if found == "" {
			return program{}, fmt.Errorf("%w: %s is not in PATH", ErrNotInstalled, name)
		}
		name = found
	}
	path, err := filepath.EvalSymlinks(name)
	if err != nil || !executable(path) {
		return program{}, fmt.Errorf("%w: %s is not a program", ErrNotInstalled, name)
	}
	if filepath.Base(path) == "codex.js" {
		native, err := behindWrapper(path)
		if err != nil {
			return program{}, err
		}
		path = native
	}
	if path, err = filepath.Abs(path); err != nil {
		return program{}, fmt.Errorf("codex: find %s: %w", name, err)
	}
	p := program{path: path}
	if b := filepath.Join(filepath.Dir(filepath.Dir(path)), "codex-resources", "bwrap"); executable(b) {
		p.bwrap = b
	}
	return p, nil
}

// behindWrapper finds the native program of npm's package: …/@openai/codex/bin/codex.js stands beside, or above,
// @openai/codex-PLATFORM.
func behindWrapper(wrapper string) (string, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	pkg := "codex-" + runtime.GOOS + "-" + arch
	root := filepath.Dir(filepath.Dir(wrapper))
	for _, dir := range []string{filepath.Join(filepath.Dir(root), pkg), filepath.Join(root, "node_modules", "@openai", pkg)} {
		list, err := filepath.Glob(filepath.Join(dir, "vendor", "*", "bin", "codex"))
		if err == nil && len(list) == 1 && executable(list[0]) {
			return list[0], nil
		}
	}
	return "", fmt.Errorf("%w: the program behind %s is missing; install it again", ErrNotInstalled, wrapper)
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (r *Runtime) codexHome() string { return filepath.Join(r.config.Data, "codex") }
func (r *Runtime) home() string      { return filepath.Join(r.config.Data, "home") }
func (r *Runtime) scratch() string   { return filepath.Join(r.config.Data, "tmp") }

// attachments is for what people attach, which commands in the sandbox can read.
func (r *Runtime) attachments() string { return filepath.Join(r.config.Data, "attachments") }

// prepare makes the folders that codex runs in, and links the login. What stands in our CODEX_HOME beside that is
// codex's own: sessions, logs, caches. Configuration and rules in it, and start-up files of shells in our home, can only
// come from an agent that left its sandbox, and are removed.
func (r *Runtime) prepare() error {
	for _, dir := range []string{r.codexHome(), r.home(), r.scratch(), r.attachments()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("codex: prepare: %w", err)
		}
	}
	for _, name := range []string{"config.toml", "rules", "hooks.json", "hooks", "requirements.toml", "managed_config.toml"} {
		if err := os.RemoveAll(filepath.Join(r.codexHome(), name)); err != nil {
			return fmt.Errorf("codex: prepare: %w", err)
		}
	}
	if err := process.RemoveStartup(r.home()); err != nil {
		return fmt.Errorf("codex: prepare: %w", err)
	}
	link := filepath.Join(r.codexHome(), "auth.json")
	if r.config.Login == "" {
		return nil // a login that was made in this home stays
	}
	if target, err := os.Readlink(link); err == nil && target == r.config.Login {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("codex: prepare: %w", err)
	}
	if err := os.Symlink(r.config.Login, link); err != nil {
		return fmt.Errorf("codex: prepare: %w", err)
	}
	return nil
}

func (r *Runtime) environment() []string {
	set := maps.Clone(r.config.Environment)
	if set == nil {
		set = map[string]string{}
	}
	maps.Copy(set, gitGuard()) // codex runs git by itself
	set["CODEX_HOME"] = r.codexHome()
	set["TMPDIR"] = r.scratch()
	return process.Environment(process.Spec{Home: r.home(), Lookup: r.config.Lookup, Set: set})
}

// gitGuard keeps a project's .git/config from naming programs that git starts, whoever runs it.
func gitGuard() map[string]string {
	set := map[string]string{}
	for _, e := range process.GitGuard() {
		name, value, _ := strings.Cut(e, "=")
		set[name] = value
	}
	return set
}

// disabled are codex's features that act without asking, load what a project or a server offers, or are of no use without
// its own screens.
func disabled() []string {
	return []string{
		"unified_exec_tty",                                                                 // input to an open terminal is never asked
		"hooks",                                                                            // they could answer before us
		"view_image",                                                                       // reads any file without asking
		"apps", "plugins", "remote_plugin", "tool_suggest", "skill_mcp_dependency_install", // bring tools that nobody listed
		"computer_use", "browser_use", "browser_use_external", "browser_use_full_cdp_access", "in_app_browser",
		"in_app_local_automation", "image_generation",
		"goals",                        // turns that start by themselves
		"unbounded_connection_retries", // a network error is to be told within seconds
	}
}

// arguments are the app-server's. A value after -c is TOML, of which JSON's strings, numbers and lists are a part.
func (r *Runtime) arguments(p program) []string {
	args := []string{"app-server"}
	for _, f := range disabled() {
		args = append(args, "--disable", f)
	}
	args = append(args, "--enable", "default_mode_request_user_input")
	set := func(key, value string) { args = append(args, "-c", key+"="+value) }
	set("approval_policy", quote(askEscalations)) // a user's "untrusted" would keep the app-server from starting
	set("default_permissions", quote(":read-only"))
	set("permissions."+profileRead, toml(r.profile(profileRead, p, guards{})))
	set("web_search", quote("disabled")) // the hosted search never asks
	set("shell_environment_policy.ignore_default_excludes", "false")
	set("shell_environment_policy.set", table(gitGuard())) // or else what is named like a key is left out of them
	set("tools.update_plan.enabled", "true")
	set("cli_auth_credentials_store", quote("file"))
	set("analytics.enabled", "false")
	set("feedback.enabled", "false")
	set("check_for_update_on_startup", "false")
	set("history.persistence", quote("none"))
	set("suppress_unstable_features_warning", "true")
	if m := r.config.Model; m != "" {
		set("model", quote(m))
	}
	if v := r.config.Provider; v != nil {
		table := "{name=" + quote(v.Name) + ",base_url=" + quote(v.URL) + `,wire_api="responses",supports_websockets=false`
		if v.Key != "" {
			table += ",env_key=" + quote(v.Key)
		}
		set("model_providers.drawbridge", table+"}")
		set("model_provider", quote("drawbridge"))
	}
	return args
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string can be written
	}
	return string(b)
}

// key is a part of a dotted key.
func key(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return s
	}
	return quote(s)
}

func table(m map[string]string) string {
	var q []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		q = append(q, quote(k)+"="+quote(m[k]))
	}
	return "{" + strings.Join(q, ",") + "}"
}

// spawn starts the app-server as a process.
func (r *Runtime) spawn(ctx context.Context, args []string) (*child, error) {
	wrap, err := r.outer(ctx)
	if err != nil {
		r.config.Logger.Warn("codex runs without its outer sandbox", "err", err)
	}
	return startChild(append(wrap, args...), r.home(), r.environment())
}

// lookPath finds a program of the system.
func lookPath(name string) string {
	if p, err := exec.LookPath(name); err == nil && filepath.IsAbs(p) {
		return p
	}
	return ""
}
