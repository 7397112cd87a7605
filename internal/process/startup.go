package process

import (
	"fmt"
	"os"
	"path/filepath"
)

// startup are the files of a home folder that shells and git read before they do what they are told.
func startup() []string {
	return []string{
		".profile", ".bash_profile", ".bash_login", ".bash_logout", ".bashrc", ".bash_aliases", ".inputrc", ".kshrc",
		".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".config/fish", ".gitconfig", ".config/git",
	}
}

// RemoveStartup takes them from an agent's own home folder. Only an agent can have put them there, with a command that was
// allowed somewhere else: every later command would do what they say too, in other chats and stricter modes, and no card
// would show it. It holds nobody who may write there meanwhile.
func RemoveStartup(home string) error {
	for _, name := range startup() {
		if err := os.RemoveAll(filepath.Join(home, name)); err != nil {
			return fmt.Errorf("process: remove start-up files: %w", err)
		}
	}
	return nil
}
