package e2e

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var diskSize = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

// PodOption changes the pods of a workload.
type PodOption func(*corev1.PodTemplateSpec)

// Annotate sets what the pods' kubelet does, see StartsAfter and its neighbours.
func Annotate(key, value string) PodOption {
	return func(pod *corev1.PodTemplateSpec) { pod.Annotations[key] = value }
}

// Grace sets terminationGracePeriodSeconds, which is 30 otherwise.
func Grace(seconds int64) PodOption {
	return func(pod *corev1.PodTemplateSpec) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// Unannounced takes away what the pods say about their own end, which the simulated cluster would read, too.
func Unannounced(pod *corev1.PodTemplateSpec) { delete(pod.Annotations, TerminatesAfter) }

// EmptyDir gives the pods local storage.
func EmptyDir(pod *corev1.PodTemplateSpec) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
}

// Claim gives the pods the volume of a PersistentVolumeClaim.
func Claim(name string) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source},
		})
	}
}

// Cpu is what each pod requests; a node has 1000.
func Cpu(amount string) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(amount),
		}
	}
}

// Finalizer keeps the pods after their end.
func Finalizer(pod *corev1.PodTemplateSpec) { pod.Finalizers = []string{"e2e.haulout.dev/held"} }

func template(app string, options []PodOption) corev1.PodTemplateSpec {
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(app), Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "e2e.invalid/none"}}},
	}
	for _, option := range options {
		option(&pod)
	}
	return pod
}

func labelsOf(app string) map[string]string { return map[string]string{"app": app} }

func selectorOf(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelsOf(app)}
}

// Deployment of a number of pods labelled app=name, as all workloads here.
func Deployment(name string, replicas int32, options ...PodOption) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selectorOf(name), Template: template(name, options),
		},
	}
}

// StatefulSet that starts all of its pods at once. They take a second to end, unless the options say otherwise: a
// budget remembers an evicted pod by its name until the disruption controller sees it terminating or gone. A namesake
// that is there before it looks counts as disrupted for two minutes, and the budget stays closed that long.
func StatefulSet(name string, replicas int32, options ...PodOption) *appsv1.StatefulSet {
	options = append([]PodOption{Annotate(TerminatesAfter, "1s")}, options...)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selectorOf(name), Template: template(name, options),
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

// Ordered makes a StatefulSet start each pod when the one before it is Ready.
func Ordered(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	return set
}

// ReadyFor makes a workload count a pod as available only when it has been Ready for so many seconds.
func ReadyFor[Workload *appsv1.StatefulSet | *appsv1.Deployment](seconds int32, workload Workload) Workload {
	switch workload := any(workload).(type) {
	case *appsv1.StatefulSet:
		workload.Spec.MinReadySeconds = seconds
	case *appsv1.Deployment:
		workload.Spec.MinReadySeconds = seconds
	}
	return workload
}

// Autoscaler of a Deployment; nothing here has metrics, so it leaves the replicas as they are.
func Autoscaler(name string, least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    &least, MaxReplicas: most,
		},
	}
}

// Job of pods that run at the same time and have no end. It fails when more of them have failed than the limit.
func Job(name string, pods, backoffLimit int32, options ...PodOption) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods, BackoffLimit: &backoffLimit, Template: template(name, options),
		},
	}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return job
}

// WithClaims gives each pod of a StatefulSet a claim of its own, named NAME-POD.
func WithClaims(name string, set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec(corev1.ReadWriteOnce, ""),
	}}
	return set
}

// No storage class: nothing is provisioned, the volume is there before.
func claimSpec(mode corev1.PersistentVolumeAccessMode, volume string) corev1.PersistentVolumeClaimSpec {
	none := ""
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &none, VolumeName: volume,
		AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources:   corev1.VolumeResourceRequirements{Requests: diskSize},
	}
}

// DaemonSet on every node of the world.
func DaemonSet(name string, options ...PodOption) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf(name), Template: template(name, options)},
	}
}

// Pod without a controller.
func Pod(name string, options ...PodOption) *corev1.Pod {
	from := template(name, options)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: from.Labels, Annotations: from.Annotations, Finalizers: from.Finalizers,
		},
		Spec: from.Spec,
	}
}

// OwnedBy gives a pod a controller that the cluster knows nothing of.
func OwnedBy(pod *corev1.Pod, apiVersion, kind string) *corev1.Pod {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: pod.Name, UID: types.UID(pod.Name), Controller: &controller,
	}}
	return pod
}

// MirrorPod is how the API shows a static pod of a node.
func MirrorPod(name, node string) *corev1.Pod {
	pod := Pod(name)
	pod.Annotations[corev1.MirrorPodAnnotationKey] = "e2e"
	pod.Spec.NodeName = node
	return pod
}

// Budget for the pods labelled app=name: at most so many are disrupted at a time, a number or a percentage.
func Budget(name, maxUnavailable string) *policyv1.PodDisruptionBudget {
	most := intstr.Parse(maxUnavailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selectorOf(name), MaxUnavailable: &most},
	}
}

// AtLeast is a budget for the same pods: so many stay available, a number or a percentage.
func AtLeast(name, minAvailable string) *policyv1.PodDisruptionBudget {
	least := intstr.Parse(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selectorOf(name), MinAvailable: &least},
	}
}

// FreeingUnhealthy makes a budget let pods go that are not Ready, however few are.
func FreeingUnhealthy(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	always := policyv1.AlwaysAllow
	budget.Spec.UnhealthyPodEvictionPolicy = &always
	return budget
}

func merged(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}
