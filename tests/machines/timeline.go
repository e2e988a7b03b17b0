package machines

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Timeline holds what happened in a test, in the order in which it was seen. Each line is written at once to a file in
// build/machines/timelines, and all lines are printed at the end of the test.
type Timeline struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	file  *os.File
}

// NewTimeline returns a time line that is printed at the end of the test.
func NewTimeline(t *testing.T, needs *Needs) (*Timeline, error) {
	directory := filepath.Join(needs.Build, "timelines")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(storyFile(t, needs, "txt"))
	if err != nil {
		return nil, err
	}
	l := &Timeline{began: time.Now(), file: file}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.Logf("time line (%s):\n%s", file.Name(), strings.Join(l.lines, "\n"))
		_ = file.Close()
	})
	return l, nil
}

// storyFile returns the path of another file of this test, in the directory of its time line.
func storyFile(t *testing.T, needs *Needs, suffix string) string {
	return filepath.Join(needs.Build, "timelines", strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())+"."+suffix)
}

// Note adds a line: the time, who did something (for example a machine), and what that was.
func (l *Timeline) Note(who, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf("%8.2f  %-8s %s", time.Since(l.began).Seconds(), who, fmt.Sprintf(format, args...))
	l.lines = append(l.lines, line)
	_, _ = fmt.Fprintln(l.file, line)
}
