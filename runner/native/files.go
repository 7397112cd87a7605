package native

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"drawbridge/policy"
	"drawbridge/runner"
)

const (
	// resultLimit bounds a tool's result in bytes.
	resultLimit = 30_000
	// lineLimit bounds one line of a file that is shown.
	lineLimit = 2000
	// readLines is how many lines read_file reads unless told.
	readLines = 2000
	// listLimit is how many names list_dir and glob show.
	listLimit = 1000
)

func planReadFile(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Path   string `json:"path"`
		Offset whole  `json:"offset"`
		Limit  whole  `json:"limit"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	f, path, c, err := t.open(in.Path)
	if err != nil {
		return nil, err
	}
	if in.Limit <= 0 {
		in.Limit = readLines
	}
	return &action{
		item:       runner.Item{Kind: runner.ItemToolCall, Title: "Read " + path},
		question:   runner.Question{Kind: runner.KindTool},
		categories: c,
		drop:       func() { _ = f.Close() },
		do: func(ctx context.Context, _ *runner.Item) (string, error) {
			return numbered(ctx, f, int(max(1, in.Offset)), int(in.Limit))
		},
	}, nil
}

// numbered reads count lines from the line first on.
func numbered(ctx context.Context, r io.Reader, first, count int) (string, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	if head, _ := br.Peek(8 << 10); bytes.IndexByte(head, 0) >= 0 {
		return "", errors.New("it is not a text file")
	}
	var b strings.Builder
	for n := 1; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		line, more, err := boundedLine(br)
		if errors.Is(err, io.EOF) {
			if b.Len() == 0 {
				return fmt.Sprintf("[The file has %d lines; there is nothing from line %d on.]", n-1, first), nil
			}
			return b.String(), nil
		} else if err != nil {
			return "", err
		}
		if n < first {
			continue
		}
		if n >= first+count || b.Len()+len(line) > resultLimit {
			fmt.Fprintf(&b, "[The file goes on; read from offset %d.]\n", n)
			return b.String(), nil
		}
		if more {
			line += "… [line cut]"
		}
		fmt.Fprintf(&b, "%6d\t%s\n", n, line)
	}
}

// boundedLine reads a line without its end; more says that it was longer than lineLimit. io.EOF comes only without a
// line.
func boundedLine(br *bufio.Reader) (line string, more bool, err error) {
	var kept []byte
	some := false
	for {
		part, err := br.ReadSlice('\n')
		some = some || len(part) > 0
		if room := lineLimit - len(kept); len(part) > 0 {
			more = more || len(bytes.TrimRight(part, "\r\n")) > room
			kept = append(kept, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || !some) {
			return "", false, err
		}
		return strings.ToValidUTF8(strings.TrimRight(string(kept), "\r\n"), "\ufffd"), more, nil
	}
}

func planListDir(t *turn, arguments json.RawMessage) (*action, error) {
	var in struct {
		Path string `json:"path"`
	}
	if err := decode(arguments, &in); err != nil {
		return nil, err
	}
	if in.Path == "" {
		in.Path = "."
	}
	path, err := t.local(in.Path)
	if err != nil {
		return nil, err
	}
	return &action{
		item:       runner.Item{Kind: runner.ItemToolCall, Title: "List " + path},
		question:   runner.Question{Kind: runner.KindTool},
		categories: policy.ClassifyPath(policy.OpRead, path, t.session.workspace()),
		do: func(context.Context, *runner.Item) (string, error) {
			entries, err := fs.ReadDir(t.session.root.FS(), toSlash(path))
			if err != nil {
				return "", explain(in.Path, err)
			}
			var names []string
			for _, e := range entries {
				name := e.Name()
				switch {
				case e.IsDir():
					name += "/"
				case e.Type()&fs.ModeSymlink != 0:
					name += " (symbolic link)"
				}
				names = append(names, name)
			}
			return listing(names, "The folder is empty."), nil
		},
	}, nil
}

// listing is names, one a line, bounded.
func listing(names []string, none string) string {
	if len(names) == 0 {
		return "[" + none + "]"
	}
	var b strings.Builder
	for i, n := range names {
		if i == listLimit || b.Len()+len(n) > resultLimit {
			fmt.Fprintf(&b, "[%d more are left out.]\n", len(names)-i)
			break
		}
		b.WriteString(n + "\n")
	}
	return b.String()
}
