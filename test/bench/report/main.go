// Report runs `go test -bench` for `make bench`: it passes on what the command prints, package by package, and at the end
// holds the numbers against Drawbridge's targets in one table.
//
//	report go test -bench=. ./...
//
// It exits as the command does. A missed target is said and fails nothing: how fast a machine is on a given day is no
// property of a commit.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) } //nolint:forbidigo // this is main

func run(ctx context.Context, command []string, stdout, stderr io.Writer) int {
	if len(command) == 0 {
		fmt.Fprintln(stderr, "usage: report go test -bench=. ./...") //nolint:errcheck // nothing else can be said
		return 2
	}
	began, busy := time.Now(), load()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // running what it is given is what it is for
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(stderr, "report:", err) //nolint:errcheck // nothing else can be said
		return 1
	}
	found, err := follow(out, stdout)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		fmt.Fprintln(stderr, "report:", err) //nolint:errcheck // nothing else can be said
	}
	fmt.Fprintf(stdout, "\n%s, %s, %d processors, %s/%s, %s%s\n\n", began.Format("2006-01-02 15:04"), found.cpu, runtime.NumCPU(), //nolint:errcheck // nothing else can be said
		runtime.GOOS, runtime.GOARCH, runtime.Version(), busy)
	fmt.Fprint(stdout, table(found, targets())) //nolint:errcheck // nothing else can be said
	if err != nil {
		return 1
	}
	return 0
}

// load says how busy the machine was with other things before, where the system tells.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(b), " ")
	return ", load average " + one + " before"
}

// follow reads the output of go test, writes what is worth reading on, and returns what was measured.
func follow(in io.Reader, out io.Writer) (results, error) {
	r := results{values: map[string]map[string][]float64{}}
	var pkg, shown string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "pkg:":
			pkg = strings.TrimPrefix(rest, "drawbridge/")
			continue
		case word == "cpu:":
			r.cpu = rest
			continue
		case word == "goos:", word == "goarch:", line == "PASS", strings.HasPrefix(line, "ok  \t"), strings.HasPrefix(line, "?   \t"):
			continue
		case strings.HasPrefix(word, "Benchmark"):
			if shown != pkg {
				fmt.Fprintf(out, "\n%s\n", pkg) //nolint:errcheck // the table is what counts
				shown = pkg
			}
			r.add(pkg, line)
		}
		fmt.Fprintln(out, line) //nolint:errcheck // the table is what counts
	}
	return r, lines.Err()
}
