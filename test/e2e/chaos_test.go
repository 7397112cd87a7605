package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

var chaos = flag.Duration("chaos", 4*time.Second, "for how long TestKillsAtAnyStep kills processes")

// TestKillsAtAnyStep kills gateway, host and store at random moments while prompts come in. Each prompt is run once, or
// reported as not run to its end, and none twice.
func TestKillsAtAnyStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, on{redis: true})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	host, gateway := w.start("host"), w.start("gateway")
	me := w.private(ada)
	asked := me.expect(me.say("/mode full-access"), "the confirmation", func(m message) bool { return m.has("Use full-access") })
	me.tap(asked.ID, "Use full-access")

	var prompts []int64
	end := time.After(*chaos)
	for running := true; running; {
		select {
		case <-end:
			running = false
		case <-time.After(time.Duration(random.IntN(400)) * time.Millisecond): // any moment is as good as another
		}
		if len(prompts) < 12 || random.IntN(8) == 0 {
			i := len(prompts)
			prompts = append(prompts, me.say(fmt.Sprintf("run echo begun-%d. >> ran\nrun echo ended-%d. >> ran", i, i)))
		}
		switch random.IntN(5) {
		case 0:
			gateway.kill()
			gateway = w.start("gateway")
		case 1:
			host.kill()
			host = w.start("host")
		case 2:
			w.redis.Restart()
		}
	}
	for i, prompt := range prompts {
		m := me.expect(prompt, fmt.Sprintf("the end of prompt %d", i), func(m message) bool {
			if m.ReplyTo != prompt {
				return false
			}
			for _, word := range []string{"Done in", "Interrupted after", "Failed after", "Too many prompts", "A message could not be handled"} {
				if strings.HasPrefix(m.Text, word) {
					return true
				}
			}
			return false
		})
		b, err := os.ReadFile(w.path("ran"))
		if err != nil {
			t.Fatal(err)
		}
		begun, ended := strings.Count(string(b), fmt.Sprintf("begun-%d.", i)), strings.Count(string(b), fmt.Sprintf("ended-%d.", i))
		// What could not be asked while the store was away was refused, and the chat is told.
		whole := strings.HasPrefix(m.Text, "Done in") && !strings.Contains(m.Text, "not allowed")
		if begun > 1 || ended > 1 || whole && (begun != 1 || ended != 1) {
			t.Errorf("prompt %d began %d times and ended %d times, and the chat was told %q", i, begun, ended, m.Text)
		}
	}
	last := me.say("say all is well")
	me.ends(last, "all is well")
}
