package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const agentImagesUnit = `[Unit]
Requires=containerd.service
After=containerd.service
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/node/bin/ctr -n k8s.io images import --base-name docker.io/library/haulout ` + imagePath + `
`

const imagePath = "/opt/haulout-image.tar"

// The image that ./dev image has built runs as the DaemonSet of the shipped manifests, on real kubelets. During a drain,
// the DaemonSet is rolled out again: the next agent continues the drain, and the machine reboots once.
func TestDaemonSetRolledOutInDrain(t *testing.T) {
	f := NewFleet(t, needs, 2, func(m *Machine) error {
		image, err := os.ReadFile(needs.Image)
		if err != nil {
			return err
		}
		if err := m.writeAs(imagePath, image, 0o644); err != nil {
			return err
		}
		return m.AddUnit("agent-images", agentImagesUnit)
	})
	m, ctx := f.Machines[0], t.Context()
	must(t, f.ServeService(f.watching))
	_, err := f.Kubectl(ctx, "", "apply", "-k", filepath.Join(needs.Root, "packaging", "kustomize", "base"))
	must(t, err)
	for _, machine := range f.Machines {
		must(t, f.UntilState(ctx, 3*time.Minute, machine.Name, "idle"))
	}
	boot := f.hold(t)
	before, err := f.agentOn(ctx, m)
	must(t, err)

	_, err = f.Kubectl(ctx, "", "-n", "haulout", "rollout", "restart", "daemonset/haulout")
	must(t, err)
	f.Line.Note("control", "kubectl rollout restart")
	said, err := f.Kubectl(ctx, "", "-n", "haulout", "rollout", "status", "daemonset/haulout", "--timeout=5m")
	must(t, err)
	f.Line.Note("control", "%s", strings.TrimSpace(said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]))
	now, err := f.agentOn(ctx, m)
	must(t, err)
	if now.UID == before.UID || !podReady(now) {
		t.Errorf("the agent was pod %s and is %s", before.Name, now.Name)
	}
	f.checkHeld(t, m)
	must(t, f.Relax(ctx, heldWork))
	f.finish(t, heldWork, boot)
}

// agentOn returns the pod of the DaemonSet on a machine.
func (f *Fleet) agentOn(ctx context.Context, m *Machine) (*corev1.Pod, error) {
	pods, err := f.Client.CoreV1().Pods("haulout").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + m.Name})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 {
		return nil, fmt.Errorf("%d agents on %s", len(pods.Items), m.Name)
	}
	return &pods.Items[0], nil
}
