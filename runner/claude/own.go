package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drawbridge/policy"
)

// ownOutput reports whether a path is the output of a command or a tool of this very session, which the program keeps in
// our folders and tells the agent to read there.
func (s *session) ownOutput(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attached[path] || s.owns(path) // a person attached it
}

// owns is ownOutput without attachments. mu is held.
func (s *session) owns(path string) bool {
	real, ok := resolved(path)
	if !ok || s.token == "" {
		return false
	}
	for _, root := range []string{s.runtime.temporary(), filepath.Join(s.runtime.configuration(), "projects")} {
		base, ok := resolved(root)
		if !ok {
			continue
		}
		if rest, below := strings.CutPrefix(real, base+"/"); below {
			parts := strings.Split(rest, "/")
			i := slices.Index(parts, s.token)
			return i >= 0 && i+2 < len(parts) && (parts[i+1] == "tasks" || parts[i+1] == "tool-results")
		}
	}
	return false
}

// resolved is an absolute path behind all links; false where there is nothing or it is not written plainly.
func resolved(path string) (string, bool) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", false
	}
	real, err := filepath.EvalSymlinks(path)
	return real, err == nil
}

// scratch reports whether a call writes the agent's own notes of a plan, in our folder, while the chat plans. Claude Code
// has its plans written to a file before they are shown; nothing of the workspace changes by that.
func (c *conn) scratch(name string, raw json.RawMessage) bool {
	s := c.session
	if (name != "Write" && name != "Edit") || s.allowed().Interaction != policy.Plan {
		return false
	}
	path := parseInput(raw).FilePath
	dir := filepath.Join(s.runtime.configuration(), "plans")
	if filepath.Dir(path) != dir || filepath.Clean(path) != path || filepath.Ext(path) != ".md" {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil {
		return os.IsNotExist(err)
	}
	return info.Mode().IsRegular()
}
