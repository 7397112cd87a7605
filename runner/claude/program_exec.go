package claude

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"drawbridge/internal/process"
)

type execProgram struct {
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr io.ReadCloser
	done           chan struct{}
	exit           process.Exit
}

func lookup(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			for _, d := range filepath.SplitList(p) {
				f := filepath.Join(d, name)
				if info, err := os.Stat(f); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
					return f, nil
				}
			}
		}
	}
	return "", exec.ErrNotFound
}

func startProgram(args []string, dir string, env []string) (program, error) {
	path, err := lookup(args[0], env)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	p := &execProgram{cmd: &exec.Cmd{Path: path, Args: args, Dir: dir, Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}, done: make(chan struct{})}
	stdin, in, _ := os.Pipe()
	out, stdout, _ := os.Pipe()
	errR, stderr, _ := os.Pipe()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	p.stdin, p.stdout, p.stderr = in, out, errR
	err = p.cmd.Start()
	_ = stdin.Close()
	_ = stdout.Close()
	_ = stderr.Close()
	if err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		p.exit.Code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	return p, nil
}

func (p *execProgram) Stdin() io.WriteCloser { return p.stdin }
func (p *execProgram) Stdout() io.ReadCloser { return p.stdout }
func (p *execProgram) Stderr() io.ReadCloser { return p.stderr }
func (p *execProgram) Done() <-chan struct{} { return p.done }
func (p *execProgram) Exit() process.Exit    { return p.exit }
func (p *execProgram) Stop() {
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}
