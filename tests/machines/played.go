package machines

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"haulout.dev/haulout/tests/e2e"
)

// PlayedKubelets simulates the kubelets of a fleet whose machines have none: it registers the nodes, renews their Leases
// so that they stay Ready, and lets pods become Ready and end.
type PlayedKubelets struct {
	fleet *Fleet
}

// heartbeat is how often a kubelet renews its Lease.
const heartbeat = 10 * time.Second

// PlayKubelets registers Ready nodes with these names, and simulates their kubelets until the test ends.
func (f *Fleet) PlayKubelets(t *testing.T, names ...string) (*PlayedKubelets, error) {
	ctx := f.watching
	kubelets, err := e2e.StartKubelets(ctx, f.Client)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		seconds := int32(40)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds},
		}
		leases := f.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if lease, err = leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		if err := kubelets.AddNode(ctx, name, nil); err != nil {
			return nil, err
		}
		go func() {
			for ctx.Err() == nil {
				patch := []byte(`{"spec":{"renewTime":"` + time.Now().UTC().Format(metav1.RFC3339Micro) + `"}}`)
				_, err := leases.Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{})
				if err != nil && ctx.Err() == nil {
					f.Line.Note(name, "the Lease of the kubelet is not renewed: %v", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(heartbeat):
				}
			}
		}()
	}
	return &PlayedKubelets{fleet: f}, nil
}

// reportBoot writes the boot id and the kernel that the machine shows to the status of its Node, as a kubelet does when
// it starts.
func (k *PlayedKubelets) reportBoot(ctx context.Context, v *Virtual) error {
	boot, err := v.BootID(ctx)
	if err != nil {
		return err
	}
	kernel, err := v.Kernel(ctx)
	if err != nil {
		return err
	}
	return k.report(ctx, v.Name, corev1.ConditionTrue, map[string]string{"bootID": boot, "kernelVersion": kernel})
}

func (k *PlayedKubelets) report(ctx context.Context, name string, ready corev1.ConditionStatus, info map[string]string) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"nodeInfo": info,
		"conditions": []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
	}})
	if err != nil {
		return err
	}
	_, err = k.fleet.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"status")
	return err
}
