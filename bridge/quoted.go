package bridge

import "strings"

// Quoted marks every line of a text that is not the writer's own, so that nothing in it can pass for what stands around
// it. Whatever some reader may take for the end of a line counts as one.
func Quoted(text string) string {
	lines := strings.NewReplacer("\r\n", "\n> ", "\n", "\n> ", "\r", "\n> ", "\v", "\n> ", "\f", "\n> ", "\u0085", "\n> ", "\u2028", "\n> ", "\u2029", "\n> ")
	return "> " + lines.Replace(text)
}
