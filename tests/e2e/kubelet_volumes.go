package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mounts holds the volumes that the kubelets report as in use (Node.status.volumesInUse). Controllers do not detach
// these.
type mounts struct {
	mu     sync.Mutex
	byNode map[string]map[types.UID][]corev1.UniqueVolumeName // by node: the volumes of each pod
}

func claimsOf(pod *corev1.Pod) (claims []string) {
	for _, volume := range pod.Spec.Volumes {
		if source := volume.PersistentVolumeClaim; source != nil {
			claims = append(claims, source.ClaimName)
		}
	}
	return claims
}

// mount reports the volumes of a pod as in use and waits until they are attached. It returns false if the pod is
// deleted before that.
func (k *Kubelets) mount(pod *corev1.Pod, state *podState) bool {
	var volumes []corev1.UniqueVolumeName
	k.persist("find the volumes of", pod, func() (err error) {
		volumes, err = k.volumesOf(pod)
		return err
	})
	inUse := k.setMounts(pod, func(pods map[types.UID][]corev1.UniqueVolumeName) bool {
		if k.ends(state) {
			return false
		}
		pods[pod.UID] = volumes
		return true
	})
	if !inUse {
		return false
	}
	for !k.ends(state) {
		node, err := k.client.CoreV1().Nodes().Get(k.ctx, pod.Spec.NodeName, getOptions)
		if err == nil && attached(node, volumes) {
			return true
		}
		select {
		case <-k.ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

func (k *Kubelets) unmount(pod *corev1.Pod) {
	k.setMounts(pod, func(pods map[types.UID][]corev1.UniqueVolumeName) bool {
		_, mounted := pods[pod.UID]
		delete(pods, pod.UID)
		return mounted
	})
}

// setMounts changes which volumes are in use on the pod's node and reports them, unless `change` returns false.
func (k *Kubelets) setMounts(pod *corev1.Pod, change func(map[types.UID][]corev1.UniqueVolumeName) bool) bool {
	k.mounts.mu.Lock()
	defer k.mounts.mu.Unlock()
	node := pod.Spec.NodeName
	if k.mounts.byNode == nil {
		k.mounts.byNode = map[string]map[types.UID][]corev1.UniqueVolumeName{}
	}
	if k.mounts.byNode[node] == nil {
		k.mounts.byNode[node] = map[types.UID][]corev1.UniqueVolumeName{}
	}
	if !change(k.mounts.byNode[node]) {
		return false
	}
	inUse := []corev1.UniqueVolumeName{}
	for _, volumes := range k.mounts.byNode[node] {
		inUse = append(inUse, volumes...)
	}
	slices.Sort(inUse)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"volumesInUse": slices.Compact(inUse)}})
	if err != nil {
		panic(err)
	}
	k.persist("report the volumes of", pod, func() error {
		_, err := k.client.CoreV1().Nodes().Patch(
			k.ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	return true
}

// volumesOf returns the names that kube-controller-manager gives to the volumes of a pod. Their claims must be bound.
func (k *Kubelets) volumesOf(pod *corev1.Pod) (names []corev1.UniqueVolumeName, err error) {
	for _, name := range claimsOf(pod) {
		claim, err := k.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(k.ctx, name, getOptions)
		if err != nil {
			return nil, err
		}
		volume, err := k.client.CoreV1().PersistentVolumes().Get(k.ctx, claim.Spec.VolumeName, getOptions)
		if err != nil {
			return nil, err
		}
		disk := volume.Spec.CSI
		unique := fmt.Sprintf("kubernetes.io/csi/%s^%s", disk.Driver, disk.VolumeHandle)
		names = append(names, corev1.UniqueVolumeName(unique))
	}
	return names, nil
}

func attached(node *corev1.Node, volumes []corev1.UniqueVolumeName) bool {
	for _, volume := range volumes {
		is := func(other corev1.AttachedVolume) bool { return other.Name == volume }
		if !slices.ContainsFunc(node.Status.VolumesAttached, is) {
			return false
		}
	}
	return true
}

// ends returns true if the pod is terminating or deleted.
func (k *Kubelets) ends(state *podState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return state.stopped || !state.record.Deleted.IsZero()
}
