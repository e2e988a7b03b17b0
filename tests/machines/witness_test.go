package machines

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The witness records each violation of a promise, and nothing else.
func TestWitness(t *testing.T) {
	yes := func(kind corev1.PodConditionType, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason}
	}
	pod := func(name string, conditions ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{appLabel: "web"}},
			Status:     corev1.PodStatus{Conditions: conditions},
		}
	}
	deleted := func(pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp = &metav1.Time{}
		return pod
	}
	node := func(name string, cordoned bool) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	}
	ready, evicted := yes(corev1.PodReady, ""), yes(corev1.DisruptionTarget, "EvictionByEvictionAPI")
	for _, story := range []struct {
		name, violation string // violation: the expected one; empty: none
		sees            func(*Witness)
	}{
		{"an eviction that the budget allows", "", func(w *Witness) {
			w.seePod(deleted(pod("a", ready, evicted)), true)
			w.seePod(pod("a"), false)
		}},
		{"two evictions at a time", "web has 1 Ready pods, its budget promises 2", func(w *Witness) {
			w.seePod(deleted(pod("a", ready, evicted)), true)
			w.seePod(deleted(pod("b", ready, evicted)), true)
		}},
		{"a pod that is not Ready any more", "web has 1 Ready pods, its budget promises 2", func(w *Witness) {
			w.seePod(deleted(pod("a", ready, evicted)), true)
			w.seePod(pod("b"), true)
		}},
		{"a deletion", "pod a was deleted, and not by an eviction", func(w *Witness) {
			w.seePod(deleted(pod("a", ready)), true)
		}},
		{"a deletion because of a taint", "pod a was deleted, and not by an eviction", func(w *Witness) {
			w.seePod(deleted(pod("a", ready, yes(corev1.DisruptionTarget, "DeletionByTaintManager"))), true)
		}},
		{"a deletion of what is not promised", "", func(w *Witness) {
			w.Release("web")
			w.seePod(deleted(pod("a", ready)), true)
		}},
		{"one node after the other", "", func(w *Witness) {
			for _, name := range []string{"m1", "m2"} {
				w.seeNode(node(name, true), true)
				w.seeNode(node(name, false), true)
			}
			if w.Uncordoned("m1") != 1 || w.Uncordoned("m3") != 0 {
				t.Errorf("m1 was uncordoned %d times, m3 %d times", w.Uncordoned("m1"), w.Uncordoned("m3"))
			}
		}},
		{"two nodes at a time", "m1, m2 are unschedulable, 1 may be", func(w *Witness) {
			w.seeNode(node("m1", true), true)
			w.seeNode(node("m2", true), true)
		}},
	} {
		t.Run(story.name, func(t *testing.T) {
			line, err := NewTimeline(t, needs)
			must(t, err)
			w := newWitness(line)
			for _, name := range []string{"a", "b", "c"} {
				w.seePod(pod(name, ready), true)
			}
			w.Promise("web", 2)
			w.AtOnce(1)
			story.sees(w)
			if got := strings.Join(w.Violations(), "; "); got != story.violation {
				t.Errorf("violations: %q, expected %q", got, story.violation)
			}
		})
	}
}
