package formatting

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStripInternal(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"nothing", "a < b [x] `c`\n", "a < b [x] `c`\n"},
		{"plan", "Here:\n\n<proposed_plan>\n# Plan\n1. x\n</proposed_plan>\n\nShall I?", "Here:\n\nShall I?"},
		{"reminder within a line", "a<system-reminder>mind\nthis</system-reminder>b", "ab"},
		{"first thing", "<think>\nhm\n</think>\n\nAnswer", "Answer"},
		{"tool call", "Let me look.\n<function_calls>\n<invoke name=\"x\">\n<parameter name=\"a\">1</parameter>\n</invoke>\n</function_calls>\nDone", "Let me look.\nDone"},
		{"prefixed call", "x\n<" + "antml:invoke name=\"a\">1</" + "antml:invoke>\ny", "x\ny"},
		{"two in a row", "a\n<think>\nx\n</think>\n<think>y</think>\n\n\nb", "a\n\nb"},
		{"nested in itself", "a <tool_call>1 <tool_call>2</tool_call> 3</tool_call> b", "a  b"},
		{"attributes", `<tool_result id="1" ok>r</tool_result>x`, "x"},
		{"empty element", "a<tool_call/>b", "ab"},
		{"stray end", "reasoning</think>Answer", "reasoningAnswer"},
		{"other elements", "<details>x</details> <thinker> Vec<Think> <think2>", "<details>x</details> <thinker> Vec<Think> <think2>"},
		{"open at the end", "Text\n\n<proposed_plan>\nhalf of", "Text\n\n"},
		{"open tag at the end", "Text <tool_result id=\"", "Text "},
		{"partial tag at the end", "Text <system-rem", "Text "},
		{"partial end tag at the end", "<think>x</thi", ""},
		{"less-than at the end", "a <", "a <"},
		{"code span", "the `<system-reminder>` tag and ``a`<think>`` too", "the `<system-reminder>` tag and ``a`<think>`` too"},
		{"open code span", "the `<system-rem", "the `<system-rem"},
		{"code span over a line end", "a `b\n<think>` c", "a `b\n<think>` c"},
		{"stray backtick", "it`s\n<think>x</think>y\n\nz", "it`s\ny\n\nz"},
		{"fence", "```xml\n<tool_call>x</tool_call>\n```\n<tool_call>y</tool_call>", "```xml\n<tool_call>x</tool_call>\n```\n"},
		{"longer fence", "````\n```\n<think>\n```\n````\n<think>x", "````\n```\n<think>\n```\n````\n"},
		{"open fence", "~~~\n<think>\n[MODE_UPDATE] x\n", "~~~\n<think>\n[MODE_UPDATE] x\n"},
		{"fence in a quote", "> ```\n> <think>\n> ```\nx", "> ```\n> <think>\n> ```\nx"},
		{"fence in a block", "<think>\n```\n</think>\nAnswer <think>", "Answer "},
		{"escaped", `a \<think> b`, `a \<think> b`},
		{"mode notice", "a\n[MODE_UPDATE] plan\nb", "a\nb"},
		{"mode notice first", "[MODE_UPDATE] plan\n\nb", "b"},
		{"mode notice within a line", "a [MODE_UPDATE] b", "a [MODE_UPDATE] b"},
		{"half a mode notice", "a\n[MODE_UP", "a\n"},
		{"no mode notice", "a\n[MODE] x\n[M](y)", "a\n[MODE] x\n[M](y)"},
		{"tag too long", "<think " + strings.Repeat("x", 600) + ">y", "<think " + strings.Repeat("x", 600) + ">y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := StripInternal(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func protocol() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"word", " ", "\n", "\n\n", "`", "``", "```", "\n```\n", "~~~\n", "<", ">", "/", "</", "\\", "<think>", "</think>", "<think ", "<thinking>",
		"</thinking>", "<system-reminder>", "</system-reminder>", "<tool_call/>", "<proposed_plan>", "</proposed_plan>", "\n[MODE_UPDATE] x", "[MODE", "> ", "é",
	})
	return rapid.Map(rapid.SliceOfN(piece, 0, 40), func(s []string) string { return strings.Join(s, "") })
}

func stripInPieces(text string, size func(left int) int) string {
	var s Stripper
	var out strings.Builder
	for text != "" {
		n := size(len(text))
		out.WriteString(s.Append(text[:n]))
		text = text[n:]
	}
	return out.String() + s.Finish()
}

// However a text is cut, the same is left of it, and nothing that was let through is ever taken back.
func TestStripperIsStripInternal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := protocol().Draw(t, "text")
		got := stripInPieces(text, func(left int) int { return rapid.IntRange(1, left).Draw(t, "piece") })
		if want := StripInternal(text); got != want {
			t.Fatalf("%q in pieces\ngives %q\nwhole %q", text, got, want)
		}
	})
}

func FuzzStripInternal(f *testing.F) {
	f.Add("a <think>x</think> `<think>` b\n[MODE_UPDATE] y\n```\n<think>\n```\n", uint8(3))
	f.Add("<proposed_plan>\nhalf", uint8(1))
	f.Fuzz(func(t *testing.T, text string, piece uint8) {
		want := StripInternal(text)
		if got := stripInPieces(text, func(left int) int { return min(left, 1+int(piece)) }); got != want {
			t.Fatalf("in pieces %q, whole %q", got, want)
		}
		if !strings.ContainsAny(text, "<[") && want != text {
			t.Fatalf("%q became %q", text, want)
		}
		rest := text
		for _, r := range want {
			i := strings.IndexRune(rest, r)
			if r != '\ufffd' && i < 0 {
				t.Fatalf("%q holds what %q does not", want, text)
			}
			rest = rest[max(i, 0):]
		}
	})
}
