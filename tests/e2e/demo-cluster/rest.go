package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"haulout.dev/haulout/tests/e2e"
)

// atRest returns true if every workload has its pods, every pod is Ready or delays that by its annotation, and every
// budget counts its pods. The error says what is missing.
func atRest(ctx context.Context, cluster *e2e.Cluster) (bool, error) {
	if err := workloadsComplete(ctx, cluster); err != nil {
		return false, err
	}
	pods, err := cluster.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, pod := range pods.Items {
		_, slow := pod.Annotations[e2e.StartsAfter]
		if pod.Spec.NodeName == "" || !slow && !ready(&pod) {
			return false, fmt.Errorf("pod %s/%s is not Ready", pod.Namespace, pod.Name)
		}
	}
	if err := budgetsCurrent(ctx, cluster, pods.Items); err != nil {
		return false, err
	}
	return true, nil
}

func workloadsComplete(ctx context.Context, cluster *e2e.Cluster) error {
	apps, all := cluster.Client.AppsV1(), metav1.ListOptions{}
	deployments, err := apps.Deployments(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return err
	}
	for _, d := range deployments.Items {
		if d.Status.ObservedGeneration != d.Generation || d.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("Deployment %s/%s has %d pods", d.Namespace, d.Name, d.Status.Replicas)
		}
	}
	statefulSets, err := apps.StatefulSets(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return err
	}
	for _, s := range statefulSets.Items {
		if s.Status.ObservedGeneration != s.Generation || s.Status.Replicas != *s.Spec.Replicas {
			return fmt.Errorf("StatefulSet %s/%s has %d pods", s.Namespace, s.Name, s.Status.Replicas)
		}
	}
	daemonSets, err := apps.DaemonSets(metav1.NamespaceAll).List(ctx, all)
	if err != nil {
		return err
	}
	for _, d := range daemonSets.Items {
		if d.Status.ObservedGeneration != d.Generation ||
			d.Status.CurrentNumberScheduled != d.Status.DesiredNumberScheduled {
			return fmt.Errorf("DaemonSet %s/%s has %d pods", d.Namespace, d.Name, d.Status.CurrentNumberScheduled)
		}
	}
	return nil
}

func budgetsCurrent(ctx context.Context, cluster *e2e.Cluster, pods []corev1.Pod) error {
	budgets, err := cluster.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, budget := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			return err
		}
		var healthy int32
		for _, pod := range pods {
			if pod.Namespace == budget.Namespace && selector.Matches(labels.Set(pod.Labels)) && ready(&pod) {
				healthy++
			}
		}
		if budget.Status.ObservedGeneration != budget.Generation || budget.Status.CurrentHealthy != healthy {
			return fmt.Errorf("PodDisruptionBudget %s/%s counts %d healthy pods", budget.Namespace, budget.Name,
				budget.Status.CurrentHealthy)
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
