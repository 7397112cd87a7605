package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// results are measurements by the name of the benchmark, with its package, and by unit. Several runs (-count) leave
// several values.
type results struct {
	cpu    string
	values map[string]map[string][]float64
}

// processors is what the testing package appends to a name.
var processors = regexp.MustCompile(`-\d+$`)

// add takes a line such as "BenchmarkTap/bolt-2  1  14343674487 ns/op  5.3 p50-ms".
func (r *results) add(pkg, line string) {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return // the name alone, before something that was logged
	}
	name := pkg + "." + processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		if r.values[name] == nil {
			r.values[name] = map[string][]float64{}
		}
		r.values[name][fields[i+1]] = append(r.values[name][fields[i+1]], v)
	}
}

// get returns the median of the runs.
func (r *results) get(name, unit string) (float64, bool) {
	v := slices.Sorted(slices.Values(r.values[name][unit]))
	if len(v) == 0 {
		return 0, false
	}
	return v[len(v)/2], true
}

// target is a row of the table.
type target struct {
	what  string
	value func(*results) (float64, bool)
	unit  string
	below float64 // 0: there is no target
}

// metric is what a benchmark reports in a unit, times a factor.
func metric(name, unit string, factor float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		v, ok := r.get(name, unit)
		return v * factor, ok
	}
}

// dearer is how many times more a byte of the second benchmark costs than one of the first.
func dearer(small, large string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		a, ok := r.get(small, "MB/s")
		b, known := r.get(large, "MB/s")
		return a / b, ok && known
	}
}

// targets are what Drawbridge wants to keep below, and what helps to see why it does not.
func targets() []target {
	const ms, micros = 1e-6, 1e-3 // of a nanosecond
	var out []target
	each := func(what, name, unit, shown string, below float64) {
		for _, e := range []struct{ name, label string }{{"bolt", "embedded"}, {"redis", "Redis"}} {
			out = append(out, target{what + ", " + e.label, metric(name+"/"+e.name, unit, 1), shown, below})
		}
	}
	each("a tap leaves the Bot API, Ask returns: median", "test/bench.Tap", "p50-ms", "ms", 5)
	each("a tap leaves the Bot API, Ask returns: 99th percentile", "test/bench.Tap", "p99-ms", "ms", 25)
	each("a tap leaves the Bot API, its answer arrives: median", "test/bench.Tap", "ack-p50-ms", "ms", 0)
	each("decided, Ask returns (with the decision's commit): 99th percentile", "approvals.TapToAnswer", "p99-ms", "ms", 10)
	each("a call that the table allows: 99th percentile", "test/bench.Gate", "p99-ms", "ms", 2)
	each("a prompt leaves the Bot API, the agent has it: median", "test/bench.FirstText", "prompt-p50-ms", "ms", 50)
	each("an agent's first text arrives in the chat: median", "test/bench.FirstText", "words-p50-ms", "ms", 30)
	each("a command with 60,000 lines: memory above idle", "test/bench.Output", "above-MB", "MB", 100)
	each("serve, from its start to the first getUpdates: median", "test/bench.Ready", "p50-ms", "ms", 250)
	each("serve, from its start to the first getUpdates: slowest", "test/bench.Ready", "p99-ms", "ms", 250)
	out = append(
		out,
		target{"serve, killed and started again: median, embedded", metric("test/bench.Restart/bolt", "p50-ms", 1), "ms", 250},
		// The killed one might still be alive, so its lease has to lapse first.
		target{"serve, killed and started again: median, Redis", metric("test/bench.Restart/redis", "p50-ms", 1), "ms", 0},
	)
	each("serve, idle: resident memory", "test/bench.Idle", "rss-MB", "MB", 30)
	each("serve, idle: share of a core", "test/bench.Idle", "cpu-%", "%", 0.5)
	each("serve, idle with 10,000 schedules: share of a core", "test/bench.Schedules", "cpu-%", "%", 1)
	out = append(
		out,
		target{"500 schedules due at once, a tap elsewhere meanwhile: median, Redis", metric("test/bench.Burst/redis", "p50-ms", 1), "ms", 25},
		target{"500 schedules due at once, a tap elsewhere meanwhile: 99th percentile, Redis", metric("test/bench.Burst/redis", "p99-ms", 1), "ms", 100},
		target{"500 schedules due at once, a tap before: 99th percentile, Redis", metric("test/bench.Burst/redis", "before-p99-ms", 1), "ms", 0},
		target{"500 schedules due at once, all run: times what the hosts' places allow, Redis", metric("test/bench.Burst/redis", "times-ideal", 1), "times", 2},
	)
	out = append(
		out,
		target{"stripped binary", metric("test/bench.Binary", "MB", 1), "MB", 25},
		target{"64 KB answer, rendered and split", metric("formatting.Render64K", "ns/op", ms), "ms", 10},
	)
	for _, kind := range []string{"answer", "fence", "list"} {
		// A cost that grows with the square of the length would make a byte of the longer one 16 times as dear.
		out = append(out, target{
			"streamed " + kind + ", a byte of 256 KB against one of 16 KB", dearer("formatting.Stream/"+kind+"/16K", "formatting.Stream/"+kind+"/256K"), "times", 2,
		})
	}
	out = append(out, target{"streamed answer of 64 KB, 1000 snapshots", metric("formatting.Stream/answer/64K", "ns/op", ms), "ms", 0})
	for _, e := range []struct{ name, label string }{{"bolt", "embedded"}, {"redis-everysec", "Redis"}, {"redis-always", "Redis, appendfsync always"}} {
		out = append(
			out,
			target{"store: a guarded commit, " + e.label, metric("internal/store/storetest.Commit/"+e.name+"/alone", "ns/op", micros), "µs", 0},
			target{"store: commit, hint, read by who waits, " + e.label, metric("internal/store/storetest.Wake/"+e.name, "ns/op", micros), "µs", 0},
		)
	}
	return out
}

// table says what was measured, what is wanted and whether the one is the other. What was not measured is left out.
func table(r results, rows []target) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) } //nolint:errcheck // into memory
	line("what", "measured", "target", "")
	for _, t := range rows {
		v, ok := t.value(&r)
		if !ok {
			continue
		}
		measured := number(v) + " " + t.unit
		switch {
		case t.below == 0:
			line(t.what, measured, "-", "")
		case v < t.below:
			line(t.what, measured, "< "+number(t.below)+" "+t.unit, "met")
		default:
			line(t.what, measured, "< "+number(t.below)+" "+t.unit, "MISSED")
		}
	}
	if err := w.Flush(); err != nil {
		return err.Error() // into memory: it cannot be
	}
	return b.String()
}

// number has three digits that count.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
