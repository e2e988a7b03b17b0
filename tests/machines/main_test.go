package machines

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var needs *Needs

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	if insideRoom() {
		os.Exit(inside(m))
	}
	os.Exit(outside())
}

// outside checks what this host has, and runs the tests in a room (room.go).
func outside() int {
	if _, err := FindNeeds(); err != nil {
		return cannotRun(err)
	}
	code, err := runInRoom()
	if err != nil {
		return cannotRun(err)
	}
	return code
}

func inside(m *testing.M) int {
	var err error
	if needs, err = FindNeeds(); err != nil {
		return cannotRun(err)
	}
	if err := furnishRoom(needs.Root); err != nil {
		return cannotRun(err)
	}
	bin := filepath.Join(needs.Build, "bin")
	if err := writeImage(filepath.Join(bin, "workload"), filepath.Join(bin, "workload.tar"), workloadImage); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// cannotRun prints a conspicuous message that nothing was tested. In CI that is a failure.
func cannotRun(why error) int {
	line := strings.Repeat("#", 100)
	fmt.Fprintf(os.Stderr, "%s\n### THE TESTS ON REAL MACHINES DID NOT RUN\n### %v\n%s\n", line, why, line)
	if os.Getenv("CI") == "true" {
		return 1
	}
	return 0
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// notInCore skips a test if only the core of the tests is wanted (-short), as in ./dev test --all. The core takes four
// minutes.
func notInCore(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in the core")
	}
}
