package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

var everything = fields.Everything()

// scheduleStart lets the containers of a pod start after the time that StartsAfter or the pace sets, and not before its
// volumes are attached. The caller holds the mutex.
func (k *Kubelets) scheduleStart(state *podState, pod *corev1.Pod) {
	wait := duration(pod, StartsAfter, k.paceOf(pod).ReadyAfter)
	if len(claimsOf(pod)) == 0 {
		state.starts = time.AfterFunc(wait, func() { k.report(pod) })
		return
	}
	state.starts = time.AfterFunc(0, func() {
		if !k.mount(pod, state) {
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if !state.stopped && state.record.Deleted.IsZero() {
			state.starts = time.AfterFunc(wait, func() { k.report(pod) })
		}
	})
}

// report reports that the pod is Running and Ready, or that it has finished at once.
func (k *Kubelets) report(pod *corev1.Pod) {
	now := metav1.Now()
	phase, ready := corev1.PodRunning, corev1.ConditionTrue
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	if becomes := pod.Annotations[Becomes]; becomes != "" {
		phase, ready = corev1.PodPhase(becomes), corev1.ConditionFalse
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}}
	}
	if short := pod.Annotations[UnreadyOn]; short != "" && strings.HasSuffix(pod.Spec.NodeName, "-"+short) {
		ready = corev1.ConditionFalse
	}
	status := statusOf(pod, phase, state, ready, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady)
	status.StartTime = &now
	k.patchStatus("start", pod, status)
}

func statusOf(pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState, ready corev1.ConditionStatus,
	conditions ...corev1.PodConditionType) corev1.PodStatus {
	status := corev1.PodStatus{Phase: phase}
	for _, kind := range conditions {
		condition := corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: metav1.Now()}
		status.Conditions = append(status.Conditions, condition)
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: state, Ready: ready == corev1.ConditionTrue,
		})
	}
	return status
}

func (k *Kubelets) patchStatus(what string, pod *corev1.Pod, status corev1.PodStatus) {
	// The patch contains the UID. UIDs are immutable, so the patch cannot change another pod of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		panic(err)
	}
	k.persist(what, pod, func() error {
		_, err := k.client.CoreV1().Pods(pod.Namespace).Patch(
			k.ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// reportStopped reports that the pod has failed, unless it had finished before. Kubelets do that since version 1.27,
// before the pod is deleted.
func (k *Kubelets) reportStopped(pod *corev1.Pod) {
	if finished(pod) {
		return
	}
	exitCode := int32(137)
	if pod.Status.Phase == corev1.PodRunning {
		exitCode = 143
	}
	state := corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.Now()},
	}
	k.patchStatus("stop", pod, statusOf(pod, corev1.PodFailed, state, corev1.ConditionFalse,
		corev1.ContainersReady, corev1.PodReady))
}

// Finish reports that the containers of the pod have ended well by themselves.
func (k *Kubelets) Finish(pod *corev1.Pod) {
	now := metav1.Now()
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}}
	k.patchStatus("finish", pod, statusOf(pod, corev1.PodSucceeded, state, corev1.ConditionFalse,
		corev1.ContainersReady, corev1.PodReady))
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// end stops the containers of a pod, reports that, and deletes the pod.
func (k *Kubelets) end(pod *corev1.Pod, state *podState) {
	k.mu.Lock()
	done := state.stopped
	state.stopped = true
	if !done {
		state.record.Stopped = time.Now()
	}
	k.mu.Unlock()
	if done {
		return
	}
	k.reportStopped(pod)
	k.persist("end", pod, func() error {
		options := *metav1.NewDeleteOptions(0)
		options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		return k.client.CoreV1().Pods(pod.Namespace).Delete(k.ctx, pod.Name, options)
	})
}

// persist repeats a failed request until it succeeds, the kubelets stop, or the pod is deleted or replaced by another
// one of the same name.
func (k *Kubelets) persist(what string, pod *corev1.Pod, try func() error) {
	persist(k.ctx, fmt.Sprintf("kubelet: cannot %s pod %s/%s", what, pod.Namespace, pod.Name), try)
}

// persist repeats a failed request until it succeeds, the context ends, or its object is deleted. If another object has
// the same name by then, the server answers Conflict or Invalid, because the request contains the UID.
func persist(ctx context.Context, complaint string, try func() error) {
	for {
		err := try()
		if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) ||
			apierrors.IsInvalid(err) {
			return
		}
		fmt.Fprintf(os.Stderr, "e2e %s: %v\n", complaint, err)
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
