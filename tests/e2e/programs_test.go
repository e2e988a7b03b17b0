package e2e

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// The control plane is of the Kubernetes that its go.mod names. So HAULOUT_E2E_KUBERNETES=next tests another Kubernetes, and
// programs of an earlier go.mod are not taken for those of the present one.
func TestControlPlaneIsOfItsModule(t *testing.T) {
	t.Parallel()
	module := contents(t, filepath.Join(cluster.Programs.Module, "go.mod"))
	found := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v1\.(\d+)\.\d+`).FindStringSubmatch(module)
	if found == nil {
		t.Fatalf("no version of k8s.io/kubernetes in:\n%s", module)
	}
	if got := strconv.Itoa(cluster.Minor); got != found[1] {
		t.Errorf("the API server is of Kubernetes 1.%s, and go.mod names 1.%s", got, found[1])
	}
}
