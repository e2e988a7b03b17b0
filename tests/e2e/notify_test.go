package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// told is a message of the hook `notify` with kind=json.
type told struct {
	Node, Point, FromVersion, ToVersion, Text string
}

// The agents of three machines run the shipped hook `notify` at all points, as their children. A chat is told of each
// step of each node. Another chat fails each time, and that changes nothing.
func TestNotifications(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		cannotRun(t, err.Error())
	}
	f := newFleet(t, cluster)
	var mu sync.Mutex
	heard := map[string][]told{} // by node
	refused := 0
	chat := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if request.URL.Path != "/good" {
			refused++
			answer.WriteHeader(http.StatusInternalServerError)
			return
		}
		var message told
		if err := json.NewDecoder(request.Body).Decode(&message); err != nil {
			t.Errorf("a message is not JSON: %v", err)
		}
		heard[message.Node] = append(heard[message.Node], message)
	}))
	defer chat.Close()
	for _, machine := range f.Machines {
		must(t, machine.WithoutSystemd())
		must(t, linkNotify(machine.Root))
		must(t, writeSecret(machine.Root, "etc/haulout/notify.conf", "kind=json\nurl="+chat.URL+"/good\n"))
		must(t, writeSecret(machine.Root, "etc/haulout/notify.d/bad.conf", "kind=slack\nretries=0\nurl="+chat.URL+"/bad\n"))
		must(t, machine.StartAgent(haulout,
			[]string{"KUBECONFIG=" + f.Kubeconfig, "HAULOUT_NOTIFY_DIR=" + filepath.Join(machine.Root, "etc/haulout")},
			f.flags("--namespace", f.Name, "--authority=serviceaccount")...))
	}
	f.offerAll(t, "1.1")
	f.expectUpdated(t, "1.1", 1, f.Name)

	mu.Lock()
	defer mu.Unlock()
	messages := 0
	for _, machine := range f.Machines {
		messages += len(heard[machine.Node])
		// The agent may begin a point again after a restart, and then tells it twice.
		points := []string{}
		for _, message := range heard[machine.Node] {
			points = append(points, message.Point)
			if message.FromVersion != "1.0" || message.ToVersion != "1.1" || !strings.Contains(message.Text, machine.Node) {
				t.Errorf("message %+v", message)
			}
		}
		if got := fmt.Sprint(slices.Compact(points)); got != "[before-drain after-drain after-boot before-release]" {
			t.Errorf("%s told %s", machine.Node, got)
		}
	}
	if refused != messages {
		t.Errorf("of the other chat %d messages were refused, and this one was told %d", refused, messages)
	}
}

// linkNotify installs the hook beneath this root, and switches it on for all points, as docs/hooks.md says.
func linkNotify(root string) error {
	program, err := os.ReadFile("../../packaging/hooks/notify")
	if err != nil {
		return err
	}
	const installed = "/usr/share/haulout/hooks/notify"
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, installed)), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, installed), program, 0o755); err != nil {
		return err
	}
	for _, point := range []string{"before-drain", "after-drain", "after-boot", "before-release"} {
		link := filepath.Join(root, "etc/haulout/hooks.d", point, "50-notify")
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(installed, link); err != nil {
			return err
		}
	}
	return nil
}

func writeSecret(root, name, text string) error {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
