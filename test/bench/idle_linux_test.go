package bench_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"drawbridge/internal/config"
)

const (
	// settling is what an idle process is given to get over its start.
	settling = 5 * time.Second
	// idling is how long it is watched: over several rounds of everything that happens every two seconds.
	idling = 20 * time.Second
	// tick is the unit in which the kernel counts a process's time (USER_HZ, 100 on every Linux that Go runs on).
	tick = 10 * time.Millisecond
)

// BenchmarkIdle watches `drawbridge serve` while nobody wants anything from it. One operation is 20 seconds: its share of
// one core, and what it has in memory at their end.
func BenchmarkIdle(b *testing.B) { stores(b, benchmarkIdle) }

func benchmarkIdle(b *testing.B, redisURL string) {
	t := startTelegram(b)
	watch(b, t, settings(b, folder(b), t.url, startModel(b), redisURL), idling)
}

// BenchmarkSchedules is BenchmarkIdle with 10,000 schedules whose next time is far, watched for 40 seconds.
func BenchmarkSchedules(b *testing.B) { stores(b, benchmarkSchedules) }

func benchmarkSchedules(b *testing.B, redisURL string) {
	t, dir := startTelegram(b), folder(b)
	env := settings(b, dir, t.url, startModel(b), redisURL)
	planMany(b, load(b, dir, env, config.RoleServe))
	watch(b, t, env, 2*idling)
}

// watch says what the program takes while nobody wants anything from it.
func watch(b *testing.B, t *telegram, env []string, long time.Duration) {
	b.Helper()
	p := serve(b, binary(b), env)
	await(b, "a poll", t.polled)
	<-time.After(settling)
	pid := p.cmd.Process.Pid
	before, began := worked(b, pid), time.Now()
	for b.Loop() {
		<-time.After(long) // that nothing happens is what is measured
	}
	spent, took := worked(b, pid)-before, time.Since(began)
	b.ReportMetric(100*float64(spent)/float64(took), "cpu-%")
	b.ReportMetric(resident(b, pid, "VmRSS:"), "rss-MB")
	b.ReportMetric(resident(b, pid, "VmHWM:"), "peak-MB")
	b.ReportMetric(resident(b, pid, "RssAnon:"), "anon-MB")
	p.stop()
}

// worked is the processor time that a process has taken so far.
func worked(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// proc_pid_stat(5): utime and stime are fields 14 and 15; the second, in parentheses, may hold blanks.
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := bytes.Fields(rest)
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// resident reads a size from a process's status, in MB of a million bytes.
func resident(b *testing.B, pid int, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == name {
			kib, err := strconv.ParseFloat(string(f[1]), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib * 1024 / 1e6
		}
	}
	b.Fatalf("no %s in /proc/%d/status", name, pid)
	return 0
}
