package bot

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPacerKeepsEveryRateInEveryWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := pacer{rates: []Rate{
			{N: rapid.IntRange(1, 5).Draw(t, "n"), Per: time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond},
			{N: rapid.IntRange(1, 20).Draw(t, "most"), Per: time.Minute},
		}}
		now := time.Unix(1000, 0)
		var given []time.Time
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(t, "flood") == 0 {
				p.block(now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "wait")) * time.Second))
			}
			spare := p.spare(now)
			at := p.next(now)
			if at.Before(now) || at.Before(p.blocked) || len(given) > 0 && at.Before(given[len(given)-1]) {
				t.Fatalf("at %s, now %s, blocked until %s", at, now, p.blocked)
			}
			if spare && at.After(now) {
				t.Fatal("room for a preview where there is none for a message")
			}
			p.take(at)
			given = append(given, at)
		}
		for _, r := range p.rates {
			for i := r.N; i < len(given); i++ {
				if d := given[i].Sub(given[i-r.N]); d < r.Per {
					t.Fatalf("%d in %s, allowed are %d in %s", r.N+1, d, r.N, r.Per)
				}
			}
		}
	})
}

func TestPacerGivesTheFirstAtOnceAndLeavesRoom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := pacer{rates: []Rate{{N: 4, Per: 4 * time.Second}}}
	for n := range 4 {
		if want := n < 3; p.spare(now) != want {
			t.Errorf("after %d: room for a preview is %t", n, !want)
		}
		if at := p.next(now); at != now {
			t.Errorf("number %d has to wait %s", n, at.Sub(now))
		}
		p.take(now)
	}
	if at := p.next(now); at.Sub(now) != 4*time.Second {
		t.Errorf("the fifth waits %s", at.Sub(now))
	}
}

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 10000: 10 * time.Second} {
		if got := backoff(n, time.Second, 10*time.Second); got != want {
			t.Errorf("failure %d: %s, want %s", n, got, want)
		}
	}
}
