package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ControlPlane is etcd, kube-apiserver, kube-controller-manager and kube-scheduler on free loopback ports. All of their
// files are in one temporary directory. It has no nodes: Kubelets creates them.
type ControlPlane struct {
	Programs Programs
	Minor    int // the minor version of Kubernetes: 36
	Dir      string
	URL      string
	CA       *Authority
	Audit    *AuditLog

	reach     Reach
	mu        sync.Mutex // because Supervise may replace servers
	processes []*process
	retired   []*process // processes that were told to end and may still run
	etcdPort  int
	port      int // of the API server
}

// Reach is what a control plane needs if its nodes are real machines. The zero value is for simulated nodes on
// loopback.
type Reach struct {
	// Addresses at which machines reach the API server, besides loopback. This computer must have these addresses.
	Addresses []net.IP
	// A node without a heartbeat for this time is not Ready any more. Zero: nodes send no heartbeats and stay Ready.
	NodeGrace time.Duration
}

// RunGroup is a group of the identities with which the tested programs run. The audit log shows it with their requests.
const RunGroup = "e2e:runs"

// StartControlPlane returns when the API server is ready and the controllers work, after about 4 s. Stop must be
// called. It chooses free ports, which the servers open a moment later. If another process has taken one by then, it
// starts again with other ports.
func StartControlPlane(ctx context.Context, programs Programs) (*ControlPlane, error) {
	return StartReachableControlPlane(ctx, programs, Reach{})
}

// StartReachableControlPlane is StartControlPlane for nodes that are real machines.
func StartReachableControlPlane(ctx context.Context, programs Programs, reach Reach) (*ControlPlane, error) {
	removeStaleDirs()
	var problems []error
	for range 3 {
		c, err := startOnce(ctx, programs, reach)
		if err == nil {
			return c, nil
		}
		problems = append(problems, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(problems...)
}

func startOnce(ctx context.Context, programs Programs, reach Reach) (c *ControlPlane, err error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", tempPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	c = &ControlPlane{Programs: programs, Dir: dir, reach: reach}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return c, err
	}
	c.etcdPort, c.port = ports[0], ports[2]
	c.URL = fmt.Sprintf("https://127.0.0.1:%d", c.port)
	c.Audit = NewAuditLog(filepath.Join(dir, "audit.log"))
	if err := c.writeFiles(); err != nil {
		return c, err
	}
	if err := c.start("etcd", programs.Etcd, c.etcdFlags(ports[0], ports[1])...); err != nil {
		return c, err
	}
	if err := c.start("kube-apiserver", programs.APIServer, c.apiServerFlags()...); err != nil {
		return c, err
	}
	if err := c.waitFor(ctx, "the API server is ready", c.apiServerReady); err != nil {
		return c, err
	}
	if err := c.askVersion(ctx); err != nil {
		return c, err
	}
	managerConfig, err := c.kubeconfigFor("system:kube-controller-manager")
	if err != nil {
		return c, err
	}
	schedulerConfig, err := c.kubeconfigFor("system:kube-scheduler")
	if err != nil {
		return c, err
	}
	if err := c.start("kube-controller-manager", programs.ControllerManager, c.managerFlags(managerConfig)...); err != nil {
		return c, err
	}
	if err := c.start("kube-scheduler", programs.Scheduler, schedulerFlags(schedulerConfig)...); err != nil {
		return c, err
	}
	return c, c.waitFor(ctx, "the controllers work", c.controllersReady)
}

// Stop ends every process and removes every file, unless HAULOUT_E2E_KEEP is set. It may be called twice.
func (c *ControlPlane) Stop() {
	servers := slices.Concat(c.retired, c.running())
	for _, p := range slices.Backward(servers) {
		p.kill()
	}
	if os.Getenv("HAULOUT_E2E_KEEP") != "" {
		fmt.Fprintf(os.Stderr, "e2e: the control plane's logs are in %s\n", c.Dir)
		return
	}
	_ = os.RemoveAll(c.Dir)
}

// AccessFrom returns the Access of an identity on a machine that reaches the API server at this address.
func (c *ControlPlane) AccessFrom(address net.IP, identity Identity) Access {
	access := c.Access(identity)
	access.Server = fmt.Sprintf("https://%s", net.JoinHostPort(address.String(), strconv.Itoa(c.port)))
	return access
}

// Access returns the server, the authority and this identity, as a kubeconfig has them.
func (c *ControlPlane) Access(identity Identity) Access {
	return Access{Server: c.URL, CA: c.CA.PEM, Identity: identity}
}

// AdminConfig returns the configuration of the tests' own client, whose rate limit is so high that it never delays a
// test.
func (c *ControlPlane) AdminConfig() (*rest.Config, error) {
	identity, err := c.CA.Client("e2e-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            c.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA.PEM, CertData: identity.Cert, KeyData: identity.Key},
		QPS:             -1,
		UserAgent:       "haulout-e2e",
	}, nil
}

func (c *ControlPlane) start(name, path string, args ...string) error {
	p, err := startProcess(c.Dir, name, path, args...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return nil
}

// running returns the servers that should run, in the order in which they were started.
func (c *ControlPlane) running() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// startLimit is how long a server may take until it works. While compilers ran with a higher priority, an API server
// needed more than a minute; without other work it needs three seconds.
const startLimit = 4 * time.Minute

// waitFor repeats `ask` until it returns no error. It fails when startLimit has passed or when one of the processes has
// ended.
func (c *ControlPlane) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	return c.waitForDespite(ctx, what, nil, ask)
}

// waitForDespite is waitFor, except that the processes in mayEnd may end.
func (c *ControlPlane) waitForDespite(
	ctx context.Context, what string, mayEnd map[string]bool, ask func(context.Context) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		for _, p := range c.running() {
			if p.exited() && !mayEnd[p.name] {
				return fmt.Errorf("%s ended before %s:\n%s", p.name, what, p.logTail())
			}
		}
		select {
		case <-ctx.Done():
			running := c.running()
			last := running[len(running)-1]
			return fmt.Errorf("waited in vain until %s: %w\n%s", what, err, last.logTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *ControlPlane) apiServerReady(ctx context.Context) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// Version returns the version of Kubernetes. The patch is always 0, because the API server that the tests build does not
// know its own.
func (c *ControlPlane) Version() string { return fmt.Sprintf("v1.%d.0", c.Minor) }

// askVersion asks the API server which Kubernetes it is. An API server that was built by `go build` names only its minor
// version, as the version that it emulates.
func (c *ControlPlane) askVersion(ctx context.Context) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	answer, err := client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var info version.Info
	if err := json.Unmarshal(answer, &info); err != nil {
		return err
	}
	minor := info.EmulationMinor
	if minor == "" { // an API server before Kubernetes 1.33
		minor = info.Minor
	}
	if c.Minor, err = strconv.Atoi(minor); err != nil {
		return fmt.Errorf("the API server does not tell the version of its Kubernetes: %s", answer)
	}
	return nil
}

// controllersReady returns no error if the default ServiceAccount exists, because that shows that the controllers of the
// controller manager run: one of them creates it.
func (c *ControlPlane) controllersReady(ctx context.Context) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts("default").Get(ctx, "default", getOptions)
	return err
}

func (c *ControlPlane) adminClient() (*kubernetes.Clientset, error) {
	config, err := c.AdminConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
