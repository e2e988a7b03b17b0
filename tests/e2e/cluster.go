package e2e

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
)

// Cluster is a control plane with its nodes. All tests of a process share it; each test works in a World of its own.
type Cluster struct {
	*ControlPlane
	Kubelets *Kubelets
	Client   *kubernetes.Clientset

	worlds atomic.Int64
	stop   context.CancelFunc
}

// StartCluster starts the control plane and the kubelets. Stop must be called.
func StartCluster(ctx context.Context, programs Programs) (*Cluster, error) {
	controlPlane, err := StartControlPlane(ctx, programs)
	if err != nil {
		return nil, err
	}
	c := &Cluster{ControlPlane: controlPlane}
	var inner context.Context
	inner, c.stop = context.WithCancel(ctx)
	if c.Client, err = controlPlane.adminClient(); err == nil {
		c.Kubelets, err = StartKubelets(inner, c.Client)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop ends the kubelets and the control plane, and removes everything that they have written. It may be called twice.
func (c *Cluster) Stop() {
	c.stop()
	c.ControlPlane.Stop()
}

func (c *Cluster) nextName() string { return fmt.Sprintf("w%d", c.worlds.Add(1)) }
