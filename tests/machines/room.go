package machines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The room is a set of namespaces (processes, mounts, network, host name, IPC) in which the tests and all machines run.
// The test binary starts itself once more as the first process of the room. When that process ends, the kernel kills
// all others in the room and removes its mounts and network devices. The process outside kills the room when it ends,
// in whatever way.

const (
	roomVariable = "HAULOUT_MACHINES_ROOM" // set in the room to the name of the room's cgroup
	cgroupPrefix = "haulout-machines-"
	roomDir      = "/run/haulout-machines"
	cgroups      = "/sys/fs/cgroup"
)

func insideRoom() bool { return os.Getenv(roomVariable) != "" }

// runInRoom runs this program with its arguments in a new room and returns its exit code.
func runInRoom() (int, error) {
	hostCgroups, err := unifiedCgroups()
	if err != nil {
		return 1, err
	}
	removeStaleCgroups(hostCgroups)
	name := fmt.Sprintf("%s%d", cgroupPrefix, os.Getpid())
	path := filepath.Join(hostCgroups, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		return 1, fmt.Errorf("no cgroup can be made: %w", err)
	}
	defer removeCgroup(path)
	directory, err := os.Open(path)
	if err != nil {
		return 1, err
	}
	defer directory.Close()

	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Args[0] = os.Args[0]
	command.Env = append(os.Environ(), roomVariable+"="+name)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:   syscall.SIGKILL,
		Setpgid:     true,
		UseCgroupFD: true,
		CgroupFD:    int(directory.Fd()),
	}
	// The parent-death signal is tied to the thread that forked, so that thread must not end.
	runtime.LockOSThread()
	if err := command.Start(); err != nil {
		return 1, fmt.Errorf("no namespaces can be made: %w", err)
	}
	endWithParent(command.Process)
	err = command.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return max(1, ended.ExitCode()), nil
	}
	return 0, err
}

// endWithParent passes signals on to the room, and kills it when the parent of this process has ended.
func endWithParent(room *os.Process) {
	parent := os.Getppid()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for {
			select {
			case received := <-signals:
				_ = room.Signal(received)
			case <-time.After(time.Second):
				if os.Getppid() != parent {
					_ = room.Kill()
				}
			}
		}
	}()
}

// unifiedCgroups returns the directory at which the host has mounted cgroup2.
func unifiedCgroups() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("cgroup2 is not mounted here")
}

// removeStaleCgroups removes the cgroups of runs that were killed. Their names contain the process id of the run.
func removeStaleCgroups(where string) {
	left, _ := filepath.Glob(filepath.Join(where, cgroupPrefix+"*"))
	for _, path := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(path), cgroupPrefix+"%d", &pid); err != nil {
			continue
		}
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			removeCgroup(path)
		}
	}
}

// removeCgroup kills all processes in a cgroup and removes it with the cgroups below it.
func removeCgroup(path string) {
	_ = os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
	for range 100 {
		var below []string
		_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		for _, path := range slices.Backward(below) {
			_ = syscall.Rmdir(path)
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(20 * time.Millisecond) // killed processes may still be in the cgroup
	}
}

// furnishRoom mounts the room's own directories. It must be called in the room before anything else.
func furnishRoom(sourceTree string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	// Replaces all mounts of the host's cgroups by cgroup2 alone, as current systems have it.
	for unix.Unmount(cgroups, unix.MNT_DETACH) == nil {
		continue
	}
	if err := unix.Mount("cgroup2", cgroups, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("cgroup2: %w", err)
	}
	for _, path := range []string{"/run", "/tmp"} {
		if strings.HasPrefix(sourceTree, path+"/") {
			continue
		}
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	// What the machines write is in the room's own memory, and ends with the room.
	if err := os.MkdirAll(roomDir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", roomDir, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("%s: %w", roomDir, err)
	}
	temporary := filepath.Join(roomDir, "tmp")
	if err := os.Mkdir(temporary, 0o755); err != nil {
		return err
	}
	if err := os.Setenv("TMPDIR", temporary); err != nil {
		return err
	}
	if err := tryOverlay(filepath.Join(temporary, "overlay")); err != nil {
		return fmt.Errorf("no overlay can be mounted, which the disks of machines are: %w", err)
	}
	return furnishNetwork()
}

func tryOverlay(directory string) error {
	lower, upper, work := filepath.Join(directory, "lower"), filepath.Join(directory, "upper"), filepath.Join(directory, "work")
	for _, path := range []string{lower, upper, work} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	if err := unix.Mount("overlay", lower, "overlay", 0, layers); err != nil {
		return err
	}
	return errors.Join(unix.Unmount(lower, 0), os.RemoveAll(directory))
}

// roomCgroup returns the directory of the room's cgroup.
func roomCgroup() string { return filepath.Join(cgroups, os.Getenv(roomVariable)) }
