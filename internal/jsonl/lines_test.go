package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/jsonl"
)

func reader(text string, limit int) *jsonl.Lines {
	return jsonl.NewLines(jsonl.LinesConfig{In: io.NopCloser(strings.NewReader(text)), Limit: limit})
}

// readAll says what comes out, errors about frames as "! reason".
func readAll(t *testing.T, l *jsonl.Lines) (got []string) {
	t.Helper()
	for {
		frame, err := l.Read()
		bad := &jsonl.FrameError{}
		switch {
		case errors.As(err, &bad):
			got = append(got, "! "+bad.Reason)
		case errors.Is(err, io.EOF):
			return got
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string(frame))
		}
	}
}

func TestReadSkipsWhatIsNoFrame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"one a line", "{\"a\":1}\n[2]\n", []string{`{"a":1}`, `[2]`}},
		{"line ends of Windows and blanks", " {} \r\n\r\n \n1\r\n", []string{`{}`, `1`}},
		{"a last line without an end", "{}\n{\"b\":2}", []string{`{}`, `{"b":2}`}},
		{"half a frame at the end", "{}\n{\"b\":", []string{`{}`, "! not JSON"}},
		{"words between frames", "Debugger attached.\n{}\n", []string{"! not JSON", `{}`}},
		{"two in a line", "{}{}\n{}\n", []string{"! not JSON", `{}`}},
		{"one over two lines", "{\n}\n{}\n", []string{"! not JSON", "! not JSON", `{}`}},
		{"too long", `"` + strings.Repeat("x", 40) + "\"\n{}\n", []string{"! longer than 32 bytes", `{}`}},
		{"just fits", `"` + strings.Repeat("x", 30) + "\"\r\n{}\n", []string{`"` + strings.Repeat("x", 30) + `"`, `{}`}},
		{"a byte too long", `"` + strings.Repeat("x", 31) + "\"\n", []string{"! longer than 32 bytes"}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := readAll(t, reader(c.text, 32)); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("read %q, want %q", got, c.want)
			}
		})
	}
}

func TestAFrameErrorShowsOnlyABoundedHead(t *testing.T) {
	t.Parallel()
	_, err := reader("secret "+strings.Repeat("x", 1000)+"\n", 0).Read()
	bad := &jsonl.FrameError{}
	if !errors.As(err, &bad) || len(bad.Head) != 200 || bad.Size != 1007 || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v: %+v", err, bad)
	}
}

// endless gives the same byte for ever, but for a line's end at last.
type endless struct{ left int }

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return copy(b, "\n"), nil
	}
	n := min(len(b), e.left)
	e.left -= n
	for i := range b[:n] {
		b[i] = 'x'
	}
	return n, nil
}

func TestALineFarOverTheLimitIsReportedWithItsSize(t *testing.T) {
	t.Parallel()
	l := jsonl.NewLines(jsonl.LinesConfig{In: io.NopCloser(&endless{20 << 20}), Limit: 1 << 20})
	_, err := l.Read()
	bad := &jsonl.FrameError{}
	if !errors.As(err, &bad) || bad.Size != 20<<20+1 || bad.Head != "" {
		t.Errorf("error %v: %+v", err, bad)
	}
}

func TestWritersDoNotMixTheirFrames(t *testing.T) {
	t.Parallel()
	program, config := pipes(t)
	l := jsonl.NewLines(config)
	const writers, each = 10, 50
	for i := range writers {
		go func() {
			for range each {
				if err := l.Write(map[string]any{"writer": i, "text": strings.Repeat("<é>", 1000)}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for range writers * each {
		if line := program.next(); !json.Valid([]byte(line)) || !strings.Contains(line, "<é>") {
			t.Fatalf("no frame: %.100q", line)
		}
	}
}

func TestAFrameThatCannotBeEncodedBreaksNothing(t *testing.T) {
	t.Parallel()
	program, config := pipes(t)
	l := jsonl.NewLines(config)
	if err := l.Write(func() {}); err == nil {
		t.Error("a function was written")
	}
	done := make(chan error, 1)
	go func() { done <- l.Write(1) }()
	if line := program.next(); line != "1" {
		t.Errorf("wrote %q", line)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAProgramThatDoesNotReadCannotHoldAWriterForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, config := pipes(t)
		config.WriteTimeout = time.Minute
		l := jsonl.NewLines(config)
		start := time.Now()
		wantError(t, l.Write("first"), jsonl.ErrStuck)
		wantError(t, l.Write("second"), jsonl.ErrStuck)
		if d := time.Since(start); d != time.Minute {
			t.Errorf("two writes took %s, want only the first one's minute", d)
		}
	})
}

func TestAFullPipeOfTheSystemEndsAWriteToo(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	l := jsonl.NewLines(jsonl.LinesConfig{In: r, Out: w, WriteTimeout: 20 * time.Millisecond})
	wantError(t, l.Write(strings.Repeat("x", 10<<20)), jsonl.ErrStuck)
}

func TestCloseEndsReadingFromAPipeOfTheSystem(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = w.Close(), in.Close() }()
	l := jsonl.NewLines(jsonl.LinesConfig{In: r, Out: out})
	done := make(chan error, 1)
	go func() {
		_, err := l.Read()
		done <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantError(t, <-done, os.ErrClosed)
}

func TestARecordingHoldsBothDirections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		program, config := pipes(t)
		var b bytes.Buffer
		config.Record, config.Limit = jsonl.NewRecorder(&b), 20
		l := jsonl.NewLines(config)
		go func() {
			program.next()
			program.say(`{"id":1}`, "oops", `"`+strings.Repeat("x", 30)+`"`)
			program.exit()
		}()
		if err := l.Write(json.RawMessage("{\"id\":\n1}")); err != nil {
			t.Error(err)
		}
		readAll(t, l)
		want := `{"t":"2000-01-01T00:00:00Z","dir":"out","frame":{"id":1}}
{"t":"2000-01-01T00:00:00Z","dir":"in","frame":{"id":1}}
{"t":"2000-01-01T00:00:00Z","dir":"in","raw":"oops"}
{"t":"2000-01-01T00:00:00Z","dir":"in","skipped":33}
`
		if b.String() != want || config.Record.Err() != nil {
			t.Errorf("recorded (%v)\n%s\nwant\n%s", config.Record.Err(), &b, want)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestARecordingThatFailsDisturbsNothing(t *testing.T) {
	t.Parallel()
	r := jsonl.NewRecorder(full{})
	l := jsonl.NewLines(jsonl.LinesConfig{In: io.NopCloser(strings.NewReader("1\n2\n")), Record: r})
	if got := readAll(t, l); fmt.Sprint(got) != "[1 2]" || r.Err() == nil {
		t.Errorf("read %q, recorder's error %v", got, r.Err())
	}
}

func FuzzLines(f *testing.F) {
	for _, s := range []string{"{}\n", "{\"a\":1}\r\n\n[1,2]", "x\n{}\n", "\"\xff\"\n", "1 2\n", strings.Repeat("[", 100) + "\n{}", "\r\r\n"} {
		f.Add([]byte(s), 16)
	}
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		limit = 1 + (limit&0xffff)%4096
		// The simplest reading there is.
		var want []string
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			body, frame := bytes.TrimRight(line, "\r\n"), bytes.TrimSpace(line)
			switch {
			case len(body) > limit:
				want = append(want, fmt.Sprintf("! longer than %d bytes", limit))
			case len(frame) == 0:
			case json.Valid(frame):
				want = append(want, string(frame))
			default:
				want = append(want, "! not JSON")
			}
		}
		if got := readAll(t, reader(string(text), limit)); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("read %q, want %q", got, want)
		}
	})
}
