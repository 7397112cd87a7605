package bench_test

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// starts is how many starts make a run.
const starts = 15

// BenchmarkReady is the time from the start of `drawbridge serve` with an empty store to its first getUpdates. One
// operation is 15 starts.
func BenchmarkReady(b *testing.B) { stores(b, benchmarkReady) }

func benchmarkReady(b *testing.B, redisURL string) {
	path, model := binary(b), startModel(b)
	var took []time.Duration
	for b.Loop() {
		for range starts {
			t := startTelegram(b)
			began := time.Now()
			p := serve(b, path, settings(b, folder(b), t.url, model, redisURL))
			took = append(took, await(b, "a poll", t.polled).Sub(began))
			p.stop()
		}
	}
	report(b, "", took)
}

// kills is how many make a run of BenchmarkRestart.
const kills = 5

// BenchmarkRestart is the time from the start of `drawbridge serve` to its first getUpdates where the one before it was
// killed. On Redis that one might still be alive, so its lease has to lapse first. One operation is 5 restarts.
func BenchmarkRestart(b *testing.B) { stores(b, benchmarkRestart) }

func benchmarkRestart(b *testing.B, redisURL string) {
	path, t := binary(b), startTelegram(b)
	env := settings(b, folder(b), t.url, startModel(b), redisURL)
	p := serve(b, path, env)
	await(b, "a poll", t.polled)
	var took []time.Duration
	for b.Loop() {
		for range kills {
			p.kill()
			drain(t.polled)
			began := time.Now()
			p = serve(b, path, env)
			took = append(took, await(b, "a poll", t.polled).Sub(began))
		}
	}
	report(b, "", took)
	p.stop()
}

// BenchmarkBinary is the size of the program as `make build` leaves it.
func BenchmarkBinary(b *testing.B) {
	path := binary(b)
	var size int64
	for b.Loop() {
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		size = info.Size()
	}
	b.ReportMetric(float64(size)/1e6, "MB")
}

// program is a running `drawbridge serve`.
type program struct {
	b   *testing.B
	cmd *exec.Cmd
	log bytes.Buffer // complete once it has ended
}

// serve starts the program with an environment that is this and nothing else.
func serve(b *testing.B, path string, env []string) *program {
	b.Helper()
	p := &program{b: b, cmd: exec.Command(path, "serve")}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = env, b.TempDir(), &p.log
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if p.cmd.ProcessState == nil { // the benchmark has failed
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			b.Logf("log:\n%s", p.log.String())
		}
	})
	return p
}

// kill is kill -9.
func (p *program) kill() {
	p.b.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.b.Fatal(err)
	}
	_ = p.cmd.Wait() // it says that it was killed
}

// stop ends the program as an init system does, which gives the lease back for the next one.
func (p *program) stop() {
	p.b.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.b.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.b.Fatalf("serve: %v\n%s", err, p.log.String())
	}
}
