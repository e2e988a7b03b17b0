package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// signalRows returns worlds with pods behind budgets that never allow a disruption. The server refuses their evictions,
// but a webhook sees the requests, and a controller then deletes the pods.
func signalRows() []row {
	return []row{
		{
			name: "virtual machine migrates when it is asked to leave", flags: []string{"--timeout=60s"},
			build: func(s *setup) {
				s.add(1, AtLeast("vm", "1"), OwnedBy(Pod("vm"), "kubevirt.io/v1", "VirtualMachineInstance"))
				moveWhenAsked(s, 6*time.Second)
			},
			want:  outcome{done: true, cordoned: "old"},
			check: refusedOnly,
		},
		{
			name: "operator rolls its pods when they are asked to leave", flags: []string{"--timeout=60s"},
			build: func(s *setup) {
				// For pods without a scale, a budget can only have a number in minAvailable. Strimzi, too, writes such
				// a number if a user sets maxUnavailable: 0.
				for _, name := range []string{"kafka", "zookeeper"} {
					s.add(1, AtLeast(name, "1"), OwnedBy(Pod(name), "core.strimzi.io/v1beta2", "StrimziPodSet"))
				}
				s.add(2, Deployment("web", 2))
				moveWhenAsked(s, 3*time.Second)
			},
			want: outcome{done: true, evicted: "web=2", cordoned: "old"},
		},
	}
}

// moveWhenAsked adds a webhook that admits every eviction, and a controller that deletes each pod when the time `takes`
// has passed since the first eviction request for it.
func moveWhenAsked(s *setup, takes time.Duration) {
	s.t.Helper()
	h := startWebhook(s.t, s.World, "probe")
	h.inForce(s.t, s.World, "probe")
	var moving sync.Map
	move := func(pod string) {
		if _, known := moving.LoadOrStore(pod, true); known || pod == "probe" {
			return
		}
		time.AfterFunc(takes, func() {
			_ = s.Client.CoreV1().Pods(s.Name).Delete(context.Background(), pod, *metav1.NewDeleteOptions(0))
		})
	}
	h.admitted.Store(&move)
}

// refusedOnly checks that an eviction of the pod was requested, and that the server accepted none.
func refusedOnly(t *testing.T, w *World) {
	t.Helper()
	requests, err := w.Requests()
	must(t, err)
	asked := 0
	for _, request := range requests {
		if !request.IsEviction() {
			continue
		}
		asked++
		if request.Accepted() {
			t.Errorf("an eviction was accepted: %s", request.ObjectRef.Name)
		}
	}
	if asked == 0 || asked > 3 {
		t.Errorf("asked %d times", asked)
	}
}
