package formatting_test

import (
	"fmt"

	"drawbridge/formatting"
)

func ExampleRender() {
	for _, m := range formatting.Render("Run **this** on `*.go`:\n\n- [x] done\n", formatting.Options{}) {
		fmt.Println(m.Text)
		for _, e := range m.Entities {
			fmt.Println(e.Type, e.Offset, e.Length)
		}
	}
	// Output:
	// Run this on *.go:
	//
	// ☑ done
	// bold 4 4
	// code 12 4
}

func ExampleStream() {
	s := formatting.NewStream(formatting.Options{})
	for _, piece := range []string{"Now **this", " is** `imp", "ortant`."} {
		s.Append(piece)
		fmt.Println(s.Snapshot().Tail[0])
	}
	fmt.Println(len(s.Finish()))
	// Output:
	// {Now this [{bold 4 4   0 }]}
	// {Now this is imp [{bold 4 7   0 } {code 12 3   0 }]}
	// {Now this is important. [{bold 4 7   0 } {code 12 9   0 }]}
	// 1
}

func ExampleStripInternal() {
	fmt.Println(formatting.StripInternal("Done.\n<system-reminder>\nBe brief.\n</system-reminder>\nThe `<system-reminder>` tag stays."))
	// Output:
	// Done.
	// The `<system-reminder>` tag stays.
}

func ExampleVisible() {
	fmt.Println(formatting.Visible("rm\u200b -rf /tmp/x\u202e"))
	fmt.Println(formatting.Inline("first line\nsecond line", 12))
	// Output:
	// rm⟨U+200B⟩ -rf /tmp/x⟨U+202E⟩
	// first line⏎s… (+10 characters)
}
