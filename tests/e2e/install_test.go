package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server accepts all shipped manifests, an agent also runs on a node that is tainted and cordoned, and no agent
// can do more than its work. Not in parallel: a second control plane would slow down tests that measure times.
func TestInstall(t *testing.T) {
	needKubernetes(t, 36, "agents that act as their nodes, as those of the base do")
	in := install(t)
	t.Run("policies type-check", func(t *testing.T) { expectTypeChecked(t, in) })
	t.Run("components", func(t *testing.T) { expectComponents(t, in) })
	t.Run("P11 FleetLock server", func(t *testing.T) { expectMachinesServed(t, in) })
	t.Run("DaemonSet", func(t *testing.T) {
		daemonSet, err := in.Client.AppsV1().DaemonSets(agentName).Get(t.Context(), agentName, getOptions)
		must(t, err)
		expectConfined(t, daemonSet)
	})
	t.Run("own share of the API server", func(t *testing.T) { expectOwnPriorityLevel(t, in) })
	t.Run("Nodes after an uninstall", func(t *testing.T) { expectNothingLeft(t, in) })
	t.Run("one node that is taken out", func(t *testing.T) { expectOneNodeTakenOut(t, in) })
	t.Run("P11 own Node only", func(t *testing.T) { expectOwnNodeOnly(t, in) })
	t.Run("P11 a stolen token", func(t *testing.T) { expectAttacksFail(t, in) })
	t.Run("P11 pods that are new", func(t *testing.T) { expectNewPodsSafe(t, in) })
	t.Run("P11 a Node that has gone", func(t *testing.T) { expectNodeStaysGone(t, in) })
	t.Run("P11 kubelets are not held", func(t *testing.T) { expectKubeletsFree(t, in) })
	t.Run("P12 a quota of turns", func(t *testing.T) { expectTurnsCounted(t, in) })
	t.Run("P12 a fleet of its pods in a flood", func(t *testing.T) { expectFloodEndured(t, in) })
	t.Run("P11 surge under impersonation", func(t *testing.T) {
		in.changeTo(t, "surge")
		expectTypeChecked(t, in)
		expectSurgeHeld(t, in)
		in.tryAll(t, otherReads(in.Own, in.pod(t, ownNode)))
		t.Run("a fleet of its pods", func(t *testing.T) { expectSurgeByPods(t, in, "impersonation") })
		defer in.agentsMayAll(t)()
		expectSurgeHeld(t, in)
	})
	t.Run("guards under impersonation", func(t *testing.T) {
		in.changeTo(t, "guards")
		expectGuarded(t, in)
	})
	t.Run("P11 held by policies that an administrator cannot pass", func(t *testing.T) {
		defer in.agentsMayAll(t)()
		expectPolicyAttacksFail(t, in)
	})
	expectPoliciesOnly(t, in)
	t.Run("each rule refuses something", func(t *testing.T) { in.expectRulesTried(t) })
}

// The manifests as they are for Kubernetes 1.30 to 1.35. TestInstall tests the same on newer versions.
func TestInstallPoliciesOnly(t *testing.T) {
	needKubernetes(t, 30, "ValidatingAdmissionPolicies")
	if cluster.Minor >= 36 {
		t.Skipf("TestInstall does the same on Kubernetes 1.%d", cluster.Minor)
	}
	in := install(t, "policies-only")
	t.Run("policies type-check", func(t *testing.T) { expectTypeChecked(t, in) })
	t.Run("DaemonSet", func(t *testing.T) {
		daemonSet, err := in.Client.AppsV1().DaemonSets(agentName).Get(t.Context(), agentName, getOptions)
		must(t, err)
		expectConfined(t, daemonSet)
	})
	t.Run("own share of the API server", func(t *testing.T) { expectOwnPriorityLevel(t, in) })
	expectPoliciesOnly(t, in)
}

func expectPoliciesOnly(t *testing.T, in *Installed) {
	t.Helper()
	t.Run("P11 policies only", func(t *testing.T) {
		in.changeTo(t, "policies-only")
		expectTypeChecked(t, in)
		expectPoliciesHold(t, in)
		t.Run("a fleet of its pods", func(t *testing.T) { expectFleetUpdates(t, in, "policies") })
		defer in.agentsMayAll(t)()
		expectPoliciesHoldAnAdministrator(t, in)
	})
	t.Run("P11 surge with policies only", func(t *testing.T) {
		in.changeTo(t, "policies-only", "surge")
		expectTypeChecked(t, in)
		expectSurgeHeld(t, in)
		expectPoliciesHold(t, in)
		t.Run("a fleet of its pods", func(t *testing.T) { expectSurgeByPods(t, in, "policies") })
		defer in.agentsMayAll(t)()
		expectSurgeHeld(t, in)
		expectPoliciesHoldAnAdministrator(t, in)
	})
}

// The API server has just learned the manifests, so it may classify the first requests by the older ones.
func expectOwnPriorityLevel(t *testing.T, in *Installed) {
	t.Helper()
	flowControl := in.Client.FlowcontrolV1()
	schema, err := flowControl.FlowSchemas().Get(t.Context(), agentName, getOptions)
	must(t, err)
	level, err := flowControl.PriorityLevelConfigurations().Get(t.Context(), agentName, getOptions)
	must(t, err)
	must(t, Until(t.Context(), "the agents have their own priority level", func() (bool, error) {
		header, err := in.Unbound.HeadersOf(t.Context(), "/api/v1/nodes?limit=1")
		if err != nil {
			return false, err
		}
		got := header.Get("X-Kubernetes-Pf-Flowschema-Uid") + " " + header.Get("X-Kubernetes-Pf-Prioritylevel-Uid")
		return got == string(schema.UID)+" "+string(level.UID), fmt.Errorf("%s", got)
	}))
}

func expectTypeChecked(t *testing.T, in *Installed) {
	t.Helper()
	policies := in.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	must(t, Until(t.Context(), "the policies have been checked", func() (bool, error) {
		list, err := policies.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		if len(list.Items) == 0 {
			return false, fmt.Errorf("there are none")
		}
		for _, policy := range list.Items {
			if policy.Status.ObservedGeneration != policy.Generation {
				return false, nil
			}
			if check := policy.Status.TypeChecking; check != nil && len(check.ExpressionWarnings) > 0 {
				t.Fatalf("policy %s: %+v", policy.Name, check.ExpressionWarnings)
			}
		}
		return true, nil
	}))
}

func expectComponents(t *testing.T, in *Installed) {
	for _, components := range [][]string{
		{"policies-only"}, {"kubelet-credentials"}, {"unmarked-kubelets"}, {"bottlerocket"}, {"guards"}, {"surge"},
		{"network-policy"}, {"guards", "surge"}, {"policies-only", "surge", "guards"},
	} {
		t.Run(strings.Join(components, ","), func(t *testing.T) {
			dir, err := kustomization(in.Dir, components...)
			must(t, err)
			_, err = in.AdminKubectl(t.Context(), "apply", "-k", dir, "--validate=strict", "--dry-run=server")
			must(t, err)
		})
	}
	t.Run("pod-monitor", func(t *testing.T) { // the API server does not know PodMonitor, so it can only be rendered
		dir, err := kustomization(in.Dir, "pod-monitor")
		must(t, err)
		rendered, err := in.AdminKubectl(t.Context(), "kustomize", dir)
		must(t, err)
		if !strings.Contains(rendered, "kind: PodMonitor") {
			t.Errorf("there is no PodMonitor:\n%s", rendered)
		}
	})
}

// The agent's pod has what its work needs, and nothing with which it could break out of its container.
func expectConfined(t *testing.T, daemonSet *appsv1.DaemonSet) {
	t.Helper()
	pod := daemonSet.Spec.Template.Spec
	if pod.HostPID || pod.HostNetwork || pod.HostIPC || len(pod.InitContainers) > 0 || len(pod.Containers) != 1 {
		t.Errorf("the pod shares a namespace of its host, or has more than one container")
	}
	container := pod.Containers[0]
	context := container.SecurityContext
	if context.Privileged != nil && *context.Privileged || *context.AllowPrivilegeEscalation ||
		!*context.ReadOnlyRootFilesystem || len(context.Capabilities.Add) > 0 ||
		len(context.Capabilities.Drop) != 1 || context.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container has privileges: %+v", context)
	}
	if pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("seccomp: %+v", pod.SecurityContext.SeccompProfile)
	}
	paths := map[string]string{} // paths on the host, by name of the volume
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			paths[volume.Name] = volume.HostPath.Path
		}
	}
	readOnly := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		if path, ok := paths[mount.Name]; ok {
			readOnly[path] = mount.ReadOnly
			if mount.MountPath != "/host"+path {
				t.Errorf("%s is mounted at %s", path, mount.MountPath)
			}
		}
	}
	want := map[string]bool{
		"/proc/sys/kernel/random/boot_id": true, "/proc/sys/kernel/osrelease": true, "/etc/os-release": true,
		"/etc/kernel/postinst.d": true, "/etc/apt/apt.conf.d": true, "/boot": true, "/etc/haulout": true, "/run": true,
		"/run/haulout": false,
	}
	if fmt.Sprint(readOnly) != fmt.Sprint(want) {
		t.Errorf("mounts of the host, read-only or not: %v, want %v", readOnly, want)
	}
}
