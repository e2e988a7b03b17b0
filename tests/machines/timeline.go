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

// Timeline is what happened in a story, in the order in which it was seen. It is a file under build/machines/timelines
// from the first line on, and is printed with the test.
type Timeline struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	file  *os.File
}

// NewTimeline is printed at the end of the test.
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

// storyFile is a file of this test, beside its time line.
func storyFile(t *testing.T, needs *Needs, suffix string) string {
	return filepath.Join(needs.Build, "timelines", strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())+"."+suffix)
}

// Note adds a line: when, who, what.
func (l *Timeline) Note(who, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf("%8.2f  %-8s %s", time.Since(l.began).Seconds(), who, fmt.Sprintf(format, args...))
	l.lines = append(l.lines, line)
	_, _ = fmt.Fprintln(l.file, line)
}
