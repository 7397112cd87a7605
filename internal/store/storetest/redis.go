package storetest

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/store"
	"drawbridge/internal/store/redis"
)

// RedisOptions of StartRedis.
type RedisOptions struct {
	// SyncAlways fsyncs before every reply (appendfsync always) rather than every second. A SIGKILL of the server loses
	// nothing either way; only with it an acknowledged commit would also survive a loss of power.
	SyncAlways bool
	// Args are further settings, for example "--maxmemory-policy", "allkeys-lru".
	Args []string
}

// RedisServer is a real redis-server with an append-only file in a folder of its own. It ends with the test, and, on
// Linux, with the test's process, however that ends. Its methods are for one goroutine.
type RedisServer struct {
	t    testing.TB
	bin  string
	args []string
	port int
	run  *redisRun
}

// redisRun is one process. exited is closed when it has ended and was waited for.
type redisRun struct {
	pid    int
	log    *readyLog
	exited chan struct{}
}

// StartRedis starts redis-server on a free loopback port and returns when it accepts connections. The test fails, with one
// line that says what to install, if there is no redis-server; the environment variable REDIS_SERVER may name the binary.
func StartRedis(t testing.TB, o RedisOptions) *RedisServer {
	t.Helper()
	bin := os.Getenv("REDIS_SERVER")
	if bin == "" {
		bin = "redis-server"
	}
	if _, err := exec.LookPath(bin); err != nil {
		t.Fatalf("%s is missing: install the package redis-server (apt-get install redis-server), or name the binary in REDIS_SERVER", bin)
	}
	fsync := "everysec"
	if o.SyncAlways {
		fsync = "always"
	}
	s := &RedisServer{t: t, bin: bin}
	s.args = append([]string{
		"--bind", "127.0.0.1", "--dir", t.TempDir(), "--daemonize", "no", "--logfile", "", "--loglevel", "notice",
		"--save", "", "--appendonly", "yes", "--appendfsync", fsync,
	}, o.Args...)
	t.Cleanup(s.Kill)
	var err error
	for range 10 { // another process may take the port between the look and the start
		if s.port, err = freePort(); err != nil {
			continue
		}
		if err = s.start(); err == nil {
			return s
		}
	}
	t.Fatalf("redis-server does not start: %v", err)
	return nil
}

// freePort looks below the range of which systems take the ports of outgoing connections, so that the port is still free
// when a killed server comes back.
func freePort() (int, error) {
	port := 12000 + rand.IntN(18000)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	return port, l.Close()
}

func (s *RedisServer) start() error {
	run := &redisRun{log: &readyLog{ready: make(chan struct{})}, exited: make(chan struct{})}
	cmd := exec.Command(s.bin, append([]string{"--port", strconv.Itoa(s.port)}, s.args...)...)
	cmd.Stdout, cmd.Stderr = run.log, run.log
	cmd.SysProcAttr = diesWithParent()
	started := make(chan error)
	go func() { // waited for by exited
		// The death signal comes when the thread that started the child ends, so this thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(run.exited)
		err := cmd.Start()
		if err == nil {
			run.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is of no interest; its log is
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	timeout := time.NewTimer(20 * time.Second)
	defer timeout.Stop()
	select {
	case <-run.log.ready:
		s.run = run
		return nil
	case <-run.exited:
		return fmt.Errorf("it ended at once:\n%s", run.log)
	case <-timeout.C:
		kill(run)
		return fmt.Errorf("it is not ready:\n%s", run.log)
	}
}

func kill(run *redisRun) {
	_ = syscall.Kill(run.pid, syscall.SIGKILL) // it may have ended already
	<-run.exited
}

// Addr is the server's host:port.
func (s *RedisServer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is what redis.Open takes, for the user that may do everything.
func (s *RedisServer) URL() string { return "redis://" + s.Addr() }

// Kill ends the server with SIGKILL and returns when it is gone. Killing a server that does not run does nothing.
func (s *RedisServer) Kill() {
	if s.run != nil {
		kill(s.run)
		s.run = nil
	}
}

// Restart kills the server if it still runs, starts it again on its port and its data, and returns when it accepts
// connections.
func (s *RedisServer) Restart() {
	s.t.Helper()
	s.Kill()
	var err error
	for range 20 {
		if err = s.start(); err == nil {
			return
		}
		<-time.After(50 * time.Millisecond) // the port may be in use for a moment
	}
	s.t.Fatalf("redis-server does not start again: %v", err)
}

// Open opens the server as an engine with that prefix. It is closed with the test.
func (s *RedisServer) Open(t testing.TB, prefix string) store.DB {
	t.Helper()
	db, err := redis.Open(t.Context(), s.URL(), redis.Options{Prefix: prefix, Logger: Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// readyLog keeps the log of a server and notices when it is ready.
type readyLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	done  bool
	ready chan struct{}
}

func (l *readyLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if !l.done && bytes.Contains(l.text.Bytes(), []byte("Ready to accept connections")) {
		l.done = true
		close(l.ready)
	}
	return len(p), nil
}

func (l *readyLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger writes to the test's log and fails the test on an Error line.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	line := string(bytes.TrimSpace(p))
	if bytes.Contains(p, []byte("level=ERROR")) {
		w.t.Errorf("an error was logged: %s", line)
	} else {
		w.t.Log(line)
	}
	return len(p), nil
}
