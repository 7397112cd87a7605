package bot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/store"
)

func long(mark string) string { return mark + strings.Repeat("x", nearLimit) }

func rawPicture(id, chat, from int64, album, caption string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"update_id":%d,"message":{"message_id":%d,"date":1,"chat":{"id":%d,"type":"group"},"from":{"id":%d,"first_name":"x"},"media_group_id":%q,"caption":%q}}`,
		id, id, chat, from, album, caption))
}

// heads shortens what a delivery said to its marks.
func heads(d *Delivery) string {
	out := ""
	for _, u := range d.Updates {
		text := u.Message.Text + u.Message.Caption
		out += text[:min(1, len(text))]
	}
	return out
}

func TestPiecesOfOneMessageAreHandledTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raws []json.RawMessage
		want []string // deliveries in order
	}{
		"a paste in three pieces": {
			[]json.RawMessage{rawMessage(1, -5, 1, long("a")), rawMessage(2, -5, 1, long("b")), rawMessage(3, -5, 1, "c")},
			[]string{"abc"},
		},
		"what follows the last piece stands alone": {
			[]json.RawMessage{rawMessage(1, -5, 1, long("a")), rawMessage(2, -5, 1, "b"), rawMessage(3, -5, 1, "c")},
			[]string{"ab", "c"},
		},
		"a paste that ends at the limit": {
			[]json.RawMessage{rawMessage(1, -5, 1, long("a"))},
			[]string{"a"},
		},
		"others write in between": {
			[]json.RawMessage{rawMessage(1, -5, 1, long("a")), rawMessage(2, -5, 2, "o"), rawMessage(3, -5, 1, "b")},
			[]string{"ab", "o"},
		},
		"a command is no piece": {
			[]json.RawMessage{rawMessage(1, -5, 1, long("a")), rawMessage(2, -5, 1, "/status")},
			[]string{"a", "/"},
		},
		"short messages": {
			[]json.RawMessage{rawMessage(1, -5, 1, "a"), rawMessage(2, -5, 1, "b")},
			[]string{"a", "b"},
		},
		"an album and a message": {
			[]json.RawMessage{rawPicture(1, -5, 1, "g", "a"), rawPicture(2, -5, 1, "g", "b"), rawPicture(3, -5, 1, "h", "c"), rawMessage(4, -5, 1, "d")},
			[]string{"ab", "c", "d"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, off)
			h := &ledger{}
			var got []string
			h.before = func(_ *store.Txn, d *Delivery) error {
				got = append(got, heads(d)) // one chat, so one worker at a time
				return nil
			}
			i := r.inbox(h)
			// Each piece arrives in a commit of its own, as from different polls.
			r.run(i.Run)
			for _, raw := range c.raws {
				accept(t, i, raw)
			}
			until(t, "an empty inbox", func() bool { return i.Stats().Handled == int64(len(c.raws)) })
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("deliveries %v, want %v", got, c.want)
			}
		})
	}
}

func TestHeldMessageDoesNotHoldOtherChats(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h, func(c *InboxConfig) { c.Merge = time.Hour })
	accept(t, i, rawMessage(1, 1, 1, long("a")), rawMessage(2, 2, 2, "other"), rawMessage(3, 1, 1, "/stop"))
	r.run(i.Run)
	until(t, "the other chat and the command", func() bool { return r.effects("other") == 1 && r.effects("/stop") == 1 })
	if r.effects(long("a")) != 0 {
		t.Error("the long message was not held")
	}
}

func TestUpdatesOfOneBatchKeepTheirOrderWhateverTheirIds(t *testing.T) {
	t.Parallel()
	r := newRig(t, off)
	h := &ledger{}
	i := r.inbox(h)
	accept(t, i, rawMessage(9, ada, ada, "first"), rawMessage(10, ada, ada, "second"), rawMessage(1, ada, ada, "third"))
	r.run(i.Run)
	until(t, "all three", func() bool { return len(h.in(ada)) == 3 })
	if got := fmt.Sprint(h.in(ada)); got != "[first second third]" {
		t.Errorf("order: %s", got)
	}
}
