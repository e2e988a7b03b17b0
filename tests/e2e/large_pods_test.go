package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// WithEnv gives each pod so many environment variables of 100 bytes.
func WithEnv(variables int) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		for i := range variables {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
				corev1.EnvVar{Name: fmt.Sprintf("SETTING_%03d", i), Value: strings.Repeat("x", 60)})
		}
	}
}

// A page of 300 pods of 16 kB is longer than the 4 MB that Haulout reads of an answer. Every command that lists pods reads
// such a page in parts.
func TestPagesOfLargePods(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	const pods = 300
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("large", pods, WithEnv(150), Annotate(TerminatesAfter, "100ms"))))
	must(t, w.Settle(t.Context(), pods))
	must(t, w.AddNode(t.Context(), "new", "new"))
	must(t, w.UntilOpen(t.Context(), "new"))

	// The exit code is 0 or 1: the audit sees the worlds of other tests, too, and some of them cannot be drained.
	var report auditReport
	audited, err := w.Run(t.Context(), haulout, "audit", "--no-rehearse", "-o", "json")
	must(t, err)
	if err := json.Unmarshal([]byte(audited.Stdout), &report); err != nil {
		t.Fatalf("exit %d, %v: %s", audited.Exit, err, audited.Stderr)
	}
	if len(report.Owners) == 0 {
		t.Error("the audit has no owners")
	}
	// So does the rehearsal: a pod of another test that finds no node makes its exit code 1.
	rehearsed, err := w.Run(t.Context(), haulout, "rehearse", w.Node("old"), "-o", "json")
	must(t, err)
	if !strings.Contains(rehearsed.Stdout, fmt.Sprintf("drained: %d pods deleted", pods)) {
		t.Errorf("exit %d, and not all pods were deleted: %s", rehearsed.Exit, rehearsed.Stderr)
	}
	if got := strings.Count(rehearsed.Stdout, `"large-`); got < pods {
		t.Errorf("the rehearsal names %d pods, and there are %d", got, pods)
	}
	drained := run(t, w, 0, haulout, "drain", w.Node("old"), "--settle=0", "--check-fit=require", "--max-unavailable-per-controller=100%")
	if strings.Contains(drained.Stderr, "could not be listed") {
		t.Errorf("the drain could not list the pods: %s", drained.Stderr)
	}
}
