package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A command whose output cannot be written fails.
func TestOutputThatCannotBeKept(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	for _, args := range [][]string{{"version"}, {"completion", "bash"}, {"status"}, {"drain", "--help"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		must(t, err)
		var stderr strings.Builder
		command := w.command(t.Context(), w.Kubeconfig, haulout, args...)
		command.Stdout, command.Stderr = full, &stderr
		err = command.Run()
		full.Close()
		if command.ProcessState.ExitCode() != 1 || stderr.Len() == 0 {
			t.Errorf("%v: %v, and said %q", args, err, stderr.String())
		}
	}
}

// `haulout status -w | head -1` ends when its reader has ended, although nothing changes in the cluster.
func TestAWatchEndsWithItsReader(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	for _, args := range [][]string{{"status", "-w"}, {"status", "-w", "-o", "json"}} {
		must(t, w.AddNode(t.Context(), fmt.Sprint("n", len(args)), "old"))
		reader, writer, err := os.Pipe()
		must(t, err)
		command := w.command(t.Context(), w.Kubeconfig, haulout, args...)
		command.Stdout = writer
		must(t, command.Start())
		writer.Close()
		if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		reader.Close()
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v ended with %v", args, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%v goes on without a reader", args)
			must(t, command.Process.Kill())
			<-ended
		}
	}
}

// warningServer returns a server that sends a Warning with each answer.
func warningServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Add("Warning", `299 - "policy quiet-hours: not now"`)
		answer.Header().Set("Content-Type", "application/json")
		fmt.Fprint(answer, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u","resourceVersion":"1"}}`)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestServerWarnings(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	server := warningServer(t)
	for _, asErrors := range []bool{false, true} {
		command := exec.CommandContext(t.Context(), haulout.Path, "uncordon", "n1", "--server", server.URL,
			fmt.Sprintf("--warnings-as-errors=%v", asErrors))
		command.Env = []string{"HOME=" + t.TempDir()}
		var stdout, stderr strings.Builder
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Run(); (err != nil) != asErrors {
			t.Errorf("%v\n%s", err, stderr.String())
		}
		if stdout.String() != "node/n1 already uncordoned\n" {
			t.Errorf("stdout is %q", stdout.String())
		}
		if strings.Count(stderr.String(), "Warning: policy quiet-hours: not now\n") != 1 {
			t.Errorf("stderr is %q", stderr.String())
		}
	}
}

// snapshotServer returns a server with one empty node, which sends a Warning with each answer.
func snapshotServer(t *testing.T) *httptest.Server {
	lists := map[string]string{
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` +
			`{"metadata":{"name":"n1","uid":"u","resourceVersion":"1"}}]}`,
		"/api/v1/pods": `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Add("Warning", `299 - "policy quiet-hours: not now"`)
		answer.Header().Set("Content-Type", "application/json")
		if list, known := lists[request.URL.Path]; known {
			fmt.Fprint(answer, list)
			return
		}
		answer.WriteHeader(http.StatusForbidden)
		fmt.Fprint(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	t.Cleanup(server.Close)
	return server
}

// A rehearsal that ends well fails all the same if the server warned while its snapshot was read.
func TestServerWarningsOfARehearsal(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	server := snapshotServer(t)
	for _, asErrors := range []bool{false, true} {
		command := exec.CommandContext(t.Context(), haulout.Path, "rehearse", "n1", "--server", server.URL,
			fmt.Sprintf("--warnings-as-errors=%v", asErrors))
		command.Env = []string{"HOME=" + t.TempDir()}
		output, err := command.CombinedOutput()
		if (err != nil) != asErrors {
			t.Errorf("--warnings-as-errors=%v: %v\n%s", asErrors, err, output)
		}
		if !strings.Contains(string(output), "node/n1") {
			t.Errorf("nothing was rehearsed:\n%s", output)
		}
	}
}
