package machines

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The lines are those that dpkg writes when it upgrades a package.
func TestInstallationIsCounted(t *testing.T) {
	const at = "2026-11-26 03:04:05 "
	now := time.Now()
	seen := &Installation{packages: map[string]bool{}, at: now}
	for _, step := range []struct {
		line          string
		pods          int // in the second before the line
		half, exposed time.Duration
	}{
		{at + "startup archives unpack", 1, 0, 0},
		{at + "upgrade a:all 1 2", 1, 0, 0},
		{at + "status half-configured a:all 1", 1, 0, 0},
		{at + "status unpacked a:all 1", 2, 1, 1},
		{at + "status half-installed a:all 1", 0, 2, 1},
		{at + "status unpacked a:all 2", 0, 3, 1},
		{at + "status half-configured b:all 2", 1, 4, 2},
		{at + "status installed a:all 2", 0, 5, 2},
		{at + "status triggers-pending c:all 2", 0, 6, 2},
		{at + "status installed b:all 2", 0, 7, 2},
		{at + "status installed c:all 2", 1, 8, 3},
		{at + "status not-installed d:all <none>", 1, 8, 3},
		{at + "startup packages configure", 1, 8, 3},
	} {
		now = now.Add(time.Second)
		seen.until(now, step.pods)
		seen.line(step.line)
		if seen.Half != step.half*time.Second || seen.Exposed != step.exposed*time.Second {
			t.Errorf("at %q: half-installed for %v, of that %v under pods", step.line, seen.Half, seen.Exposed)
		}
	}
	if seen.Most != 2 {
		t.Errorf("up to %d pods", seen.Most)
	}
}

// The witness records a violation if an installation begins while a pod is on the machine, and also if a pod comes to a
// machine with a half-installed package.
func TestHalfInstalledIsForbidden(t *testing.T) {
	const begins = "2026-11-26 03:04:05 status half-installed a:all 1"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID("p")}, Spec: corev1.PodSpec{NodeName: "m1"}}
	for _, story := range []struct {
		name       string
		violations int
		sees       func(*Witness)
	}{
		{"under a pod", 1, func(w *Witness) {
			w.seePod(pod, true)
			w.seeDpkg("m1", begins)
		}},
		{"a pod comes", 1, func(w *Witness) {
			w.seeDpkg("m1", begins)
			w.seePod(pod, true)
		}},
		{"elsewhere", 0, func(w *Witness) {
			w.seePod(pod, true)
			w.seeDpkg("m2", begins)
		}},
		{"after the pod", 0, func(w *Witness) {
			w.seePod(pod, true)
			w.seePod(pod, false)
			w.seeDpkg("m1", begins)
		}},
	} {
		t.Run(story.name, func(t *testing.T) {
			line, err := NewTimeline(t, needs)
			must(t, err)
			w := newWitness(line)
			w.installs("m1")
			w.installs("m2")
			w.ForbidHalf()
			story.sees(w)
			if found := w.Violations(); len(found) != story.violations {
				t.Errorf("violations: %q", found)
			}
		})
	}
}
