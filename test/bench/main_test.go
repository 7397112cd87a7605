// Package bench_test measures what people wait for and what an idle Drawbridge costs, on bbolt and on a real
// redis-server: from a tap to the agent that goes on (in this process, through every room), and the start, memory and
// processor time of the built program.
//
// Nothing here passes or fails by its speed. `make bench` runs these benchmarks with those of the other packages and
// holds all of them against their targets in one table; see docs/performance.md.
package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/store/storetest"
)

// patience is how long anything may take before a benchmark gives up.
const patience = 30 * time.Second

// root is the folder of the module, seen from here.
const root = "../.."

// build makes the program as it is delivered, once.
var build = sync.OnceValues(func() (string, error) {
	if out, err := exec.Command("make", "-s", "-C", root, "build").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return filepath.Abs(filepath.Join(root, "bin", "drawbridge"))
})

func binary(b *testing.B) string {
	b.Helper()
	path, err := build()
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// stores runs a benchmark on each engine. The URL is empty for bbolt.
func stores(b *testing.B, run func(b *testing.B, redisURL string)) {
	b.Helper()
	b.Run("bolt", func(b *testing.B) { run(b, "") })
	b.Run("redis", func(b *testing.B) { run(b, storetest.StartRedis(b, storetest.RedisOptions{}).URL()) })
}

// folder is a new one with a short path, since a control socket's path may have about a hundred bytes.
func folder(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "bench") //nolint:usetesting // as said
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

// settings are a configuration that reads nothing of this machine's.
func settings(b *testing.B, dir, telegram, model, redisURL string) []string {
	b.Helper()
	project := filepath.Join(dir, "shop")
	if err := os.MkdirAll(project, 0o700); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "drawbridge.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	return []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "DRAWBRIDGE_CONFIG=" + file, "DRAWBRIDGE_DATA_DIR=" + filepath.Join(dir, "data"),
		"DRAWBRIDGE_HOST_NAME=bench", "DRAWBRIDGE_TOKEN=" + token, "DRAWBRIDGE_BOT_API_URL=" + telegram,
		fmt.Sprintf("DRAWBRIDGE_OWNERS=%d", ada), "DRAWBRIDGE_PROJECTS=shop=" + project,
		"DRAWBRIDGE_MODEL_URL=" + model, "DRAWBRIDGE_MODEL=scripted", "REDIS_URL=" + redisURL,
	}
}

// percentile is the smallest duration that p of a hundred do not exceed. It sorts d.
func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[max(0, (len(d)*p+99)/100-1)]
}

// report states durations as the benchmark's metrics, in milliseconds.
func report(b *testing.B, name string, d []time.Duration) {
	b.Helper()
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(percentile(d, 50)), name+"p50-ms")
	b.ReportMetric(ms(percentile(d, 99)), name+"p99-ms")
}
