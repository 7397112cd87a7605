package claude

import (
	"io"
	"os"
	"strings"
)

// memoryLimit bounds a project's instructions, in bytes.
const memoryLimit = 64 << 10

// memory is what a project's CLAUDE.md says to its agents. The program does not read it by itself, as it reads nothing
// of the project's configuration. Only a plain file counts: a link could lead to a secret, which would then stand in
// front of the model unasked.
func memory(folder string) string {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{"CLAUDE.md", ".claude/CLAUDE.md"} {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := root.Open(name)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(f, memoryLimit))
		_ = f.Close()
		if text := strings.ToValidUTF8(string(b), "\ufffd"); err == nil && strings.TrimSpace(text) != "" {
			return "The project's own instructions, from its file " + name + ":\n\n" + text
		}
	}
	return ""
}
