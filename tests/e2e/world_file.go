package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	worldPrefix = "sim.haulout.dev/"

	// PrefersNode is an annotation with the name of the node to which the scheduler binds the pod if possible.
	PrefersNode = worldPrefix + "prefers-node"
)

var strictDecoder = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// DecodeWorld reads what the simulated cluster reads: Kubernetes objects in YAML or JSON, alone, in a List, or in
// several documents. Unknown kinds and fields are errors.
func DecodeWorld(text []byte) (objects []runtime.Object, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(asJSON) == "null" {
			continue
		}
		found, err := decodeObject(asJSON)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
}

func decodeObject(asJSON []byte) ([]runtime.Object, error) {
	object, _, err := strictDecoder.Decode(asJSON, nil, nil)
	if err != nil {
		return nil, err
	}
	list, ok := object.(*corev1.List)
	if !ok {
		return []runtime.Object{object}, nil
	}
	var objects []runtime.Object
	for i, item := range list.Items {
		found, err := decodeObject(item.Raw)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// ForRealScheduler returns a pod template for a real scheduler that has the effect of this template in the simulated
// cluster. It fails for annotations that only the simulated cluster understands, and for invalid durations.
func ForRealScheduler(template corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	result := *template.DeepCopy()
	for key, value := range template.Annotations {
		switch {
		case key == PrefersNode:
			preferNode(&result.Spec, value)
		case key == StartsAfter || key == TerminatesAfter:
			if _, err := time.ParseDuration(value); err != nil {
				return result, fmt.Errorf("annotation %s: %w", key, err)
			}
		case strings.HasPrefix(key, worldPrefix):
			return result, fmt.Errorf("annotation %s: only the simulated cluster can do that", key)
		}
	}
	return result, nil
}

// By default, the scheduler spreads the pods of a workload and weighs that as much as the affinity. Then only the first
// pod would go to the preferred node. A topology spread constraint that counts no pods replaces that default.
func preferNode(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
		affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: 100,
			Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}}},
		})
	if len(spec.TopologySpreadConstraints) == 0 {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{worldPrefix + "spread": "none"}},
		}}
	}
}
