package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The most memory, in bytes, that a drain of manyPods may have. Each pod has podSize bytes in the API's JSON. With
// guards, the drain also knows as many replacements on other nodes.
const (
	drainRSS   = 30e6
	guardedRSS = 40e6
	manyPods   = 1000
	podSize    = 3000
)

// A drain reads all pods of its node, but must not keep all of their content. The server is the simulated cluster, so
// that a thousand pods take only seconds.
func TestMemoryOfAThousandPods(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	t.Run("plain", func(t *testing.T) { memoryOfAThousandPods(t, nil, drainRSS) })
	t.Run("with volumes and guards", func(t *testing.T) { memoryOfAThousandPods(t, guarded, guardedRSS) })
}

func memoryOfAThousandPods(t *testing.T, flags []string, most float64) {
	w := newWorld(t)
	kubeconfig := simulated(t, w, func() (world []any) {
		for _, name := range []string{"old", "new"} {
			world = append(world, map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}})
		}
		replicas := int32(manyPods)
		web := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
		web.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
		web.Name, web.Namespace, web.UID = "web", "default", "web-uid"
		world = append(world, web)
		for i := range manyPods {
			world = append(world, podOfSize(t, i, podSize))
		}
		return world
	}())
	args := append([]string{"drain", "old", "--settle=0", "--timeout=5m", "-o", "json"}, flags...)
	drain, err := w.StartWith(t.Context(), kubeconfig, haulout, args...)
	must(t, err)
	result, err := drain.Wait()
	must(t, err)
	report, err := result.Report()
	must(t, err)
	left := 0
	for _, pod := range report.Pods {
		if pod.Outcome == "evicted" {
			left++
		}
	}
	if report.Outcome != "drained" || left != manyPods {
		t.Fatalf("%s, and %d pods left\n%s", report.Outcome, left, result.Stderr)
	}
	t.Logf("%d pods of %d bytes: at most %.1f MB, %.1f s, CPU %.2f s", manyPods, podSize, mb(result.MaxRSS),
		result.Wall.Seconds(), (result.User + result.System).Seconds())
	if sanitized(t, haulout.Path) {
		t.Skip("NOT JUDGED: what a sanitizer's build holds says nothing")
	}
	if float64(result.MaxRSS) > most {
		t.Errorf("it held %.1f MB, and at most %.0f MB are promised", mb(result.MaxRSS), most/1e6)
	}
}

// simulated serves a world on loopback until the test ends, and returns the kubeconfig for it.
func simulated(t *testing.T, w *World, items []any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	must(t, err)
	world, kubeconfig := filepath.Join(w.Home, "world.json"), filepath.Join(w.Home, "simulated.kubeconfig")
	must(t, os.WriteFile(world, data, 0o600))
	demo, err := FindDemo()
	must(t, err)
	server, err := startProcess(w.Home, "demo-cluster", demo, "--listen", "127.0.0.1:0", "--world", world,
		"--kubeconfig", kubeconfig)
	must(t, err)
	t.Cleanup(server.kill)
	must(t, Until(t.Context(), "the simulated cluster serves", func() (bool, error) {
		if server.exited() {
			t.Fatalf("it ended: %s", server.logTail())
		}
		info, err := os.Stat(kubeconfig)
		return err == nil && info.Size() > 0, nil
	}))
	return kubeconfig
}

// podOfSize returns a pod of a ReplicaSet on the node "old" whose JSON has this size.
func podOfSize(t *testing.T, number, size int) *corev1.Pod {
	t.Helper()
	isController := true
	pod := Pod(fmt.Sprintf("web-%d", number), Annotate(TerminatesAfter, "1s"))
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Namespace = "default"
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web-uid", Controller: &isController,
	}}
	pod.Spec.NodeName = "old"
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	written, err := json.Marshal(pod)
	must(t, err)
	// As in real clusters, environment variables are most of the JSON.
	const each = 100
	for missing := size - len(written); missing > 0; missing -= each {
		name := fmt.Sprintf("VARIABLE_%d", missing)
		room := max(0, min(missing, each)-len(`{"name":"","value":""},`)-len(name))
		main := &pod.Spec.Containers[0]
		main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: strings.Repeat("x", room)})
	}
	return pod
}

// sanitized returns true if the program was built with AddressSanitizer.
func sanitized(t *testing.T, path string) bool {
	t.Helper()
	program, err := os.ReadFile(path)
	must(t, err)
	return bytes.Contains(program, []byte("__asan_init"))
}
