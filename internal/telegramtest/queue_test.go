package telegramtest

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever a client asks for, an update is handed out until an offset above its id was given or a day has passed, in
// order and never again after.
func TestUpdateIsHandedOutUntilConfirmedOrADayOld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_780_000_000, 0)
		s := New(Config{Now: func() time.Time { return now }})
		type known struct {
			text string
			at   time.Time
		}
		var waiting []known
		var seen []int64 // ids that the client was given last
		made := 0
		t.Repeat(map[string]func(*rapid.T){
			"happen": func(*rapid.T) {
				made++
				text := strconv.Itoa(made)
				s.mu.Lock()
				s.push("message", &MessageView{Text: text, Chat: &ChatView{}})
				s.mu.Unlock()
				waiting = append(waiting, known{text, now})
			},
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "hours")) * time.Hour)
				seen = nil // what is confirmed later may be of another sequence
			},
			"poll": func(t *rapid.T) {
				for len(waiting) > 0 && now.Sub(waiting[0].at) >= 24*time.Hour {
					waiting = waiting[1:]
				}
				p := params{values: map[string]string{}}
				if len(seen) > 0 {
					n := rapid.IntRange(0, len(seen)).Draw(t, "confirmed")
					p.values["offset"] = strconv.FormatInt(seen[0]+int64(n), 10)
					waiting = waiting[min(n, len(waiting)):]
				}
				limit := rapid.IntRange(1, 5).Draw(t, "limit")
				p.values["limit"] = strconv.Itoa(limit)
				result, err := (&call{s: s, ctx: t.Context(), params: p}).getUpdates()
				if err != nil {
					t.Fatal(err)
				}
				got, ok := result.([]json.RawMessage)
				if !ok || len(got) != min(limit, len(waiting)) {
					t.Fatalf("%d updates came, %d wait and the limit is %d", len(got), len(waiting), limit)
				}
				seen = nil
				for i, raw := range got {
					var u struct {
						ID      int64       `json:"update_id"`
						Message MessageView `json:"message"`
					}
					if err := json.Unmarshal(raw, &u); err != nil {
						t.Fatal(err)
					}
					if u.Message.Text != waiting[i].text {
						t.Fatalf("update %d is %q, want %q", i, u.Message.Text, waiting[i].text)
					}
					seen = append(seen, u.ID)
				}
			},
		})
	})
}
