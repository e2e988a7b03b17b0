package e2e

import (
	corev1 "k8s.io/api/core/v1"
)

// closedTaint is a taint that keeps away and evicts all pods that do not tolerate it.
const closedTaint = "e2e.haulout.dev/closed"

// Tolerant makes the pods tolerate closedTaint.
func Tolerant(pod *corev1.PodTemplateSpec) {
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Key: closedTaint, Operator: corev1.TolerationOpExists,
	})
}

// InRole makes the pods go only to nodes whose label `role` is one of these (In), or none of these (NotIn).
func InRole(operator corev1.NodeSelectorOperator, roles ...string) PodOption {
	nowhere := requirement("role", corev1.NodeSelectorOpDoesNotExist)
	return func(pod *corev1.PodTemplateSpec) {
		// The terms are alternatives. No node fulfils the first one, so the second one decides.
		affinityOf(pod).NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{nowhere}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					requirement("role", operator, roles...), requirement(poolLabel, corev1.NodeSelectorOpExists),
				}},
			}},
		}
	}
}

func requirement(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// Beside makes the pods go only to nodes that have a pod with the label app=name.
func Beside(name string) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		affinityOf(pod).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: neighbours(name)}
	}
}

// Apart makes the pods go only to nodes that have no pod with the label app=name.
func Apart(name string) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: neighbours(name),
		}
	}
}

func neighbours(name string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: selectorOf(name), TopologyKey: corev1.LabelHostname}}
}

func affinityOf(pod *corev1.PodTemplateSpec) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

// NotReady makes a node report that it is not Ready.
func NotReady(node *corev1.Node) {
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	node.Status.Conditions[0].Reason = "KubeletNotReady"
}

// Tainted gives a node the taint that only Tolerant pods tolerate.
func Tainted(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: closedTaint, Effect: corev1.TaintEffectNoExecute}}
}
