package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The arguments of kubectl with which docs/rehearse.md tells people to make a snapshot.
var snapshotArgs = []string{
	"get", "nodes,pods,pdb,deploy,rs,sts,ds,jobs,pv,pvc,volumeattachments,quota,svc,ns," +
		"validatingwebhookconfigurations,mutatingwebhookconfigurations", "-A", "-o", "json",
}

// staged is a world whose drain is rehearsed and then really run.
type staged struct {
	// build prepares the node "old" before the node "new" exists.
	build func(*setup)
	// after adds pods that run only on the node "new".
	after func(*setup)
	pace  Pace
	// Volumes by claim. attachesAfter and detachesAfter are also given to the rehearsal as its assumptions.
	volumes                      map[string]corev1.PersistentVolumeAccessMode
	local                        []string // claims whose volumes only the node "old" can reach
	attachesAfter, detachesAfter time.Duration
	// flags are given to both commands.
	flags   []string
	with    []string // what a random world has besides pods and budgets, for the printed table
	ill     bool     // there is also a node that is not Ready
	tainted bool     // there is also a node with a taint that only some pods tolerate
	leaving string   // this pod is already terminating when the drain begins
	stuck   bool     // the drain ends at its time limit
	live    bool     // also rehearsed on the running cluster, without a snapshot
}

// A rehearsal predicts what a real drain then does. The same pods must wait for the same reasons, for a while or until
// the end. The pods of each controller are evicted in the same waves, and those of different controllers in the same
// order. Each pod is deleted at the predicted time, and as many pods find no capacity for the same reason. The total
// time differs by a quarter at most. How fast pods start and terminate is given to the rehearsal as an assumption; the
// pods do not show it.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	for name, s := range map[string]staged{
		"one at a time": {
			build: func(s *setup) {
				s.add(7, Deployment("web", 7), Budget("web", "1"))
				s.add(4, StatefulSet("db", 4, Grace(8), Unannounced), Budget("db", "1"))
				s.add(5, Deployment("free", 5, Grace(20), EmptyDir))
				s.add(1, Pod("bare", Grace(3)))
				s.add(1, DaemonSet("logs"))
			},
			pace: Pace{ReadyAfter: 10 * time.Second, TerminatesAfter: 4 * time.Second},
			live: true,
		},
		"whole grace periods, few places": {
			build: func(s *setup) {
				s.add(3, Deployment("slow", 3, Grace(26)))
				s.add(4, Deployment("mid", 4, Grace(12)), AtLeast("mid", "60%"))
				s.add(3, Ordered(StatefulSet("db", 3, Grace(6), Unannounced)), AtLeast("db", "2"))
				s.add(2, Deployment("cache", 2, Grace(4), Annotate("haulout.dev/drain-order", "10")))
				s.add(1, DaemonSet("logs"))
				s.add(1, Pod("leaving", Grace(50)))
			},
			leaving: "leaving",
			pace:    Pace{ReadyAfter: 9 * time.Second, TerminatesAfter: time.Hour},
			flags:   []string{"--max-concurrent=3"},
		},
		"volumes that are slow": {
			build: func(s *setup) {
				s.add(4, WithClaims("data", StatefulSet("db", 4, Unannounced)), Budget("db", "1"))
				s.add(5, Deployment("web", 5, Claim("shared")), Budget("web", "1"))
				s.add(3, Deployment("free", 3, Grace(20)))
				s.add(1, DaemonSet("logs"))
			},
			volumes: map[string]corev1.PersistentVolumeAccessMode{
				"data-db-0": corev1.ReadWriteOnce, "data-db-1": corev1.ReadWriteOnce,
				"data-db-2": corev1.ReadWriteOnce, "data-db-3": corev1.ReadWriteOnce, "shared": corev1.ReadWriteMany,
			},
			attachesAfter: 3 * time.Second,
			detachesAfter: 6 * time.Second,
			pace:          Pace{ReadyAfter: 7 * time.Second, TerminatesAfter: 3 * time.Second},
			flags:         []string{"--wait-volumes"},
		},
		"volumes that stay behind": {
			build: func(s *setup) {
				s.add(3, WithClaims("data", StatefulSet("db", 3, Unannounced)))
				s.add(2, Deployment("web", 2, Claim("shared")), Budget("web", "1"))
				s.add(7, Deployment("free", 7), Budget("free", "1"))
			},
			volumes: map[string]corev1.PersistentVolumeAccessMode{
				"data-db-0": corev1.ReadWriteOnce, "data-db-1": corev1.ReadWriteOnce,
				"data-db-2": corev1.ReadWriteOnce, "shared": corev1.ReadWriteMany,
			},
			local:         []string{"data-db-0", "data-db-2", "shared"},
			attachesAfter: time.Second,
			detachesAfter: time.Second,
			pace:          Pace{ReadyAfter: 10 * time.Second, TerminatesAfter: 3 * time.Second},
			flags:         []string{"--timeout=100s"},
			stuck:         true, // the budget of web waits for the pod that finds no node
		},
		"in order, and Ready for a while": {
			build: func(s *setup) {
				s.add(1, DaemonSet("logs"))
				s.add(4, ReadyFor(8, Ordered(StatefulSet("db", 4, Unannounced))), Budget("db", "1"))
				s.add(3, ReadyFor(8, StatefulSet("all", 3, Unannounced)), Budget("all", "1"))
				s.add(4, Deployment("web", 4, Beside("logs")), Budget("web", "1"), Autoscaler("web", 2, 6))
			},
			ill:     true,
			tainted: true,
			pace:    Pace{ReadyAfter: 13 * time.Second, TerminatesAfter: 3 * time.Second},
		},
		"not to its end": {
			build: func(s *setup) {
				s.add(7, Deployment("web", 7), Budget("web", "1"))
				s.add(2, StatefulSet("db", 2, Unannounced), AtLeast("db", "100%"))
				s.add(3, Deployment("large", 3, Cpu("300")), Budget("large", "1"))
				s.add(1, Deployment("batch", 1, Annotate("karpenter.sh/do-not-disrupt", "true")))
				s.add(1, Deployment("held", 1, Grace(3), Finalizer))
				s.add(4, Deployment("free", 4))
			},
			after: func(s *setup) {
				filler := Pod("filler", Cpu("600"))
				filler.Spec.NodeName = s.Node("new")
				s.add(1, filler)
			},
			pace:  Pace{ReadyAfter: 10 * time.Second, TerminatesAfter: 3 * time.Second},
			flags: []string{"--respect-do-not-disrupt", "--timeout=75s"},
			stuck: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, said, real := s.play(t)
			t.Logf("held up: %v\nwaves: %v\nreal:%v\nno room: %v", real.held(), real.waves(), real, real.homeless)
			for i, foretold := range said {
				j := judge(foretold, real)
				t.Logf("rehearsed %v, really %v\nrehearsed:%v", foretold.moved(), real.moved(), foretold)
				for _, wrong := range j.wrong() {
					t.Errorf("rehearsal %d: %s", i, wrong)
				}
				if real.drained == s.stuck || real.moved() < time.Minute {
					t.Errorf("drained: %v, after %v; that proves too little", real.drained, real.moved())
				}
				if j.ratio < 0.75 || j.ratio > 1.25 {
					t.Errorf("rehearsal %d: rehearsed %v, really %v", i, foretold.moved(), real.moved())
				}
			}
		})
	}
}

// play rehearses the drain, in one or two ways, and then runs it.
func (s staged) play(t *testing.T) (w *World, said []course, real course) {
	t.Helper()
	w = s.prepare(t)
	args := slices.Concat([]string{w.Node("old"), "--ignore-daemonsets", "--delete-emptydir-data", "--force"}, s.flags)
	assumed := []string{"-o", "json", "--ready-after=" + s.pace.ReadyAfter.String()}
	if len(s.volumes) > 0 {
		assumed = append(assumed, "--attach-within="+s.attachesAfter.String(),
			"--detach-within="+s.detachesAfter.String())
	}
	if s.pace.TerminatesAfter < time.Hour {
		assumed = append(assumed, "--terminate-within="+s.pace.TerminatesAfter.String())
	}
	rehearse := slices.Concat([]string{"rehearse"}, args, assumed)
	snapshot := filepath.Join(w.Home, "cluster.json")
	must(t, os.WriteFile(snapshot, []byte(run(t, w, 0, cluster.Kubectl(), snapshotArgs...).Stdout), 0o600))
	// The rehearsal gets no kubeconfig, so it can use only the snapshot.
	said = append(said, foretell(t, w, os.DevNull, append(rehearse, "--snapshot="+snapshot)))
	if s.live {
		said = append(said, foretell(t, w, w.Kubeconfig, rehearse))
	}
	expectUntouched(t, w)

	result, err := w.Run(t.Context(), haulout, slices.Concat([]string{"drain"}, args, []string{"-o", "jsonl"})...)
	must(t, err)
	real, err = carriedOut(result)
	must(t, err)
	real.homeless = homeless(t, w)
	return w, said, real
}

func (s staged) prepare(t *testing.T) *World {
	t.Helper()
	stage := &setup{World: newWorld(t), t: t}
	addNode := s.disks(t, stage.World)
	addNode("old")
	s.build(stage)
	stage.settled()
	// The nodes that are not Ready or tainted have the role "closed" from the start. If pods could go there for a
	// moment, a DaemonSet would create a pod there, which would stay.
	if s.ill {
		must(t, stage.AddNode(t.Context(), "ill", "closed", NotReady))
	}
	if s.tainted {
		must(t, stage.AddNode(t.Context(), "tainted", "closed", Tainted))
	}
	addNode("new")
	stage.pods += stage.daemons(t)
	if s.after != nil {
		s.after(stage)
	}
	stage.settled()
	stage.Kubelets.SetPace(stage.Name, s.pace)
	if s.leaving != "" {
		must(t, stage.Client.CoreV1().Pods(stage.Name).Delete(t.Context(), s.leaving, metav1.DeleteOptions{}))
	}
	return stage.World
}

// disks creates the volumes, if there are any, and returns the function that adds a node.
func (s staged) disks(t *testing.T, w *World) (addNode func(short string)) {
	t.Helper()
	if len(s.volumes) == 0 {
		return func(short string) { must(t, w.AddNode(t.Context(), short, short)) }
	}
	d, err := w.StartDisks()
	must(t, err)
	t.Cleanup(d.Close)
	for claim, mode := range s.volumes {
		disk := Disk{Claim: claim, Mode: mode, AttachesAfter: s.attachesAfter, DetachesAfter: s.detachesAfter}
		if slices.Contains(s.local, claim) {
			disk.OnlyOn = "old"
		}
		must(t, d.Add(t.Context(), disk))
	}
	return func(short string) { must(t, d.AddNode(t.Context(), short)) }
}

// daemons returns the number of pods that DaemonSets create on a second node.
func (w *World) daemons(t *testing.T) int {
	t.Helper()
	sets, err := w.Client.AppsV1().DaemonSets(w.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return len(sets.Items)
}

func foretell(t *testing.T, w *World, kubeconfig string, args []string) course {
	t.Helper()
	rehearsal, err := w.StartWith(t.Context(), kubeconfig, haulout, args...)
	must(t, err)
	result, err := rehearsal.Wait()
	must(t, err)
	t.Logf("haulout %s: exit %d after %.1f s\n%s", strings.Join(args, " "), result.Exit, result.Wall.Seconds(),
		result.Stderr)
	said, err := foretold(result.Stdout, w.Name)
	must(t, err)
	return said
}

// expectUntouched checks that a rehearsal only reads.
func expectUntouched(t *testing.T, w *World) {
	t.Helper()
	requests, err := w.Requests()
	must(t, err)
	for _, request := range requests {
		if request.Verb != "list" && request.Verb != "get" {
			t.Errorf("a rehearsal has sent %s %s", request.Verb, request.RequestURI)
		}
	}
}

// homeless returns how many pods found no node, by controller and reason.
func homeless(t *testing.T, w *World) map[string]int {
	t.Helper()
	found := map[string]int{}
	must(t, Until(t.Context(), "the scheduler has decided", func() (bool, error) {
		list, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		clear(found)
		decided := 0
		for _, pod := range list.Items {
			if pod.Spec.NodeName != "" {
				decided++
				continue
			}
			controller := metav1.GetControllerOf(&pod)
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
					decided++
					found[lacking(controller.Kind+"/"+controller.Name, condition.Message)]++
				}
			}
		}
		return decided == len(list.Items), nil
	}))
	return found
}
