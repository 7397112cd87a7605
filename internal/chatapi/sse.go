package chatapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// maxEvent bounds one event of a stream. Some servers send a whole file's content as one.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("an event of the stream is too long")

// events yields the data of a stream of server-sent events (WHATWG HTML, 9.2.6): lines end with LF, CR LF or CR, the data
// lines of one event are joined by LF, comments and other fields are skipped. The last event counts also without the
// empty line that should follow it: a cut is noticed from what is in the events. A reading error comes last.
func events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := lineReader{Reader: bufio.NewReaderSize(r, 32<<10)}
		var data []byte
		some := false
		for {
			line, err := lines.line(maxEvent - len(data))
			if field, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				if some {
					data = append(data, '\n')
				}
				data = append(data, bytes.TrimPrefix(field, []byte(" "))...)
				some = true
			}
			if some && (err != nil || len(line) == 0) {
				if (err == nil || errors.Is(err, io.EOF)) && !yield(data, nil) {
					return
				}
				data, some = nil, false
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// lineReader reads lines that end with LF, CR LF or CR.
type lineReader struct {
	*bufio.Reader
	// afterCR says that a LF now still belongs to the line before: it may come later than the CR, and waiting for it
	// would hold the line back.
	afterCR bool
}

// line reads a line without its end. With an error, it returns what there was before it.
func (r *lineReader) line(limit int) ([]byte, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return line, err
		}
		skip := r.afterCR && b == '\n'
		r.afterCR = b == '\r'
		switch {
		case skip:
		case b == '\n', b == '\r':
			return line, nil
		case len(line) >= limit:
			return line, errEventTooLong
		default:
			line = append(line, b)
		}
	}
}
