package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"drawbridge/internal/telegramtest"
)

const (
	restLook  = 100 * time.Millisecond // how often the chat is looked at
	restAfter = time.Second            // without a change, a chat is at rest
	restFirst = 10 * time.Second       // how long the bot may take for its first word
	restMost  = 5 * time.Minute        // a first build of the tests may take minutes
)

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// rest holds up input that nobody types until found reports true, or the bot has nothing more to do but wait for a person:
// lines that come all at once would otherwise tap buttons that are not there yet, and their end would end the demo in the
// middle of a turn. It never holds up what a person types.
func (t *terminal) rest(ctx context.Context, found func() bool) {
	if !t.piped {
		return
	}
	begun, changed, last := time.Now(), time.Now(), ""
	for time.Since(begun) < restMost && !found() {
		chat, answered, busy := t.state(ctx)
		if chat != last {
			changed, last = time.Now(), chat
		}
		if time.Since(changed) >= restAfter && !busy && (answered || time.Since(begun) >= restFirst) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restLook):
		}
	}
}

// state is what stands in the chat: the whole of it in one text, whether the bot has the last word, and whether a turn
// runs that asks nothing.
func (t *terminal) state(ctx context.Context) (chat string, answered, busy bool) {
	var messages []simMessage
	if err := t.get(ctx, fmt.Sprintf("/sim/chats/%d/messages", telegramtest.AdaID), &messages); err != nil {
		return "", false, false
	}
	var all strings.Builder
	for _, m := range messages {
		if m.Deleted {
			continue
		}
		answered = m.From != telegramtest.AdaID
		fmt.Fprintln(&all, m.ID, m.Text, m.Buttons)
		for _, row := range m.Buttons {
			for _, b := range row {
				busy = b.Text == "Stop" // a card stands below the message of its turn
			}
		}
	}
	return all.String(), answered, busy
}
