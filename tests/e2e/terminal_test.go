package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new pseudo-terminal: the person's and the program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	// The person's end is non-blocking, so that a deadline can end a read. The program's end is a normal terminal.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(t, err)
	person = os.NewFile(uintptr(fd), "/dev/ptmx")
	must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	return person, program
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// When its terminal disappears, a drain gets SIGHUP. It stops within a second with exit status 129, and leaves the
// cordon and its mark for the next drain.
func TestTerminalDisappears(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	took := stopByHangup(t, w)
	// A machine that is short of memory has dropped parts of a program that waits, and reads them from its disk first.
	// That delays one drain; a defect delays each.
	for range 2 {
		if took > time.Second {
			t.Logf("stopped after %v, once more", took)
			took = stopByHangup(t, w)
		}
	}
	withinASecond(t, "stopped after", took)
	expectNode(t, w, true, true)
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	expectCordon(t, drainReport(t, w), true, "haulout")
}

// Starts a drain on a terminal, closes the terminal when the drain is blocked, and returns how long the drain took to
// stop then.
func stopByHangup(t *testing.T, w *World) time.Duration {
	t.Helper()
	refused := func() (count int) {
		requests, err := w.Requests()
		must(t, err)
		for _, r := range requests {
			if r.RefusedEviction() {
				count++
			}
		}
		return count
	}
	before := refused()
	person, program := openTerminal(t)
	drain := w.command(t.Context(), w.Kubeconfig, haulout, "drain", w.Node("old"), "--settle=0")
	drain.Stdin, drain.Stdout, drain.Stderr = program, program, program
	drain.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, drain.Start())
	must(t, program.Close())
	read := make(chan struct{})
	go func() { // someone must read the terminal, or it fills up
		_, _ = io.Copy(io.Discard, person)
		close(read)
	}()
	must(t, Until(t.Context(), "the drain is blocked by a budget", func() (bool, error) { return refused() > before, nil }))

	// Close waits for a read in progress, and the terminal hangs up only when its last descriptor is closed. So the
	// read is ended first.
	must(t, person.SetReadDeadline(time.Now()))
	<-read
	// A process that another test is just starting has the terminal open, too, until its exec. ForkLock waits for that.
	syscall.ForkLock.Lock()
	closed := time.Now()
	err := person.Close()
	syscall.ForkLock.Unlock()
	must(t, err)
	exit := exitCode(drain.Wait())
	took := time.Since(closed)
	if exit != 129 {
		t.Errorf("exit %d, want 129", exit)
	}
	return took
}

// A drain that was started with nohup continues when its terminal disappears.
func TestNohup(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	nohup, err := exec.LookPath("nohup")
	must(t, err)
	drain, err := w.Start(t.Context(), Tool{Name: "nohup", Path: nohup}, haulout.Path, "drain", w.Node("old"), "--settle=0")
	must(t, err)
	must(t, blocked(t.Context(), w))
	must(t, drain.Signal(syscall.SIGHUP))
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	result, err := drain.Wait()
	must(t, err)
	if result.Exit != 0 {
		t.Errorf("exit %d, want 0\n%s%s", result.Exit, result.Stdout, result.Stderr)
	}
	compare(t, outcome{done: true, evicted: "web=2", cordoned: "old"}, observe(t, w, Result{}))
}

// A rehearsal that would compute for minutes ends within a second when it is interrupted.
func TestRehearsalIsInterrupted(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	rehearsal, err := w.Start(t.Context(), haulout, "rehearse", w.Node("old"), "--ignore-daemonsets", "--timeout=1000000h")
	must(t, err)
	must(t, Until(t.Context(), "it plays, for to read takes it little", func() (bool, error) {
		cost, err := FootprintOf(rehearsal.cmd.Process.Pid)
		return cost.CPU > 500*time.Millisecond, err
	}))
	interrupted := time.Now()
	must(t, rehearsal.Signal(syscall.SIGINT))
	result, _ := rehearsal.Wait()
	withinASecond(t, "stopped after", time.Since(interrupted))
	status, _ := rehearsal.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if result.Exit != 130 && status.Signal() != syscall.SIGINT {
		t.Errorf("ended with %v\n%s%s", status, result.Stdout, result.Stderr)
	}
}

// A drain continues when the reader of its output ends, as in `haulout drain … | head`.
func TestReaderDisappears(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	reader, writer, err := os.Pipe()
	must(t, err)
	drain := w.command(t.Context(), w.Kubeconfig, haulout, "drain", w.Node("old"), "--settle=0")
	drain.Stdout, drain.Stderr = writer, writer
	must(t, drain.Start())
	must(t, writer.Close())
	must(t, blocked(t.Context(), w))
	must(t, reader.Close())
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	if exit := exitCode(drain.Wait()); exit != 0 {
		t.Errorf("exit %d, want 0", exit)
	}
	compare(t, outcome{done: true, evicted: "web=2", cordoned: "old"}, observe(t, w, Result{}))
}

// If stdin, stdout and stderr are closed when a drain starts, their numbers are not given to other files. Otherwise the
// drain would wait for these as if they were its stdin.
func TestDescriptorsThatAreClosed(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2))
	shell, err := exec.LookPath("sh")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drain := w.command(ctx, w.Kubeconfig, Tool{Name: "sh", Path: shell}, "-c", `exec "$@" <&- >&- 2>&-`, "sh",
		haulout.Path, "drain", w.Node("old"), "--settle=0")
	if exit := exitCode(drain.Run()); exit != 0 {
		t.Errorf("exit %d, want 0", exit)
	}
	compare(t, outcome{done: true, evicted: "web=2", cordoned: "old"}, observe(t, w, Result{}))
}
