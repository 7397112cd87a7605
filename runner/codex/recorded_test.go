package codex_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/runner"
)

// TestRecordedTurns plays what codex said in recorded turns, and holds what is made of it to golden files. Each question
// is answered as it was in the recording.
func TestRecordedTurns(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/turns/*.jsonl")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recorded turns, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			abs, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			record := filepath.Join(t.TempDir(), "record")
			answers := recordedAnswers(t, file)
			n, folder := 0, data(t)
			c := open(t, imitate(t, imitation{Turn: abs, Record: record}), opening{
				folder: folder,
				answer: func(ctx context.Context, q runner.Question) (runner.Answer, error) {
					if n++; !answers[n-1] {
						return no(ctx, q)
					}
					a, _ := yes(ctx, q)
					for _, query := range q.Queries {
						text := "7"
						if len(query.Options) > 0 {
							text = query.Options[0].Label
						}
						if a.Answers == nil {
							a.Answers = map[string][]string{}
						}
						a.Answers[query.ID] = []string{text}
					}
					return a, nil
				},
			})
			res, err := c.Turn(t.Context(), runner.Input{Turn: "turn", Text: "recorded"})
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			events, questions := c.seen()
			events = joined(events)
			for i := range events {
				if b := events[i].Background; b != nil {
					b.Started = time.Time{}
				}
			}
			got, err := json.MarshalIndent(map[string]any{
				"result": res, "error": failure, "events": events, "questions": questions, "answers": sentAnswers(t, record),
			}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "golden/"+name+".json", append(bytes.ReplaceAll(got, []byte(folder), []byte("$FOLDER")), '\n'))
		})
	}
}

// joined makes one delta of those that follow each other: how many there are is a matter of time.
func joined(events []runner.Event) []runner.Event {
	var out []runner.Event
	for _, e := range events {
		if n := len(out) - 1; n >= 0 && e.Kind == runner.ContentDelta && out[n].Kind == e.Kind && out[n].Item.ID == e.Item.ID {
			one := *out[n].Item
			one.Text += e.Item.Text
			out[n].Item = &one
			continue
		}
		out = append(out, e)
	}
	return out
}

// recordedAnswers are whether each question of a recording was answered with yes.
func recordedAnswers(t *testing.T, file string) map[int]bool {
	t.Helper()
	out := map[int]bool{}
	for _, f := range framesOf(t, file) {
		if f.Dir != ">" || f.Frame["result"] == nil {
			continue
		}
		r, _ := f.Frame["result"].(map[string]any)
		decision, _ := r["decision"].(string)
		permissions, _ := r["permissions"].(map[string]any)
		out[len(out)] = strings.HasPrefix(decision, "accept") || r["action"] == "accept" || r["answers"] != nil || len(permissions) > 0
	}
	return out
}

type recordedFrame struct {
	Dir   string `json:"dir"`
	Frame frame  `json:"frame"`
}

func framesOf(t *testing.T, file string) []recordedFrame {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []recordedFrame
	for line := range strings.Lines(string(b)) {
		var f recordedFrame
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// sentFrames are what the imitation was told.
func sentFrames(t *testing.T, file string) []frame {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []frame
	for line := range strings.Lines(string(b)) {
		f := frame{}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

func sentAnswers(t *testing.T, file string) []any {
	t.Helper()
	list := []any{}
	for _, f := range sentFrames(t, file) {
		if f["method"] == nil {
			delete(f, "id")
			list = append(list, f)
		}
	}
	return list
}
