package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The six kinds of budget. kubectl drain ends with only one of them, and that one leaves a single replica without a Ready
// pod.
var surgeBudgets = []struct {
	name   string
	budget func() *policyv1.PodDisruptionBudget
	open   bool // an eviction is allowed without a replacement
}{
	{"minAvailable 1", func() *policyv1.PodDisruptionBudget { return AtLeast("web", "1") }, false},
	{"minAvailable 50%", func() *policyv1.PodDisruptionBudget { return AtLeast("web", "50%") }, false},
	{"minAvailable 100%", func() *policyv1.PodDisruptionBudget { return AtLeast("web", "100%") }, false},
	{"maxUnavailable 0", func() *policyv1.PodDisruptionBudget { return Budget("web", "0") }, false},
	{"maxUnavailable 0%", func() *policyv1.PodDisruptionBudget { return Budget("web", "0%") }, false},
	{"maxUnavailable 1", func() *policyv1.PodDisruptionBudget { return Budget("web", "1") }, true},
}

// surgeSetup is a world with pods of the Deployment `web` on the node `old`. Replacements go to the node `new`.
type surgeSetup struct {
	*World
	*SurgeWatch
	t        *testing.T
	replicas int
}

// slowly makes a replacement take so long that a test can act before it is Ready.
func slowly(after time.Duration) PodOption { return Annotate(StartsAfter, after.String()) }

// newSurge returns a world with so many pods of `web`. They start after 300 ms unless an option says otherwise.
func newSurge(t *testing.T, replicas int32, options []PodOption, objects ...any) *surgeSetup {
	t.Helper()
	return newSurgeOf(t, Deployment("web", replicas, append([]PodOption{slowly(300 * time.Millisecond)}, options...)...), 0,
		objects...)
}

// newSurgeOf is newSurge with a Deployment `web` of the caller's. `others` is the number of pods of the other objects.
func newSurgeOf(t *testing.T, web *appsv1.Deployment, others int, objects ...any) *surgeSetup {
	t.Helper()
	needHaulout(t)
	s := &surgeSetup{World: newWorld(t), t: t, replicas: int(*web.Spec.Replicas)}
	must(t, s.AddNode(t.Context(), "old", "old"))
	must(t, s.Apply(t.Context(), append([]any{web}, objects...)...))
	must(t, s.Settle(t.Context(), s.replicas+others))
	must(t, s.AddNode(t.Context(), "new", "new"))
	must(t, s.UntilOpen(t.Context(), "new"))
	var err error
	s.SurgeWatch, err = s.WatchSurge(t.Context(), "app=web")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Story())
		}
	})
	return s
}

func (s *surgeSetup) args(more ...string) []string {
	return append([]string{"drain", s.Node("old"), "--ignore-daemonsets", "--settle=0"}, more...)
}

func (s *surgeSetup) drain(exit int, more ...string) Result {
	s.t.Helper()
	result, err := s.Run(s.t.Context(), haulout, s.args(more...)...)
	must(s.t, err)
	if result.Exit != exit {
		s.t.Errorf("haulout drain %v: exit %d, want %d\n%s%s", more, result.Exit, exit, result.Stdout, result.Stderr)
	}
	return result
}

func (s *surgeSetup) start(more ...string) *Run {
	s.t.Helper()
	run, err := s.Start(s.t.Context(), haulout, s.args(more...)...)
	must(s.t, err)
	return run
}

func (s *surgeSetup) until(what string, holds func(SurgeState) bool) {
	s.t.Helper()
	must(s.t, s.Await(s.t.Context(), what, holds))
}

func released(now SurgeState) bool { return now.Surged > 0 }
func (s *surgeSetup) replaced() func(SurgeState) bool {
	return func(now SurgeState) bool { return now.Surged > 0 && now.Ready > s.replicas }
}

// settled waits until each pod of `web` is owned, has its label, and no mark, and there are as many as there should be.
func (s *surgeSetup) settled() {
	s.t.Helper()
	must(s.t, Until(s.t.Context(), "only owned pods are left", func() (bool, error) {
		pods, err := s.Client.CoreV1().Pods(s.Name).List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			_, marked := pod.Annotations[surgeMark]
			if marked || pod.Labels[hashLabel] == "" || metav1.GetControllerOf(&pod) == nil || !podReady(&pod) {
				return false, fmt.Errorf("%s: owners %v, labels %v, mark %q, Ready %v", pod.Name, pod.OwnerReferences,
					pod.Labels, pod.Annotations[surgeMark], podReady(&pod))
			}
		}
		return len(pods.Items) == s.replicas, fmt.Errorf("%d pods", len(pods.Items))
	}))
}

// expectKept checks that no pod of `web` is left surged, and that never fewer were Ready than before the drain.
func (s *surgeSetup) expectKept() (highest int) {
	s.t.Helper()
	s.settled()
	lowest, highest, err := s.Extremes(s.t.Context())
	must(s.t, err)
	if lowest != s.replicas {
		s.t.Errorf("%d of %d pods were Ready", lowest, s.replicas)
	}
	return highest
}

func (s *surgeSetup) podsOn(short string) (names []string) {
	s.t.Helper()
	pods, err := s.Client.CoreV1().Pods(s.Name).List(s.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.Node(short)})
	must(s.t, err)
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names
}

func (s *surgeSetup) expectMoved() {
	s.t.Helper()
	if left := s.podsOn("old"); len(left) > 0 {
		s.t.Errorf("%v are left on the node", left)
	}
}

// patched returns the apps whose pods the drain has patched.
func (s *surgeSetup) patched() []string {
	s.t.Helper()
	requests, err := s.Requests()
	must(s.t, err)
	apps := []string{}
	for _, request := range requests {
		if request.Is("pods") && request.Verb == "patch" {
			app, _, _ := strings.Cut(request.ObjectRef.Name, "-")
			apps = append(apps, app)
		}
	}
	slices.Sort(apps)
	return slices.Compact(apps)
}

func (s *surgeSetup) expectPatched(want ...string) {
	s.t.Helper()
	if got := s.patched(); !slices.Equal(got, want) {
		s.t.Errorf("the drain has patched pods of %v, want %v", got, want)
	}
}

// With surge, a drain moves the pods of a Deployment under every budget, and never fewer of them are Ready than before.
func TestSurge(t *testing.T) {
	t.Parallel()
	for _, b := range surgeBudgets {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := newSurge(t, 1, nil, b.budget())
			s.drain(0, "--surge=all", "--timeout=60s")
			s.expectMoved()
			if s.expectKept() != 1 {
				t.Error("no pod was surged")
			}
		})
	}
	t.Run("no budget", func(t *testing.T) {
		t.Parallel()
		s := newSurge(t, 1, nil)
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectMoved()
		s.expectKept()
	})
	t.Run("three replicas", func(t *testing.T) {
		t.Parallel()
		s := newSurge(t, 3, nil, Budget("web", "0"))
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectMoved()
		if highest := s.expectKept(); highest != 1 {
			t.Errorf("%d pods were surged at a time, maxSurge allows 1", highest)
		}
	})
	t.Run("three replicas at once", func(t *testing.T) {
		t.Parallel()
		web := Deployment("web", 3, slowly(time.Second))
		all := intstr.Parse("100%")
		web.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &all},
		}
		s := newSurgeOf(t, web, 0, AtLeast("web", "100%"))
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectMoved()
		if highest := s.expectKept(); highest < 2 || highest > 3 {
			t.Errorf("%d pods were surged at a time, maxSurge allows 3", highest)
		}
	})
	t.Run("pods that take a while to end", func(t *testing.T) {
		t.Parallel()
		s := newSurge(t, 2, []PodOption{Annotate(TerminatesAfter, "2s")}, AtLeast("web", "2"))
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectMoved()
		s.expectKept()
	})
}

// A drain without surge changes no pod.
func TestSurgeOff(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--surge=off"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()
			s := newSurge(t, 1, nil)
			s.drain(0, flags...)
			s.expectMoved()
			s.expectPatched()
			s.settled()
		})
		t.Run(fmt.Sprint(flags, " and a closed budget"), func(t *testing.T) {
			t.Parallel()
			s := newSurge(t, 1, nil, AtLeast("web", "1"))
			s.drain(1, append(slices.Clone(flags), "--timeout=3s")...)
			s.expectPatched()
			s.expectKept()
		})
	}
}

// useUpQuota creates a quota that allows as many pods as there are.
func (s *surgeSetup) useUpQuota(pods int64) {
	s.t.Helper()
	quotas := s.Client.CoreV1().ResourceQuotas(s.Name)
	most := *resource.NewQuantity(pods, resource.DecimalSI)
	_, err := quotas.Create(s.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: most}},
	}, metav1.CreateOptions{})
	must(s.t, err)
	must(s.t, Until(s.t.Context(), "the quota is used up", func() (bool, error) {
		now, err := quotas.Get(s.t.Context(), "pods", getOptions)
		if err != nil {
			return false, err
		}
		used := now.Status.Used[corev1.ResourcePods]
		return used.Value() == pods, nil
	}))
}

// A quota refuses the replacement. The pod is given back, and stays in service.
func TestSurgeRefusedByQuota(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"until the timeout": {"--timeout=5s"}, "until the limit of surge": {"--timeout=8s", "--surge-limit=2s", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSurge(t, 1, nil, AtLeast("web", "1"))
			s.useUpQuota(1)
			before := s.podsOn("old")
			result := s.drain(1, append(flags, "--surge=all")...)
			if s.expectKept() != 1 {
				t.Error("no pod was surged")
			}
			if after := s.podsOn("old"); !slices.Equal(before, after) {
				t.Errorf("on the node were %v, and are %v", before, after)
			}
			if !slices.Contains(flags, "json") {
				return
			}
			report, err := result.Report()
			must(t, err)
			if len(report.Pods) != 1 || report.Pods[0].Reason != "SurgeFailed" {
				t.Errorf("the report says %+v, want the reason SurgeFailed", report.Pods)
			}
		})
	}
}

// points are moments of a drain at which a test interrupts it.
func (s *surgeSetup) points() map[string]func(SurgeState) bool {
	return map[string]func(SurgeState) bool{
		"after the release":     released,
		"after the replacement": s.replaced(),
		"after the eviction":    func(now SurgeState) bool { return now.Terminating > 0 },
	}
}

// How long a drain may take after another was killed. If that happens while the API server works on an eviction, the
// budget counts the pod as disrupted for two minutes, although nothing deletes it.
const afterKill = 3 * time.Minute

func (s *surgeSetup) killAt(point string, flags ...string) {
	s.t.Helper()
	run := s.start(flags...)
	s.until(point, s.points()[point])
	must(s.t, run.Signal(syscall.SIGKILL))
	_, _ = run.Wait() // it was killed
}

// A drain is killed. Whatever comes next leaves no pod surged.
func TestSurgeKilled(t *testing.T) {
	t.Parallel()
	pace := []PodOption{slowly(2 * time.Second), Annotate(TerminatesAfter, "2s")}
	for _, point := range []string{"after the release", "after the replacement", "after the eviction"} {
		row := func(name string, next func(*testing.T, *surgeSetup)) {
			t.Run(point+", then "+name, func(t *testing.T) {
				t.Parallel()
				s := newSurge(t, 1, pace, AtLeast("web", "1"))
				s.killAt(point, "--surge=all")
				next(t, s)
				s.expectKept()
			})
		}
		row("with surge", func(t *testing.T, s *surgeSetup) {
			s.drain(0, "--surge=all", "--timeout="+afterKill.String())
			s.expectMoved()
		})
		row("release", func(t *testing.T, s *surgeSetup) {
			run(t, s.World, 0, haulout, "release", s.Node("old"))
		})
		if point != "after the release" { // a pod that is replaced is evicted
			row("without surge", func(t *testing.T, s *surgeSetup) {
				s.drain(0, "--timeout="+afterKill.String())
				s.expectMoved()
			})
		}
	}
	t.Run("after the release, then without surge", func(t *testing.T) {
		t.Parallel()
		s := newSurge(t, 1, pace, AtLeast("web", "1"))
		// Otherwise the replacement may be Ready before the pod is given back. Then the pod is evicted.
		run(t, s.World, 0, cluster.Kubectl(), "cordon", s.Node("new"))
		before := s.podsOn("old")
		s.killAt("after the release", "--surge=all")
		s.drain(1, "--timeout=8s")
		if after := s.podsOn("old"); !slices.Equal(before, after) {
			t.Errorf("on the node were %v, and are %v", before, after)
		}
		s.expectKept()
	})
}

// A drain that a person interrupts gives its pods back.
func TestSurgeInterrupted(t *testing.T) {
	t.Parallel()
	row := func(name string, signal syscall.Signal, point, minAvailable string, check func(s *surgeSetup, before []string)) {
		t.Run(name+", "+signal.String(), func(t *testing.T) {
			t.Parallel()
			pace := []PodOption{slowly(3 * time.Second), Annotate(TerminatesAfter, "3s")}
			s := newSurge(t, 1, pace, AtLeast("web", minAvailable))
			before := s.podsOn("old")
			run := s.start("--surge=all")
			s.until(point, s.points()[point])
			must(t, run.Signal(signal))
			result, err := run.Wait()
			must(t, err)
			if result.Exit != 128+int(signal) {
				t.Errorf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
			}
			if s.State().Surged > 0 { // the watch may be late
				s.until("no pod is released", func(now SurgeState) bool { return now.Surged == 0 })
			}
			s.expectKept()
			check(s, before)
		})
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		row("after the release", signal, "after the release", "1", func(s *surgeSetup, before []string) {
			if after := s.podsOn("old"); !slices.Equal(before, after) {
				s.t.Errorf("on the node were %v, and are %v", before, after)
			}
		})
		// The budget wants two pods, so that it stays closed with a Ready replacement. The ReplicaSet deletes either pod.
		row("a closed budget after the replacement", signal, "after the replacement", "2", func(s *surgeSetup, _ []string) {})
		row("after the eviction", signal, "after the eviction", "1", func(s *surgeSetup, _ []string) { s.expectMoved() })
	}
}

// selectedTogether gives the pods a label that the budget of shopBudget selects.
func selectedTogether(pod *corev1.PodTemplateSpec) { pod.Labels["part-of"] = "shop" }

// shopBudget returns a budget over the pods of several Deployments.
func shopBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"part-of": "shop"}}
	return budget
}

// A budget over two Deployments that counts by a percentage or maxUnavailable counts the replicas of a pod's controller.
// A released pod has none, so such a budget would allow one more disruption. The drain does not release the only pod of
// a Deployment behind such a budget, and says so. Neither Deployment loses a pod that the budget protects.
func TestSurgeBehindABudgetOfTwoDeployments(t *testing.T) {
	t.Parallel()
	never := Annotate("haulout.dev/surge", "false")
	for _, row := range []struct {
		name   string
		budget *policyv1.PodDisruptionBudget
		api    []PodOption
		mode   string
		lowest int // of the pods of both Deployments
	}{
		{"maxUnavailable 0", Budget("shop", "0"), []PodOption{never}, "all", 4},
		{"maxUnavailable 0%", Budget("shop", "0%"), []PodOption{never}, "all", 4},
		{"minAvailable 100%", AtLeast("shop", "100%"), []PodOption{never}, "all", 4},
		{"single-replica", Budget("shop", "0"), nil, "single-replica", 4},
		{"maxUnavailable 1", Budget("shop", "1"), []PodOption{never}, "all", 3},
	} {
		for _, quota := range []bool{false, true} { // with a quota no replacement comes, so the budget would stay open
			t.Run(fmt.Sprintf("%s, quota %v", row.name, quota), func(t *testing.T) {
				t.Parallel()
				started := slowly(300 * time.Millisecond)
				s := newSurgeOf(t, Deployment("web", 1, selectedTogether, started), 3,
					Deployment("api", 3, append([]PodOption{selectedTogether, started}, row.api...)...), shopBudget(row.budget.DeepCopy()))
				api, err := s.WatchSurge(t.Context(), "app=api")
				must(t, err)
				both, err := s.WatchSurge(t.Context(), "part-of=shop")
				must(t, err)
				if quota {
					s.useUpQuota(4)
				}
				exit := 1
				if row.lowest < 4 {
					exit = 0
				}
				s.expectImpossible(s.drain(exit, "--surge="+row.mode, fmt.Sprintf("--timeout=%ds", 12+60*(1-exit)), "-o", "jsonl"))
				lowest, _, err := both.Extremes(t.Context())
				must(t, err)
				if lowest != row.lowest {
					t.Errorf("%d pods of both Deployments were Ready, want %d\n%s", lowest, row.lowest, both.Story())
				}
				if lowest, _, err := api.Extremes(t.Context()); err != nil || lowest < row.lowest-1 {
					t.Errorf("%d pods of api were Ready, %v", lowest, err)
				}
			})
		}
	}
}

// The modes choose pods, and annotations of pods and namespaces take precedence.
func TestSurgeChoosesPods(t *testing.T) {
	t.Parallel()
	surge := func(value string) PodOption { return Annotate("haulout.dev/surge", value) }
	// `web` has one pod, `many` two, `closed` two with a closed budget, `open` two with an open one.
	world := func(t *testing.T, web ...PodOption) *surgeSetup {
		return newSurgeOf(t, Deployment("web", 1, web...), 6,
			Deployment("many", 2), Deployment("closed", 2), Budget("closed", "0"), Deployment("open", 2), Budget("open", "1"))
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		s := world(t)
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectPatched("closed", "many", "open", "web")
		s.expectKept()
	})
	t.Run("single-replica", func(t *testing.T) {
		t.Parallel()
		s := world(t)
		s.drain(1, "--surge=single-replica", "--timeout=8s")
		s.expectPatched("web")
		s.expectKept()
	})
	t.Run("closed-budget", func(t *testing.T) {
		t.Parallel()
		s := world(t)
		s.drain(0, "--surge=closed-budget", "--timeout=60s")
		s.expectPatched("closed")
	})
	t.Run("a pod that must not be surged", func(t *testing.T) {
		t.Parallel()
		s := world(t, surge("false"))
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectPatched("closed", "many", "open")
	})
	t.Run("a pod that is to be surged", func(t *testing.T) {
		t.Parallel()
		s := world(t, surge("true"))
		s.drain(0, "--surge=closed-budget", "--timeout=60s")
		s.expectPatched("closed", "web")
		s.expectKept()
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		s := newSurgeOf(t, Deployment("web", 1, surge("true")), 0)
		s.drain(0, "--surge=off", "--timeout=60s")
		s.expectPatched()
	})
	t.Run("a namespace whose pods must not be surged", func(t *testing.T) {
		t.Parallel()
		s := newSurgeOf(t, Deployment("web", 1, surge("true")), 2, Deployment("many", 2))
		_, err := s.Client.CoreV1().Namespaces().Patch(t.Context(), s.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"haulout.dev/surge":"false"}}}`), metav1.PatchOptions{})
		must(t, err)
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectPatched("web")
		s.expectKept()
	})
}

// Pods that cannot run twice are evicted as without surge, and the report says why.
func TestSurgeImpossible(t *testing.T) {
	t.Parallel()
	rolling := func(surge string) *appsv1.Deployment {
		web := Deployment("web", 1)
		most, least := intstr.Parse(surge), intstr.FromInt32(1)
		web.Spec.Strategy = appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &most, MaxUnavailable: &least},
		}
		return web
	}
	recreated := Deployment("web", 1)
	recreated.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	ports := Deployment("web", 1, func(pod *corev1.PodTemplateSpec) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	})
	for name, web := range map[string]*appsv1.Deployment{
		"Recreate": recreated, "maxSurge 0": rolling("0"), "maxSurge 0%": rolling("0%"), "host port": ports,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSurgeOf(t, web, 0)
			s.expectImpossible(s.drain(0, "--surge=all", "--timeout=60s", "-o", "jsonl"))
		})
	}
	t.Run("StatefulSet", func(t *testing.T) {
		t.Parallel()
		s := newSurgeOf(t, Deployment("web", 1), 1, StatefulSet("db", 1))
		result := s.drain(0, "--surge=all", "--timeout=60s", "-o", "jsonl")
		s.expectPatched("web")
		s.expectDiagnosis(result)
	})
	t.Run("a volume of one node", func(t *testing.T) {
		t.Parallel()
		needHaulout(t)
		s := &surgeSetup{World: newWorld(t), t: t, replicas: 1}
		disks, err := s.StartDisks()
		must(t, err)
		t.Cleanup(disks.Close)
		must(t, disks.Add(t.Context(), Disk{Claim: "data", Mode: corev1.ReadWriteOnce}))
		must(t, disks.AddNode(t.Context(), "old"))
		must(t, s.Apply(t.Context(), Deployment("web", 1, Claim("data"))))
		must(t, s.Settle(t.Context(), 1))
		s.expectImpossible(s.drain(0, "--surge=all", "--timeout=60s", "-o", "jsonl"))
	})
	t.Run("a volume of many nodes", func(t *testing.T) {
		t.Parallel()
		needHaulout(t)
		s := &surgeSetup{World: newWorld(t), t: t, replicas: 1}
		disks, err := s.StartDisks()
		must(t, err)
		t.Cleanup(disks.Close)
		must(t, disks.Add(t.Context(), Disk{Claim: "data", Mode: corev1.ReadWriteMany}))
		must(t, disks.AddNode(t.Context(), "old"))
		must(t, s.Apply(t.Context(), Deployment("web", 1, Claim("data"))))
		must(t, s.Settle(t.Context(), 1))
		must(t, disks.AddNode(t.Context(), "new"))
		must(t, s.UntilOpen(t.Context(), "new"))
		s.SurgeWatch, err = s.WatchSurge(t.Context(), "app=web")
		must(t, err)
		s.drain(0, "--surge=all", "--timeout=60s")
		s.expectPatched("web")
		s.expectKept()
	})
}

func (s *surgeSetup) expectImpossible(result Result) {
	s.t.Helper()
	s.expectPatched()
	s.expectDiagnosis(result)
}

func (s *surgeSetup) expectDiagnosis(result Result) {
	s.t.Helper()
	events, err := result.Events()
	must(s.t, err)
	if !slices.ContainsFunc(events, func(e DrainEvent) bool { return e.Diagnosis != nil && e.Diagnosis.Code == "SurgeImpossible" }) {
		s.t.Errorf("no event says SurgeImpossible\n%s", result.Stdout)
	}
}

// newSurgeFleet returns two machines, on one of which the only pod of `web` runs, and that machine.
func newSurgeFleet(t *testing.T, c *Cluster) (*Fleet, *Machine, *SurgeWatch) {
	t.Helper()
	f := newFleetOf(t, c, 1, 1, Deployment("web", 1, slowly(1500*time.Millisecond), Annotate(TerminatesAfter, "1500ms")),
		AtLeast("web", "1"))
	watch, err := f.WatchSurge(t.Context(), "app=web")
	must(t, err)
	pods, err := f.Client.CoreV1().Pods(f.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, machine := range f.Machines {
		if machine.Node == pods.Items[0].Spec.NodeName {
			return f, machine, watch
		}
	}
	t.Fatal("the pod is on no machine")
	return nil, nil, nil
}

// remembersSurge returns true if the record of the Node says that pods may be released.
func remembersSurge(node *corev1.Node) (bool, error) {
	record := struct{ Surges bool }{}
	err := json.Unmarshal([]byte(node.Annotations["haulout.dev/record"]), &record)
	return record.Surges, err
}

// expectSurgeUpdate offers an update to the machine, and kills its agent at five points of the update if `kills` is
// true.
func expectSurgeUpdate(t *testing.T, f *Fleet, m *Machine, w *SurgeWatch, kills bool) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.Story())
		}
	})
	shows := func(states ...string) func() bool {
		return func() bool {
			return slices.ContainsFunc(f.States(m.Node), func(state string) bool { return slices.Contains(states, state) })
		}
	}
	must(t, m.Offer("1.1"))
	for _, point := range []struct {
		name  string
		holds func() bool
	}{
		{"the node drains", shows("draining")},
		{"the pod is released", func() bool { return w.State().Surged > 0 }},
		{"the replacement is Ready", func() bool { return w.State().Ready > 1 }},
		{"the pod terminates", func() bool { return w.State().Terminating > 0 }},
		{"the machine reboots", shows("rebooting")},
	} {
		must(t, UntilWithin(t.Context(), afterKill, point.name, func() (bool, error) {
			return point.holds(), fmt.Errorf("states %v, pods %+v", f.States(m.Node), w.State())
		}))
		if point.name == "the pod is released" {
			node, err := f.Client.CoreV1().Nodes().Get(t.Context(), m.Node, getOptions)
			must(t, err)
			if remembers, err := remembersSurge(node); !remembers {
				t.Errorf("the record does not say that a pod may be released: %v, %s", err, node.Annotations["haulout.dev/record"])
			}
		}
		if kills {
			must(t, m.RestartAgent(syscall.SIGKILL))
		}
	}
	must(t, UntilWithin(t.Context(), afterKill+2*time.Minute, "the machine is updated", func() (bool, error) {
		node, err := f.Client.CoreV1().Nodes().Get(t.Context(), m.Node, getOptions)
		if err != nil {
			return false, err
		}
		return m.Version() == "1.1" && node.Labels["haulout.dev/state"] == "idle" && !node.Spec.Unschedulable, m.Problem()
	}))
	must(t, Until(t.Context(), "the record forgets that pods may be released", func() (bool, error) {
		node, err := f.Client.CoreV1().Nodes().Get(t.Context(), m.Node, getOptions)
		if err != nil {
			return false, err
		}
		remembers, err := remembersSurge(node)
		return err == nil && !remembers, fmt.Errorf("%v, %s", err, node.Annotations["haulout.dev/record"])
	}))
	s := &surgeSetup{World: f.World, SurgeWatch: w, t: t, replicas: 1}
	if s.expectKept() != 1 {
		t.Error("no pod was surged")
	}
	if m.Boots() != 1 {
		t.Errorf("the machine was booted %d times", m.Boots())
	}
}

// surgeFlags are the options of agents that are killed again and again. If one is killed just before it requests the
// reboot, the next one requests it again after two minutes, but not before the limit for a reboot is over.
var surgeFlags = []string{"--surge=all", "--reboot-limit=1m"}

// An agent with the option surge drains and reboots its node without a moment in which the only pod of a Deployment is
// not Ready, also if it is killed again and again.
func TestSurgeFleet(t *testing.T) {
	t.Parallel()
	for _, kills := range []bool{false, true} {
		t.Run(fmt.Sprintf("kills %v", kills), func(t *testing.T) {
			t.Parallel()
			f, machine, watch := newSurgeFleet(t, cluster)
			f.startAgents(t, surgeFlags...)
			expectSurgeUpdate(t, f, machine, watch, kills)
		})
	}
}

// expectSurgeByPods is the same with the tokens of the shipped DaemonSet's pods. The component surge must be applied.
func expectSurgeByPods(t *testing.T, in *Installed, authority string) {
	t.Helper()
	for _, kills := range []bool{false, true} {
		f, machine, watch := newSurgeFleet(t, in.Cluster)
		f.startPods(t, in, surgeFlags...)
		expectSurgeUpdate(t, f, machine, watch, kills)
		f.expectAuthority(t, authority)
	}
}

// For each budget: whether kubectl drain ends within the time HAULOUT_SURGE_KUBECTL (10s), and how few pods were Ready.
func TestSurgeBesideKubectl(t *testing.T) {
	t.Parallel()
	limit := os.Getenv("HAULOUT_SURGE_KUBECTL")
	if limit == "" {
		limit = "10s"
	}
	for _, b := range surgeBudgets {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := newSurge(t, 1, nil, b.budget())
			result, err := s.Run(t.Context(), cluster.Kubectl(), "drain", s.Node("old"), "--ignore-daemonsets", "--timeout="+limit)
			must(t, err)
			must(t, Until(t.Context(), "a pod is Ready", func() (bool, error) { return s.State().Ready == 1, nil }))
			lowest, _, err := s.Extremes(t.Context())
			must(t, err)
			t.Logf("%s: kubectl drain: exit %d after %.1f s, at least %d Ready", b.name, result.Exit, result.Wall.Seconds(), lowest)
			if (result.Exit == 0) != b.open || (lowest == 0) != b.open {
				t.Errorf("exit %d, at least %d Ready; the budget allows an eviction: %v\n%s", result.Exit, lowest, b.open, result.Stderr)
			}
		})
	}
}

// While a pod is released, kubectl drain takes it for a pod without a controller. A person can give it back by hand, as
// docs/guards.md says.
func TestSurgedPodBesideKubectl(t *testing.T) {
	t.Parallel()
	s := newSurge(t, 1, nil, AtLeast("web", "1"))
	kubectl := func(args ...string) Result {
		t.Helper()
		result, err := s.Run(t.Context(), cluster.Kubectl(), append(args, "--namespace="+s.Name)...)
		must(t, err)
		return result
	}
	before := s.podsOn("old")
	pod, err := s.Client.CoreV1().Pods(s.Name).Get(t.Context(), before[0], getOptions)
	must(t, err)
	must(t, s.cordonOld())
	_, err = s.Client.CoreV1().Pods(s.Name).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(release(pod).String()),
		metav1.PatchOptions{})
	must(t, err)
	s.until("there is a replacement", s.replaced())
	refused := kubectl("drain", s.Node("old"), "--ignore-daemonsets", "--timeout=5s")
	if refused.Exit == 0 || !strings.Contains(refused.Stderr, "declare no controller") {
		t.Errorf("kubectl drain: exit %d\n%s", refused.Exit, refused.Stderr)
	}
	for _, result := range []Result{
		kubectl("label", "pod", pod.Name, hashLabel+"="+pod.Labels[hashLabel]),
		kubectl("annotate", "pod", pod.Name, surgeMark+"-"),
	} {
		if result.Exit != 0 {
			t.Errorf("exit %d\n%s", result.Exit, result.Stderr)
		}
	}
	// The ReplicaSet then deletes one of the two. Which one depends on how long they have been Ready, in powers of two.
	s.expectKept()
}

func (s *surgeSetup) cordonOld() error {
	_, err := s.Client.CoreV1().Nodes().Patch(s.t.Context(), s.Node("old"), types.MergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	return err
}

// The Deployment changes while one of its pods is released. The drain ends all the same.
func TestSurgeWhileTheDeploymentChanges(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, replicas int32) (*surgeSetup, *Run) {
		t.Helper()
		s := newSurge(t, replicas, []PodOption{slowly(2 * time.Second)}, AtLeast("web", "1"))
		run := s.start("--surge=all", "--timeout=60s")
		s.until("a pod is released", released)
		return s, run
	}
	change := func(s *surgeSetup, patch string) {
		s.t.Helper()
		_, err := s.Client.AppsV1().Deployments(s.Name).Patch(s.t.Context(), "web", types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{})
		must(s.t, err)
	}
	end := func(s *surgeSetup, run *Run) {
		s.t.Helper()
		result, err := run.Wait()
		must(s.t, err)
		if result.Exit != 0 {
			s.t.Errorf("exit %d\n%s%s", result.Exit, result.Stdout, result.Stderr)
		}
		s.expectMoved()
	}
	t.Run("fewer replicas", func(t *testing.T) {
		t.Parallel()
		s, run := begin(t, 3)
		change(s, `{"spec":{"replicas":1}}`)
		end(s, run)
		s.replicas = 1
		s.settled()
		if lowest, _, err := s.Extremes(t.Context()); err != nil || lowest < 1 {
			t.Errorf("%d pods were Ready, %v", lowest, err)
		}
	})
	t.Run("more replicas", func(t *testing.T) {
		t.Parallel()
		s, run := begin(t, 1)
		change(s, `{"spec":{"replicas":2}}`)
		end(s, run)
		s.replicas = 2
		s.settled()
		if lowest, _, err := s.Extremes(t.Context()); err != nil || lowest < 1 {
			t.Errorf("%d pods were Ready, %v", lowest, err)
		}
	})
	t.Run("a rollout", func(t *testing.T) {
		t.Parallel()
		s, run := begin(t, 1)
		change(s, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"e2e.invalid/next"}]}}}}`)
		end(s, run)
		s.expectKept()
	})
	t.Run("a deletion", func(t *testing.T) {
		t.Parallel()
		s, run := begin(t, 1)
		must(t, s.Client.PolicyV1().PodDisruptionBudgets(s.Name).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		must(t, s.Client.AppsV1().Deployments(s.Name).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		end(s, run)
		s.until("no pod is left", func(now SurgeState) bool { return now.Pods == 0 })
	})
}

// A dry run releases nothing.
func TestSurgeDryRun(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"client", "server"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSurge(t, 1, nil)
			before := s.podsOn("old")
			result := s.drain(0, "--surge=all", "--dry-run="+kind)
			if want := "node/" + s.Node("old") + ": 1 pod would be replaced in advance (--surge)"; !strings.Contains(result.Stdout+result.Stderr, want) {
				t.Errorf("the dry run does not say %q\n%s%s", want, result.Stdout, result.Stderr)
			}
			s.expectPatched()
			if after := s.podsOn("old"); !slices.Equal(before, after) {
				t.Errorf("on the node were %v, and are %v", before, after)
			}
			s.expectKept()
		})
	}
}
