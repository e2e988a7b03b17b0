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

// Footprint is what a process has used so far and what memory it has now, as proc(5) shows it. Memory is in bytes.
type Footprint struct {
	CPU time.Duration // user and system
	// How many times a thread of the process gave up the processor to wait. In a program that is one event loop, each
	// time is a return from epoll_wait(2), and so a wake-up.
	Wakeups int64
	RSS     int64
	PSS     int64 // a page that n processes share counts as 1/n
	Private int64 // pages that become free when the process ends
	Peak    int64 // the largest RSS so far
}

// FootprintOf reads the files of a process in /proc.
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
		if thread, err := procFields(path); err == nil { // the thread may have ended
			f.Wakeups += thread["voluntary_ctxt_switches"]
		}
	}
	f.CPU, err = cpuTime(filepath.Join(dir, "stat"))
	return f, err
}

// procFields reads the lines "name: number" of a file. A unit after the number is ignored.
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

// cpuTime returns utime plus stime of proc_pid_stat(5), which count hundredths of a second on every Linux that Go
// supports.
func cpuTime(path string) (time.Duration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses, which may contain spaces and parentheses.
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

// Since returns what was used since an earlier Footprint, with the memory of now.
func (f Footprint) Since(before Footprint) Footprint {
	f.CPU -= before.CPU
	f.Wakeups -= before.Wakeups
	return f
}

// Plus returns the sum of two processes.
func (f Footprint) Plus(other Footprint) Footprint {
	f.CPU += other.CPU
	f.Wakeups += other.Wakeups
	f.RSS += other.RSS
	f.PSS += other.PSS
	f.Private += other.Private
	f.Peak += other.Peak
	return f
}
