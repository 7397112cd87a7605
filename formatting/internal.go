package formatting

import (
	"strings"
)

// internalTags are the elements that agents and the programs around them write for each other: plans that are shown as a
// card, reminders that a program puts into a conversation, tool calls that a model wrote as text, and private reasoning
// (`<think>`), which models behind chat-completion servers put in front of their answers.
var internalTags = [...]string{
	"proposed_plan", "system-reminder", "system_reminder", "environment_context", "user_instructions",
	"tool_call", "tool_calls", "tool_result", "tool_results", "tool_response", "tool_use", "tool_use_error",
	"function_call", "function_calls", "function_result", "function_results", "invoke",
	"antml:function_calls", "antml:invoke", "antml:thinking", "think", "thinking", "task-notification",
	"local-command-stdout", "local-command-stderr", "local-command-caveat", "command-name", "command-message", "command-args",
}

// modeNotice begins a line that tells an agent about a change of mode.
const modeNotice = "[MODE_UPDATE]"

// maxTag is how long an opening tag may be with its attributes, in bytes; what is longer is text.
const maxTag = 512

// maxSpan is how far a code span may reach, in bytes, so that one stray backtick cannot hold back a long text.
const maxSpan = 4096

// StripInternal removes what is meant for an agent and not for a reader: plan, reminder, reasoning and tool-protocol
// blocks with their tags, and mode notices with their line. Quoted code, in fences and in code spans, is left alone. In a
// text that is still being written a block that has begun hides the rest, and so does the beginning of a tag at the very
// end. A text without any of these comes back unchanged.
func StripInternal(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	var s Stripper
	return s.Append(text) + s.Finish()
}

// Stripper is StripInternal for a text that arrives in pieces: what Append and Finish return is together what
// StripInternal returns for the whole, however it was cut. The zero value is ready. It holds back only what is not yet
// decided: a tag, a code span or the first characters of a line.
type Stripper struct {
	held    string // not yet decided
	fence   string // the fence that is open
	block   string // the element that is being removed
	depth   int    // how often block has begun within itself
	notice  bool   // in a line that is being removed
	midLine bool
	started bool // something was let through
	breaks  int  // line ends at the end of what was let through
	removed bool // something was removed at the end of what was let through
	before  int  // line ends before that
	after   int  // line ends seen after that
	out     strings.Builder
}

// Append adds a piece and returns what can be shown because of it.
func (s *Stripper) Append(piece string) string {
	s.held += piece
	s.run(false)
	return s.take()
}

// Finish returns the rest, for a text that has ended.
func (s *Stripper) Finish() string {
	s.run(true)
	s.held = ""
	return s.take()
}

func (s *Stripper) take() string {
	out := s.out.String()
	s.out.Reset()
	return out
}

// run decides as much of what is held as it can.
func (s *Stripper) run(last bool) {
	for s.held != "" {
		n, ok := s.step(last)
		if !ok {
			return
		}
		s.held = s.held[n:]
	}
}

// step decides the front of what is held and says how long that was, or that more is needed.
func (s *Stripper) step(last bool) (int, bool) {
	switch {
	case s.block != "":
		return s.inBlock()
	case s.notice:
		end := strings.IndexByte(s.held, '\n')
		if end < 0 {
			return len(s.held), true
		}
		s.notice, s.midLine = false, false
		s.remove()
		return end + 1, true
	case !s.midLine:
		return s.lineStart(last)
	case s.fence != "":
		return s.untilLineEnd(), true
	}
	i := strings.IndexAny(s.held, "<`\n\\")
	if i != 0 {
		if i < 0 {
			i = len(s.held)
		}
		s.emit(s.held[:i])
		return i, true
	}
	switch s.held[0] {
	case '\n':
		s.emit("\n")
		s.midLine = false
		return 1, true
	case '\\':
		if len(s.held) == 1 && !last {
			return 0, false
		}
		n := min(2, len(s.held))
		if n == 2 && s.held[1] != '<' && s.held[1] != '`' {
			n = 1
		}
		s.emit(s.held[:n])
		return n, true
	case '`':
		return s.codeSpan(last)
	}
	return s.tag(last)
}

// untilLineEnd lets the rest of a line through.
func (s *Stripper) untilLineEnd() int {
	end := strings.IndexByte(s.held, '\n')
	if end < 0 {
		s.emit(s.held)
		return len(s.held)
	}
	s.emit(s.held[:end+1])
	s.midLine = false
	return end + 1
}

// lineStart looks for a fence or a notice at the start of a line.
func (s *Stripper) lineStart(last bool) (int, bool) {
	text := strings.TrimLeft(s.held, " \t>")
	lead := len(s.held) - len(text)
	if text == "" && !last {
		return 0, false
	}
	if mayFence(text) {
		end := strings.IndexByte(text, '\n')
		if end < 0 {
			if !last {
				return 0, false
			}
			end = len(text)
		}
		s.fenceLine(text[:end])
		if s.fence != "" {
			s.midLine = true
			return s.untilLineEnd(), true
		}
	} else if s.fence == "" && text != "" {
		if strings.HasPrefix(text, modeNotice) {
			s.notice = true
			return lead, true
		}
		if strings.HasPrefix(modeNotice, text) {
			if last && len(text) > 1 {
				return len(s.held), true
			}
			if !last {
				return 0, false
			}
		}
	}
	s.midLine = true
	if s.fence == "" && lead > 0 {
		s.emit(s.held[:lead])
		return lead, true
	}
	return 0, true
}

// mayFence reports whether a line that begins like this can be a fence.
func mayFence(text string) bool {
	if text == "" || text[0] != '`' && text[0] != '~' {
		return false
	}
	run := len(text) - len(strings.TrimLeft(text, text[:1]))
	return run >= 3 || run == len(text)
}

// fenceLine opens or closes a fence if a line, without its indentation, is one.
func (s *Stripper) fenceLine(line string) {
	run := line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
	rest := line[len(run):]
	switch {
	case len(run) < 3:
	case s.fence == "" && (line[0] == '~' || !strings.Contains(rest, "`")):
		s.fence = run
	case s.fence != "" && strings.HasPrefix(run, s.fence) && strings.TrimSpace(rest) == "":
		s.fence = ""
	}
}

// codeSpan lets a code span through, or, if it does not end within its paragraph, the rest of the line: a reader takes
// what follows a backtick as quoted.
func (s *Stripper) codeSpan(last bool) (int, bool) {
	run := len(s.held) - len(strings.TrimLeft(s.held, "`"))
	if run == len(s.held) && !last {
		return 0, false
	}
	if run >= maxSpan {
		return s.untilLineEnd(), true
	}
	paragraph, complete := s.held, last
	if len(paragraph) > maxSpan {
		paragraph, complete = paragraph[:maxSpan], true
	}
	if end := strings.Index(paragraph, "\n\n"); end >= 0 {
		paragraph, complete = paragraph[:end], true
	}
	end := codeEnd(paragraph[run:], run)
	if end >= 0 && (run+end < len(paragraph) || complete) {
		s.emit(s.held[:run+end])
		return run + end, true
	}
	if !complete {
		return 0, false
	}
	return s.untilLineEnd(), true
}

// tag removes a tag of an internal element at the front of what is held, and begins to remove what it holds.
func (s *Stripper) tag(last bool) (int, bool) {
	name, closing, state := readTag(s.held)
	switch {
	case state == tagNone:
		s.emit("<")
		return 1, true
	case state == tagPartial && last && len(s.held) > 1:
		return len(s.held), true
	case state == tagPartial && last:
		s.emit("<")
		return 1, true
	case state == tagPartial:
		return 0, false
	}
	end := strings.IndexByte(s.held, '>')
	s.remove()
	if !closing && s.held[end-1] != '/' {
		s.block, s.depth = name, 1
	}
	return end + 1, true
}

type tagState int

const (
	tagNone tagState = iota
	tagPartial
	tagWhole
)

// readTag reads a tag of an internal element from the front of s, which begins with "<".
func readTag(s string) (name string, closing bool, state tagState) {
	body := s[1:]
	body, closing = strings.CutPrefix(body, "/")
	for _, tag := range internalTags {
		switch {
		case strings.HasPrefix(tag, body):
			state = tagPartial
		case strings.HasPrefix(body, tag) && strings.IndexByte(" \t\r\n>/", body[len(tag)]) >= 0:
			end := strings.IndexByte(s, '>')
			switch {
			case end >= 0 && end < maxTag:
				return tag, closing, tagWhole
			case end < 0 && len(s) < maxTag:
				return tag, closing, tagPartial
			}
			return "", false, tagNone
		}
	}
	return "", closing, state
}

// inBlock drops what stands in an element that is being removed, up to its end.
func (s *Stripper) inBlock() (int, bool) {
	i := strings.IndexByte(s.held, '<')
	if i < 0 {
		return len(s.held), true
	}
	if i > 0 {
		return i, true
	}
	name, closing, state := readTag(s.held)
	switch {
	case state == tagPartial:
		return 0, false
	case state == tagNone || name != s.block:
		return 1, true
	}
	end := strings.IndexByte(s.held, '>')
	switch {
	case closing:
		s.depth--
	case s.held[end-1] != '/':
		s.depth++
	}
	if s.depth == 0 {
		s.block = ""
	}
	return end + 1, true
}

// emit lets text through. Of the line ends before and after something that was removed the larger number is kept.
func (s *Stripper) emit(text string) {
	for s.removed && text != "" {
		if text[0] != '\n' {
			s.removed = false
			break
		}
		if s.after++; s.after > s.before && s.after <= 2 && s.started {
			s.out.WriteByte('\n')
			s.breaks++
		}
		text = text[1:]
	}
	if text == "" {
		return
	}
	s.started = true
	if rest := strings.TrimRight(text, "\n"); rest == "" {
		s.breaks += len(text)
	} else {
		s.breaks = len(text) - len(rest)
	}
	s.out.WriteString(text)
}

// remove notes that something was removed here.
func (s *Stripper) remove() { s.removed, s.before, s.after = true, s.breaks, 0 }
