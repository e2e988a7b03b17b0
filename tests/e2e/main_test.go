package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The cluster that all tests share. Without a control plane, runAll runs no test.
var cluster *Cluster

// The binary under test. noHaulout is the error if there is none.
var (
	haulout   Tool
	noHaulout error
)

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	flag.Parse()
	// Runs more tests in parallel than there are cores, because tests mostly wait.
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	mustRun := inCI()

	path, err := FindHaulout()
	haulout, noHaulout = Tool{Name: "haulout", Path: path}, err
	if noHaulout != nil {
		shout("NOTHING OF HAULOUT IS TESTED HERE", noHaulout)
		if mustRun {
			return 1
		}
	}
	programs, err := FindPrograms()
	if err != nil {
		shout("THE END-TO-END TESTS DID NOT RUN", err)
		if mustRun {
			return 1
		}
		return 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = StartCluster(ctx, programs); err != nil {
		shout("THE CONTROL PLANE DID NOT START", err)
		return 1
	}
	defer cluster.Stop()
	fmt.Fprintf(os.Stderr, "e2e: Kubernetes 1.%d\n", cluster.Minor)
	stopOnSignal()
	return m.Run()
}

func stopOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cluster.Stop()
		os.Exit(1)
	}()
}

func shout(what string, why error) {
	line := strings.Repeat("#", 100)
	fmt.Fprintf(os.Stderr, "%s\n### %s\n### %v\n%s\n", line, what, why, line)
}

// cannotRun ends a test that cannot run on this machine: it is skipped, and fails in CI.
func cannotRun(t *testing.T, why string) {
	t.Helper()
	if inCI() {
		t.Fatalf("NOT RUN: %s", why)
	}
	t.Skipf("NOT RUN: %s", why)
}

func inCI() bool { return os.Getenv("CI") == "true" }

// needHaulout skips a test that proves nothing without the binary.
func needHaulout(t *testing.T) {
	t.Helper()
	if noHaulout != nil {
		t.Skipf("NOT RUN: %v", noHaulout)
	}
}

// withinASecond fails if `took` is more than a second plus the time that `haulout version` takes now. That time grows
// with the load of this machine, for which the program under test is not responsible.
func withinASecond(t *testing.T, what string, took time.Duration) {
	t.Helper()
	yardstick := time.Duration(0) // the slowest of some runs, because other tests take the processor in bursts
	for range 5 {
		began := time.Now()
		must(t, exec.CommandContext(t.Context(), haulout.Path, "version").Run())
		yardstick = max(yardstick, time.Since(began))
	}
	if took < 0 || took > time.Second+yardstick {
		t.Errorf("%s %v, and %v were what a program takes that does nothing", what, took, yardstick)
	}
}

func newWorld(t *testing.T) *World {
	t.Helper()
	w, err := cluster.NewWorld(t.Context())
	must(t, err)
	t.Cleanup(w.Close)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// needKubernetes skips a test of something that Kubernetes has only since version 1.`minor`.
func needKubernetes(t *testing.T, minor int, what string) {
	t.Helper()
	if cluster.Minor < minor {
		t.Skipf("%s: Kubernetes 1.%d and newer", what, minor)
	}
}
