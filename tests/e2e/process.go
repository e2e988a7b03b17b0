package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is a server that ends with this test. It has its own process group, and the kernel kills it when this test
// ends, in whatever way.
type process struct {
	name    string
	dir     string
	cmd     *exec.Cmd
	logPath string
	done    chan struct{}
}

func startProcess(dir, name, path string, args ...string) (*process, error) {
	return startProcessIn(nil, dir, name, path, args...)
}

// startProcessIn is startProcess with an environment other than this test's.
func startProcessIn(env []string, dir, name, path string, args ...string) (*process, error) {
	logPath := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = env
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	p := &process{name: name, dir: dir, cmd: cmd, logPath: logPath, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal is tied to the thread that forked, so this thread stays until the child has ended.
		runtime.LockOSThread()
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// again starts another process of the server, with the same arguments. It appends to the same log.
func (p *process) again() (*process, error) {
	return startProcessIn(p.cmd.Env, p.dir, p.name, p.cmd.Path, p.cmd.Args[1:]...)
}

// kill kills the whole process group at once. These servers need no shutdown, because their state is removed with them.
func (p *process) kill() {
	if p.exited() {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
	}
}

// logTail returns the end of the process's log, for error messages.
func (p *process) logTail() string {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	const most = 3000
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return string(data)
}
