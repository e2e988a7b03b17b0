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

// PodOption changes the pod template of a workload.
type PodOption func(*corev1.PodTemplateSpec)

// Annotate sets how the simulated kubelet treats the pods, by StartsAfter or another of the annotations in kubelets.go.
func Annotate(key, value string) PodOption {
	return func(pod *corev1.PodTemplateSpec) { pod.Annotations[key] = value }
}

// Grace sets terminationGracePeriodSeconds. The default is 30.
func Grace(seconds int64) PodOption {
	return func(pod *corev1.PodTemplateSpec) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// Unannounced removes the annotation that sets how long the pods terminate. Without it, a rehearsal cannot read that
// time from the pods: the simulated cluster of a rehearsal understands the annotation, too.
func Unannounced(pod *corev1.PodTemplateSpec) { delete(pod.Annotations, TerminatesAfter) }

// EmptyDir gives the pods an emptyDir volume.
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

// Cpu sets how much CPU each pod requests. A node has 1000.
func Cpu(amount string) PodOption {
	return func(pod *corev1.PodTemplateSpec) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(amount),
		}
	}
}

// Finalizer gives the pods a finalizer, so that they still exist after their containers have ended.
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

// Deployment returns a Deployment whose pods have the label app=name, as all workloads here.
func Deployment(name string, replicas int32, options ...PodOption) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selectorOf(name), Template: template(name, options),
		},
	}
}

// StatefulSet returns a StatefulSet that starts all of its pods at once. The pods take a second to terminate, unless an
// option says otherwise. The reason: a budget remembers an evicted pod by its name until the disruption controller sees
// that pod terminating or deleted. If the next pod of the same name exists before that, it counts as disrupted for two
// minutes, and the budget stays exhausted that long.
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

// ReadyFor sets minReadySeconds: a pod counts as available only when it has been Ready for so many seconds.
func ReadyFor[Workload *appsv1.StatefulSet | *appsv1.Deployment](seconds int32, workload Workload) Workload {
	switch workload := any(workload).(type) {
	case *appsv1.StatefulSet:
		workload.Spec.MinReadySeconds = seconds
	case *appsv1.Deployment:
		workload.Spec.MinReadySeconds = seconds
	}
	return workload
}

// Autoscaler returns an autoscaler of a Deployment. There are no metrics, so it never changes the number of replicas.
func Autoscaler(name string, least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    &least, MaxReplicas: most,
		},
	}
}

// Job returns a Job whose pods run at the same time and do not end by themselves. It fails when more than backoffLimit
// of them have failed.
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

// WithClaims gives each pod of a StatefulSet a claim of its own, with the name NAME-POD.
func WithClaims(name string, set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec(corev1.ReadWriteOnce, ""),
	}}
	return set
}

// The claim has no storage class, so no volume is provisioned: the volume must exist before.
func claimSpec(mode corev1.PersistentVolumeAccessMode, volume string) corev1.PersistentVolumeClaimSpec {
	none := ""
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &none, VolumeName: volume,
		AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources:   corev1.VolumeResourceRequirements{Requests: diskSize},
	}
}

// DaemonSet returns a DaemonSet whose pods run on every node of the world.
func DaemonSet(name string, options ...PodOption) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf(name), Template: template(name, options)},
	}
}

// Pod returns a pod without a controller.
func Pod(name string, options ...PodOption) *corev1.Pod {
	from := template(name, options)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: from.Labels, Annotations: from.Annotations, Finalizers: from.Finalizers,
		},
		Spec: from.Spec,
	}
}

// OwnedBy gives a pod a controller that does not exist in the cluster.
func OwnedBy(pod *corev1.Pod, apiVersion, kind string) *corev1.Pod {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: pod.Name, UID: types.UID(pod.Name), Controller: &controller,
	}}
	return pod
}

// MirrorPod returns a pod by which the API shows a static pod of a node.
func MirrorPod(name, node string) *corev1.Pod {
	pod := Pod(name)
	pod.Annotations[corev1.MirrorPodAnnotationKey] = "e2e"
	pod.Spec.NodeName = node
	return pod
}

// Budget returns a budget for the pods with the label app=name. maxUnavailable is a number or a percentage.
func Budget(name, maxUnavailable string) *policyv1.PodDisruptionBudget {
	most := intstr.Parse(maxUnavailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selectorOf(name), MaxUnavailable: &most},
	}
}

// AtLeast returns a budget for the pods with the label app=name. minAvailable is a number or a percentage.
func AtLeast(name, minAvailable string) *policyv1.PodDisruptionBudget {
	least := intstr.Parse(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selectorOf(name), MinAvailable: &least},
	}
}

// FreeingUnhealthy makes a budget allow the eviction of pods that are not Ready, however few pods are Ready.
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
