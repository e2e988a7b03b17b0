package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var getOptions = metav1.GetOptions{}

const tempPrefix = "haulout-e2e-"

const rotatingName = "rotating.e2e.invalid"

// removeStaleDirs removes the directories of test runs that were killed. Their names contain the process id of the run.
func removeStaleDirs() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, dir := range dirs {
		var pid int
		name := strings.TrimPrefix(filepath.Base(dir), tempPrefix)
		if _, err := fmt.Sscanf(name, "%d-", &pid); err != nil {
			continue
		}
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir)
		}
	}
}

// The audit log has every request of the tested programs, with the bodies of evictions and deletions, and the times at
// which budgets change. It leaves out the requests that the servers of the control plane send to each other.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [update, patch]
  resources: [{group: policy, resources: [poddisruptionbudgets/status]}]
- level: Metadata
  verbs: [create, delete]
  resources: [{group: storage.k8s.io, resources: [volumeattachments]}]
- level: None
  users: [e2e-admin, "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Request
  verbs: [create]
  resources: [{group: "", resources: [pods/eviction]}]
- level: Request
  verbs: [delete]
  resources: [{group: "", resources: [pods]}]
- level: Metadata
`

func (c *ControlPlane) path(name string) string { return filepath.Join(c.Dir, name) }

func (c *ControlPlane) writeFiles() error {
	ca, err := NewAuthority("haulout-e2e-ca")
	if err != nil {
		return err
	}
	c.CA = ca
	serving, err := ca.ServingAt(c.reach.Addresses, "localhost", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	// For rotatingName, the server has a certificate of its own. A test may replace that while all other tests
	// continue.
	rotating, err := ca.Serving(rotatingName)
	if err != nil {
		return err
	}
	signing, err := newSigningKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt": ca.PEM, "serving.crt": serving.Cert, "serving.key": serving.Key,
		"rotating.crt": rotating.Cert, "rotating.key": rotating.Key, "tokens.key": signing,
		"audit-policy.yaml": []byte(auditPolicy),
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) kubeconfigFor(user string, groups ...string) (string, error) {
	identity, err := c.CA.Client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.Access(identity).Write(c.Dir)
}

func (c *ControlPlane) etcdFlags(clientPort, peerPort int) []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", clientPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--name=e2e", "--data-dir=" + c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=e2e=" + peer,
		"--log-level=warn",
	}
}

func (c *ControlPlane) apiServerFlags() []string {
	address, advertised := "127.0.0.1", "127.0.0.1"
	if len(c.reach.Addresses) > 0 {
		address, advertised = "0.0.0.0", c.reach.Addresses[0].String()
	}
	return append([]string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.etcdPort),
		"--bind-address=" + address, "--advertise-address=" + advertised, fmt.Sprintf("--secure-port=%d", c.port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + c.path("serving.crt"), "--tls-private-key-file=" + c.path("serving.key"),
		"--tls-sni-cert-key=" + c.path("rotating.crt") + "," + c.path("rotating.key") + ":" + rotatingName,
		"--client-ca-file=" + c.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("tokens.key"),
		"--service-account-signing-key-file=" + c.path("tokens.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--audit-policy-file=" + c.path("audit-policy.yaml"), "--audit-log-path=" + c.Audit.path,
	}, c.Programs.APIServerFlags...)
}

// The rate limit of the controllers is far above what any test needs, so that measured times are those of the drain.
// Simulated nodes send no heartbeats, so they must stay Ready without them.
func (c *ControlPlane) managerFlags(kubeconfig string) []string {
	grace := c.reach.NodeGrace
	if grace == 0 {
		grace = 24 * time.Hour
	}
	return []string{
		"--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false", "--controllers=*",
		"--use-service-account-credentials=true",
		"--kube-api-qps=1000", "--kube-api-burst=1000", "--node-monitor-grace-period=" + grace.String(),
		"--pvclaimbinder-sync-period=1s",
		"--service-account-private-key-file=" + c.path("tokens.key"), "--root-ca-file=" + c.path("ca.crt"),
	}
}

func schedulerFlags(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false",
		"--kube-api-qps=1000", "--kube-api-burst=1000",
	}
}
