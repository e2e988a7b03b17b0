package e2e

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Machine is the computer of a Node, as far as its agent can see it: a directory as its root, a system bus, an
// operating system with a version and a boot id, and an agent that runs while the machine is up. If logind or systemd
// accepts a reboot, the machine goes down: its agent is killed, and starts again in another boot.
type Machine struct {
	Node string
	Root string

	world *World
	bus   *hostBus
	plain bool // systemd has not booted it
	tool  Tool // its command `agent` runs on the machine, with args and env
	args  []string
	env   []string
	// Called at the moment at which the machine goes down.
	GoingDown func()

	mu      sync.Mutex
	version string
	boots   int
	agent   *process
	lives   int
	closed  bool
	problem error
	working sync.WaitGroup
}

// NewMachine returns a machine that is up and runs version 1.0, without an agent. The Node must exist. Close must be
// called.
func (w *World) NewMachine(node string) (*Machine, error) {
	// The path of a unix socket must be short.
	root, err := os.MkdirTemp(w.Dir, "m-")
	if err != nil {
		return nil, err
	}
	m := &Machine{Node: node, Root: root, world: w, version: "1.0"}
	if err := m.writeSystem(); err != nil {
		return nil, err
	}
	m.bus, err = startHostBus(root, m.reboot)
	return m, err
}

// WithoutSystemd makes it a machine that systemd has not booted, where hooks are children of the agent. It must have no
// agent yet.
func (m *Machine) WithoutSystemd() error {
	m.plain = true
	return os.RemoveAll(filepath.Join(m.Root, "run/systemd"))
}

// Close ends the agent and the bus.
func (m *Machine) Close() {
	m.mu.Lock()
	m.closed = true
	agent := m.agent
	m.mu.Unlock()
	if agent != nil {
		agent.kill()
	}
	m.working.Wait()
	m.bus.stop()
}

// StartAgent starts the agent with these arguments, and again after each boot.
func (m *Machine) StartAgent(haulout Tool, env []string, args ...string) error {
	m.tool = haulout
	m.env = append([]string{"HOME=" + m.world.Home, "PATH=" + os.Getenv("PATH")}, env...)
	m.args = append([]string{"agent", "--node-name", m.Node, "--host-root", m.Root}, args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.startAgent()
}

func (m *Machine) startAgent() (err error) {
	if m.closed {
		return nil
	}
	m.lives++
	m.agent, err = startProcessIn(m.env, m.Root, fmt.Sprintf("agent-%d", m.lives), m.tool.Path, m.args...)
	return err
}

// RestartAgent ends the agent by a signal and starts the next one.
func (m *Machine) RestartAgent(signal syscall.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.agent == nil {
		return nil
	}
	_ = syscall.Kill(-m.agent.cmd.Process.Pid, signal)
	select {
	case <-m.agent.done:
	case <-time.After(10 * time.Second):
		return fmt.Errorf("the agent of %s does not end by %v", m.Node, signal)
	}
	return m.startAgent()
}

// AgentPID returns the process id of the running agent.
func (m *Machine) AgentPID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agent.cmd.Process.Pid
}

// Offer makes update_engine report that this version is installed and needs a reboot.
func (m *Machine) Offer(version string) error { return m.bus.offer(version) }

// Version returns the version that runs.
func (m *Machine) Version() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// Boots returns the number of boots after the first one.
func (m *Machine) Boots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boots
}

// Ready returns true if the ready file shows that the node may be rebooted.
func (m *Machine) Ready() bool {
	_, err := os.Stat(filepath.Join(m.Root, "run/haulout/ready"))
	return err == nil
}

// Problem returns the first failure of this simulation itself, for example of a reboot.
func (m *Machine) Problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem
}

// Log returns everything that the agents of this machine have logged.
func (m *Machine) Log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := ""
	for life := 1; life <= m.lives; life++ {
		data, _ := os.ReadFile(filepath.Join(m.Root, fmt.Sprintf("agent-%d.log", life)))
		text += fmt.Sprintf("--- agent %d of %s\n%s", life, m.Node, data)
	}
	return text
}

// reboot reboots the machine in the background, because the answer on the bus must not wait for the reboot.
func (m *Machine) reboot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if m.GoingDown != nil {
		m.GoingDown()
	}
	m.working.Add(1)
	go func() {
		defer m.working.Done()
		err := m.cycle()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.problem == nil {
			m.problem = err
		}
	}()
}

// cycle takes the machine down and boots it again.
func (m *Machine) cycle() error {
	m.mu.Lock()
	agent := m.agent
	m.mu.Unlock()
	if agent != nil {
		agent.kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := m.report(ctx, corev1.ConditionUnknown, ""); err != nil {
		return err
	}
	m.mu.Lock()
	m.boots++
	m.bus.mu.Lock()
	if m.bus.offered != "" {
		m.version, m.bus.offered = m.bus.offered, ""
	}
	m.bus.mu.Unlock()
	m.mu.Unlock()
	if err := m.writeSystem(); err != nil {
		return err
	}
	bootID, err := os.ReadFile(filepath.Join(m.Root, bootIDFile))
	if err != nil {
		return err
	}
	m.mu.Lock()
	err = m.startAgent()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.report(ctx, corev1.ConditionTrue, string(bootID[:len(bootID)-1]))
}

const bootIDFile = "proc/sys/kernel/random/boot_id"

// writeSystem writes the files that a boot leaves: /run is empty, and the boot id is a new one.
func (m *Machine) writeSystem() error {
	if err := os.RemoveAll(filepath.Join(m.Root, "run/haulout")); err != nil {
		return err
	}
	files := map[string]string{
		bootIDFile:       string(uuid.NewUUID()) + "\n",
		"etc/os-release": fmt.Sprintf("ID=flatcar\nNAME=Flatcar\nVERSION=%s\nVERSION_ID=%[1]s\nPRETTY_NAME=\"Flatcar %[1]s\"\n", m.version),
		"etc/machine-id": fmt.Sprintf("%x\n", md5.Sum([]byte(m.Node))),
	}
	dirs := []string{"etc/haulout", "boot"}
	if !m.plain {
		dirs = append(dirs, "run/systemd/system")
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(m.Root, dir), 0o755); err != nil {
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(m.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// report reports, as the kubelet, the condition Ready and the boot id.
func (m *Machine) report(ctx context.Context, ready corev1.ConditionStatus, bootID string) error {
	status := map[string]any{
		"conditions": []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "e2e",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
	}
	if bootID != "" {
		status["nodeInfo"] = map[string]any{"bootID": bootID}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = m.world.Client.CoreV1().Nodes().Patch(
		ctx, m.Node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
