package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"haulout.dev/haulout/tests/e2e"
)

// load creates the objects and waits until the cluster is at rest. It creates Nodes and namespaces first and waits for
// them: pods would go to any node that exists already, and without its ServiceAccount a namespace accepts no pods.
func load(ctx context.Context, cluster *e2e.Cluster, objects []runtime.Object) error {
	var later []runtime.Object
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.Node:
			err = cluster.Kubelets.AddNode(ctx, object.Name, object.Labels)
		case *corev1.Namespace:
			_, err = cluster.Client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
		default:
			later = append(later, object)
		}
		if err != nil {
			return err
		}
	}
	if err := e2e.Until(ctx, "the nodes and namespaces are ready", func() (bool, error) {
		return groundReady(ctx, cluster)
	}); err != nil {
		return err
	}
	for _, object := range later {
		if err := create(ctx, cluster, object); err != nil {
			return err
		}
	}
	return e2e.Until(ctx, "the pods are up", func() (bool, error) { return atRest(ctx, cluster) })
}

// groundReady returns true if pods can be created: each namespace has its ServiceAccount, and no node has a taint any
// more. A new node has one until a controller has seen that the node is Ready.
func groundReady(ctx context.Context, cluster *e2e.Cluster) (bool, error) {
	nodes, err := cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			return false, fmt.Errorf("node %s is tainted: %v", node.Name, node.Spec.Taints)
		}
	}
	namespaces, err := cluster.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, namespace := range namespaces.Items {
		if _, err := cluster.Client.CoreV1().ServiceAccounts(namespace.Name).Get(
			ctx, "default", metav1.GetOptions{}); err != nil {
			return false, err
		}
	}
	return true, nil
}

func create(ctx context.Context, cluster *e2e.Cluster, object runtime.Object) error {
	err := translate(object)
	if err == nil {
		err = send(ctx, cluster, object)
	}
	if named, ok := object.(metav1.Object); ok && err != nil {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		return fmt.Errorf("%s %s/%s: %w", kind, named.GetNamespace(), named.GetName(), err)
	}
	return err
}

func translate(object runtime.Object) error {
	var template *corev1.PodTemplateSpec
	switch object := object.(type) {
	case *appsv1.Deployment:
		template = &object.Spec.Template
	case *appsv1.StatefulSet:
		template = &object.Spec.Template
	case *appsv1.DaemonSet:
		template = &object.Spec.Template
	default:
		return nil
	}
	translated, err := e2e.ForRealScheduler(*template)
	*template = translated
	return err
}

func send(ctx context.Context, cluster *e2e.Cluster, object runtime.Object) (err error) {
	apps, policy, options := cluster.Client.AppsV1(), cluster.Client.PolicyV1(), metav1.CreateOptions{}
	switch object := object.(type) {
	case *appsv1.Deployment:
		_, err = apps.Deployments(object.Namespace).Create(ctx, object, options)
	case *appsv1.StatefulSet:
		_, err = apps.StatefulSets(object.Namespace).Create(ctx, object, options)
	case *appsv1.DaemonSet:
		_, err = apps.DaemonSets(object.Namespace).Create(ctx, object, options)
	case *policyv1.PodDisruptionBudget:
		_, err = policy.PodDisruptionBudgets(object.Namespace).Create(ctx, object, options)
	default:
		err = errors.New("a world of a real control plane has Nodes, Namespaces, Deployments, StatefulSets, " +
			"DaemonSets and PodDisruptionBudgets only")
	}
	return err
}
