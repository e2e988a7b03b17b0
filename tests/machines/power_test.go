package machines

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// powerCutter cuts the power of a machine in each state of an update. It keeps the node in that state until the power
// is cut.
type powerCutter struct {
	*Fleet
	t    *testing.T
	m    *Machine // the machine whose power is cut
	boot string
}

// Files on the disk of a machine. While one exists, the machine waits: in its shutdown, or in the agent's hook
// `after-boot` or `before-release`.
const (
	holdShutdown = "/var/lib/hold-shutdown"
	holdVerify   = "/var/lib/hold-after-boot"
	holdSoak     = "/var/lib/hold-before-release"
)

func whileThere(path string) string { return "while [ -e " + path + " ]; do sleep 0.1; done" }

// The power of a machine fails in each state of an update. After each boot, the node is in service again and its slot
// is released. The agent has rebooted the machine no more often than the update needs.
func TestPowerCutInEachState(t *testing.T) {
	notInCore(t)
	f := NewFleet(t, needs, 2, func(m *Machine) error {
		stop := "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\nTimeoutStopSec=infinity\n" +
			"ExecStop=sh -c '" + whileThere(holdShutdown) + "'\n"
		if err := m.AddUnit("slow-stop", stop); err != nil {
			return err
		}
		for point, path := range map[string]string{"after-boot": holdVerify, "before-release": holdSoak} {
			hook := "#!/bin/sh\n" + whileThere(path) + "\n"
			if err := m.writeAs("/etc/haulout/hooks.d/"+point+"/50-hold", []byte(hook), 0o755); err != nil {
				return err
			}
		}
		return nil
	})
	// Each power cut counts as a reboot, so the default limit of three a day would be exceeded.
	must(t, f.InstallAll(t.Context(), "max-reboots-per-day: 10\n"))
	must(t, f.Deploy(t.Context(), heldWork))
	f.Witness.AtOnce(1)
	for _, story := range []struct {
		state   string
		reboots int // number of reboots by the agent
		cut     func(*powerCutter)
	}{
		{"waiting", 0, (*powerCutter).waiting},
		{"draining", 0, (*powerCutter).draining},
		{"ready", 0, (*powerCutter).ready},
		{"rebooting", 0, (*powerCutter).rebooting},
		{"verifying", 1, (*powerCutter).verifying},
		{"uncordoning", 1, (*powerCutter).uncordoning},
		{"soaking", 1, (*powerCutter).soaking},
	} {
		ok := t.Run(story.state, func(t *testing.T) {
			ctx := t.Context()
			c := &powerCutter{Fleet: f, t: t, m: f.busiest()}
			var err error
			c.boot, err = c.m.BootID(ctx)
			must(t, err)
			before := f.Reboots(c.m.Name)
			f.Line.Note(c.m.Name, "BEGINS: a power cut in the state %s", story.state)
			story.cut(c)
			_, err = f.UntilBackInService(ctx, updateLimit, c.m, c.boot)
			must(t, err)
			f.Line.Note(c.m.Name, "back in service")
			must(t, f.UntilWhole(ctx, heldWork))
			if reboots := f.Reboots(c.m.Name) - before; reboots != story.reboots {
				t.Errorf("%s has rebooted %d times by itself", c.m.Name, reboots)
			}
			f.checkNoSlots(t)
			for _, violation := range f.Witness.Violations() {
				t.Error(violation)
			}
			must(t, f.promise(ctx, heldWork, heldWork.Promised))
		})
		if !ok {
			return
		}
	}
}

// busiest returns the machine with the most pods, so that its drain has something to do.
func (f *Fleet) busiest() *Machine {
	most := f.Machines[0]
	for _, m := range f.Machines {
		if len(f.Witness.PodsOn(m.Name)) > len(f.Witness.PodsOn(most.Name)) {
			most = m
		}
	}
	return most
}

// needsReboot makes the machine need a reboot, so that its update begins.
func (c *powerCutter) needsReboot() {
	c.t.Helper()
	must(c.t, c.m.NeedsReboot(c.t.Context()))
	c.Line.Note(c.m.Name, "/run/reboot-required")
}

func (c *powerCutter) until(state, reason string) {
	c.t.Helper()
	must(c.t, c.Until(c.t.Context(), updateLimit, c.m.Name+" is "+state+" "+reason, func() (bool, error) {
		labels := c.Witness.Node(c.m.Name).Labels
		return labels[stateLabel] == state && (reason == "" || labels[reasonLabel] == reason),
			fmt.Errorf("state %s, reason %s", labels[stateLabel], labels[reasonLabel])
	}))
}

// cut takes the power away, removes the files `holds`, and gives the power back. It returns when the kubelet has
// started the machine's pods again and reports the new boot.
func (c *powerCutter) cut(holds ...string) {
	c.t.Helper()
	ctx := c.t.Context()
	state := c.Witness.Node(c.m.Name).Labels[stateLabel]
	c.Witness.Release(heldWork.App)
	before, err := c.pods(ctx)
	must(c.t, err)
	must(c.t, c.m.CutPower())
	for _, path := range holds {
		must(c.t, c.m.Remove(path))
	}
	c.Line.Note(c.m.Name, "power cut while %s", state)
	must(c.t, c.m.PowerOn())
	must(c.t, c.Until(ctx, bootLimit, "the kubelet has started the pods of "+c.m.Name+" again", func() (bool, error) {
		pods, err := c.pods(ctx)
		if err != nil {
			return false, err
		}
		old := containersOf(before)
		for _, pod := range pods {
			if !podReady(&pod) || !disjoint(containersOf([]corev1.Pod{pod}), old) {
				return false, fmt.Errorf("not %s", pod.Name)
			}
		}
		return c.Witness.Node(c.m.Name).Status.NodeInfo.BootID != c.boot, fmt.Errorf("the kubelet reports the boot before")
	}))
}

// pods returns the pods on the machine.
func (c *powerCutter) pods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := c.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + c.m.Name})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// containersOf returns the ids of the containers of these pods. A container that is started again gets another id, even
// if that happens within the same second, which is the resolution of its start time.
func containersOf(pods []corev1.Pod) map[string]bool {
	ids := map[string]bool{}
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			ids[container.ContainerID] = true
		}
	}
	return ids
}

func disjoint(one, other map[string]bool) bool {
	for key := range one {
		if other[key] {
			return false
		}
	}
	return true
}

// waiting keeps the node in `waiting`: a person has cordoned the other machine, so that machine counts as unavailable.
func (c *powerCutter) waiting() {
	other := c.Machines[0]
	if other == c.m {
		other = c.Machines[1]
	}
	_, err := c.Kubectl(c.t.Context(), "", "cordon", other.Name)
	must(c.t, err)
	c.needsReboot()
	c.until("waiting", "WaitingForSlot")
	c.cut()
	_, err = c.Kubectl(c.t.Context(), "", "uncordon", other.Name)
	must(c.t, err)
}

func (c *powerCutter) draining() {
	c.needsReboot()
	must(c.t, c.UntilHeld(c.t.Context(), c.m))
	c.cut()
}

// ready keeps the node in `ready`: a program blocks the reboot of the drained machine.
func (c *powerCutter) ready() {
	ctx := c.t.Context()
	c.needsReboot()
	must(c.t, c.UntilHeld(c.t.Context(), c.m))
	must(c.t, c.blockReboot(ctx, c.m))
	must(c.t, c.Relax(ctx, heldWork))
	c.until("ready", "CannotReboot")
	c.checkDrained()
	c.cut()
}

// rebooting keeps the node in `rebooting`: a unit of the machine delays the shutdown.
func (c *powerCutter) rebooting() {
	ctx := c.t.Context()
	_, err := c.m.Run(ctx, "touch", holdShutdown)
	must(c.t, err)
	must(c.t, c.Relax(ctx, heldWork))
	c.needsReboot()
	c.until("rebooting", "")
	must(c.t, c.Until(ctx, time.Minute, "the machine shuts down", func() (bool, error) {
		state, err := c.m.Run(ctx, "systemctl", "is-system-running")
		return strings.TrimSpace(state) == "stopping", err
	}))
	c.checkDrained()
	c.cut(holdShutdown)
}

func (c *powerCutter) verifying() { c.inHook("verifying", holdVerify) }

func (c *powerCutter) soaking() { c.inHook("soaking", holdSoak) }

// inHook keeps the node in this state: a hook waits.
func (c *powerCutter) inHook(state, hold string) {
	_, err := c.m.Run(c.t.Context(), "touch", hold)
	must(c.t, err)
	must(c.t, c.Relax(c.t.Context(), heldWork))
	c.needsReboot()
	c.until(state, "WaitingForHook")
	c.cut(hold)
}

// uncordoning keeps the node in `uncordoning`: the API server refuses the uncordon.
func (c *powerCutter) uncordoning() {
	ctx := c.t.Context()
	c.needsReboot()
	must(c.t, c.UntilHeld(c.t.Context(), c.m))
	_, err := c.Kubectl(ctx, noUncordon, "apply", "-f", "-")
	must(c.t, err)
	must(c.t, c.Until(ctx, time.Minute, "uncordons are refused", func() (bool, error) {
		// kubectl prints the refusal and exits with 0.
		said, err := c.Kubectl(ctx, "", "uncordon", c.m.Name, "--dry-run=server")
		return strings.Contains(said, "no node is uncordoned now"), err
	}))
	must(c.t, c.Relax(ctx, heldWork))
	c.until("uncordoning", "CannotUncordon")
	c.cut()
	_, err = c.Kubectl(ctx, noUncordon, "delete", "-f", "-")
	must(c.t, err)
}

const noUncordon = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-uncordon}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}
  validations:
  - expression: "!oldObject.spec.?unschedulable.orValue(false) || object.spec.?unschedulable.orValue(false)"
    message: no node is uncordoned now
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-uncordon}
spec: {policyName: no-uncordon, validationActions: [Deny]}
`

// checkDrained checks that no pods are on the machine any more when its power is cut.
func (c *powerCutter) checkDrained() {
	c.t.Helper()
	if pods := c.Witness.PodsOn(c.m.Name); len(pods) > 0 {
		c.t.Errorf("%d pods are on %s", len(pods), c.m.Name)
	}
}
