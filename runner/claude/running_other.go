//go:build !linux

package claude

// terminals are the programs that people run in a folder.
type terminals struct {
	named   map[string]bool // sessions that they were told to continue
	unnamed bool            // there is one that was not told which
}

// running sees nothing on this system.
func running(string) terminals { return terminals{} }
