package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// watchPeakMemory returns a channel that receives the peak resident memory of a process, in bytes, when the process has
// ended. It reads the kernel's own maximum every 20 ms, so it can miss only what the process takes after the last read.
// ru_maxrss of wait(2) is no alternative: it begins with the memory of the process that forked, which is this test.
func watchPeakMemory(pid int) chan int64 {
	peak := make(chan int64, 1)
	go func() {
		const interval = 20 * time.Millisecond
		var last int64
		for {
			now, running := peakMemory(pid)
			if !running {
				peak <- last
				return
			}
			last = now
			time.Sleep(interval)
		}
	}()
	return peak
}

// peakMemory returns VmHWM of proc_pid_status(5). A process that has ended has none, even before it is waited for.
func peakMemory(pid int) (peak int64, running bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), "VmHWM:")
		if !found {
			continue
		}
		var kilobytes int64
		if _, err := fmt.Sscanf(value, "%d kB", &kilobytes); err == nil {
			return kilobytes * 1024, true
		}
	}
	return 0, false
}
