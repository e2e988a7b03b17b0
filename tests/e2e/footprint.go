package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Footprint is what a process has cost so far, and what it holds now, all from proc(5). Memory in bytes.
type Footprint struct {
	CPU time.Duration // user and system
	// Times at which a thread of the process gave up the processor to wait: of a program that is one event loop, each
	// is a return from epoll_wait(2), and so a wake-up.
	Wakeups int64
	RSS     int64
	PSS     int64 // pages that several processes share count by halves, thirds, …
	Private int64 // pages that go when the process goes
	Peak    int64 // the largest RSS so far
}

// FootprintOf reads /proc/PID.
func FootprintOf(pid int) (f Footprint, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	rollup, err := procFields(filepath.Join(dir, "smaps_rollup"))
	if err != nil {
		return f, err
	}
	f.RSS, f.PSS = rollup["Rss"]*1024, rollup["Pss"]*1024
	f.Private = (rollup["Private_Clean"] + rollup["Private_Dirty"]) * 1024
	status, err := procFields(filepath.Join(dir, "status"))
	if err != nil {
		return f, err
	}
	f.Peak = status["VmHWM"] * 1024
	threads, err := filepath.Glob(filepath.Join(dir, "task", "*", "status"))
	if err != nil {
		return f, err
	}
	for _, path := range threads {
		if thread, err := procFields(path); err == nil { // it may have ended
			f.Wakeups += thread["voluntary_ctxt_switches"]
		}
	}
	f.CPU, err = cpuTime(filepath.Join(dir, "stat"))
	return f, err
}

// procFields are the lines "name: number" of a file, the number in whatever unit stands behind it.
func procFields(path string) (map[string]int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), ":")
		var number int64
		if _, err := fmt.Sscan(value, &number); found && err == nil {
			fields[name] = number
		}
	}
	return fields, nil
}

// cpuTime is utime and stime of proc_pid_stat(5), counted in hundredths of a second on every Linux that Go runs on.
func cpuTime(path string) (time.Duration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses, and may hold anything.
	rest := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	const utime, stime = 14 - 3, 15 - 3
	if len(rest) <= stime {
		return 0, fmt.Errorf("%s: %d fields", path, len(rest))
	}
	var user, system int64
	if _, err := fmt.Sscan(rest[utime]+" "+rest[stime], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// Since is what was spent between two looks, with what is held now.
func (f Footprint) Since(before Footprint) Footprint {
	f.CPU -= before.CPU
	f.Wakeups -= before.Wakeups
	return f
}

// Plus is the sum over several processes.
func (f Footprint) Plus(other Footprint) Footprint {
	f.CPU += other.CPU
	f.Wakeups += other.Wakeups
	f.RSS += other.RSS
	f.PSS += other.PSS
	f.Private += other.Private
	f.Peak += other.Peak
	return f
}
