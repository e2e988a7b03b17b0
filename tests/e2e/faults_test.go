package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The time limit of a drain with a fault. On a slow machine, a pod of a StatefulSet may be back before the disruption
// controller has seen that it was deleted. Then the budget counts it as disrupted for two minutes (DeletionTimeout of
// that controller).
const drainLimit = 5 * time.Minute

// fiftyPods puts 50 pods on the node "old": behind a tight budget, behind a wide one, and without a budget. A drain
// skips two further pods there (of a DaemonSet, and a mirror pod). Thirty pods terminate so slowly that they still exist
// after a fault. So if the drain evicted such a pod before the fault and again after it, the audit log shows both.
func fiftyPods(t *testing.T, c *Cluster) *World {
	t.Helper()
	w, err := c.NewWorld(t.Context())
	must(t, err)
	t.Cleanup(w.Close)
	must(t, w.AddNode(t.Context(), "old", "old"))
	slowly := Annotate(TerminatesAfter, "9s")
	must(t, w.Apply(t.Context(),
		StatefulSet("db", 20), Budget("db", "4"),
		Deployment("web", 20, slowly), Budget("web", "50%"),
		Deployment("free", 10, slowly),
		DaemonSet("net"), MirrorPod("static", w.Node("old"))))
	must(t, w.Settle(t.Context(), 52))
	must(t, w.AddNode(t.Context(), "new", "new"))
	return w
}

func startFifty(t *testing.T, w *World) *Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drainLimit)
	t.Cleanup(cancel)
	run, err := w.Start(ctx, haulout, "drain", w.Node("old"), "--settle=0", "--ignore-daemonsets", "-o", "json")
	must(t, err)
	return run
}

// goneAtLeast waits until so many pods of the node "old" are deleted.
func goneAtLeast(t *testing.T, w *World, wanted int) {
	t.Helper()
	must(t, UntilWithin(t.Context(), time.Minute, fmt.Sprintf("%d pods have gone", wanted), func() (bool, error) {
		gone := 0
		for _, pod := range w.Kubelets.Pods(w.Name) {
			if pod.Node == w.Node("old") && !pod.Gone.IsZero() {
				gone++
			}
		}
		return gone >= wanted, nil
	}))
}

// terminatingAtLeast waits until so many of the node's pods have been terminating for longer than an answer takes to arrive.
// A drain knows that these are evicted, and a drain that forgot it would evict them again.
func terminatingAtLeast(t *testing.T, w *World, wanted int) {
	t.Helper()
	must(t, UntilWithin(t.Context(), time.Minute, fmt.Sprintf("%d pods are terminating", wanted), func() (bool, error) {
		terminating := 0
		for _, pod := range w.Kubelets.Pods(w.Name) {
			if pod.Node == w.Node("old") && !pod.Deleted.IsZero() && pod.Stopped.IsZero() &&
				time.Since(pod.Deleted) > answerTakes {
				terminating++
			}
		}
		return terminating >= wanted, nil
	}))
}

// expectFifty checks that a drain of fiftyPods with faults ends like one without faults.
func expectFifty(t *testing.T, w *World, drain *Run, faults ...fault) {
	t.Helper()
	result, err := drain.Wait()
	must(t, err)
	t.Logf("exit %d after %.1f s\n%s", result.Exit, result.Wall.Seconds(), result.Stderr)
	report, err := result.Report()
	must(t, err)
	pods, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	alive := map[string]string{}
	for _, pod := range pods.Items {
		alive[string(pod.UID)] = pod.Name
	}
	left := 0
	for _, pod := range report.Pods {
		name, lives := alive[pod.UID]
		switch {
		case pod.Outcome == "skipped":
			continue
		case lives:
			t.Errorf("pod %s is still there, and the report says %s", name, pod.Outcome)
		case pod.Outcome == "evicted" || pod.Outcome == "gone":
			left++
		default:
			t.Errorf("pod %s: %s", pod.Name, pod.Outcome)
		}
	}
	if report.Outcome != "drained" || left != 50 {
		t.Errorf("the report says %s, with %d pods that left", report.Outcome, left)
	}
	got := observe(t, w, result)
	got.unexpected = "" // a server that is killed does not write its last requests to the audit log
	compare(t, outcome{
		done: true, left: "net=1 static=1", evicted: "db=20 free=10 web=20", cordoned: "old",
	}, got)

	records := w.Kubelets.Pods(w.Name)
	for _, wrong := range falselyGone(report.Pods, records) {
		t.Error(wrong)
	}
	requests, err := w.Requests()
	must(t, err)
	judged := judgeEvictions(requests, records, faults)
	for _, wrong := range judged.wrong {
		t.Error(wrong)
	}
	if len(faults) > 0 {
		t.Logf("%d faults, and %d times a pod that could have been evicted again", len(faults), judged.atRisk)
	}
	if len(faults) > 0 && judged.atRisk < 5 {
		t.Errorf("only %d times a pod was there that could have been evicted again", judged.atRisk)
	}
}

// lasts waits for the duration of a fault. There is nothing to observe that would show that it was long enough.
func lasts(t *testing.T, fault time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(fault):
	}
}

// These tests need a control plane of their own because they kill its servers. They do not run in parallel with others:
// a second control plane would slow down tests that measure times.
func TestFaultsOfTheControlPlane(t *testing.T) {
	needHaulout(t)
	own, err := StartCluster(t.Context(), cluster.Programs)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop()
		own.Stop()
	})
	go own.Supervise(ctx)

	t.Run("the API server is killed three times", func(t *testing.T) {
		w := fiftyPods(t, own)
		drain := startFifty(t, w)
		var kills []fault
		for _, gone := range []int{5, 20, 35} {
			goneAtLeast(t, w, gone)
			kills = append(kills, during(func() { must(t, own.Kill(apiServer)) }))
			must(t, own.Restart(t.Context(), apiServer))
		}
		expectFifty(t, w, drain, kills...)
	})
	t.Run("etcd is killed", func(t *testing.T) {
		w := fiftyPods(t, own)
		drain := startFifty(t, w)
		goneAtLeast(t, w, 10)
		kill := during(func() { must(t, own.Kill(etcd)) })
		kill.answersArrive = true
		lasts(t, 2*time.Second) // in this time, requests fail
		must(t, own.Restart(t.Context(), etcd))
		expectFifty(t, w, drain, kill)
	})
	t.Run("the API server ends and serves its watches on", func(t *testing.T) {
		w := fiftyPods(t, own)
		drain := startFifty(t, w)
		goneAtLeast(t, w, 10)
		end := during(func() { must(t, own.Succeed(t.Context())) })
		end.answersArrive = true // it answers the requests that it has received
		expectFifty(t, w, drain, end)
	})
}

// throughProxy returns a proxy in front of the API server, and a kubeconfig by which a drain connects through it.
func throughProxy(t *testing.T, w *World) (*Proxy, string) {
	t.Helper()
	proxy, err := StartProxy(w.URL)
	must(t, err)
	t.Cleanup(proxy.Stop)
	identity, err := w.CA.Client(w.User, "system:masters", RunGroup)
	must(t, err)
	access := w.Access(identity)
	access.Server = proxy.URL
	kubeconfig, err := access.Write(w.Home)
	must(t, err)
	return proxy, kubeconfig
}

func startThrough(t *testing.T, w *World, kubeconfig string) *Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drainLimit)
	t.Cleanup(cancel)
	run, err := w.StartWith(ctx, kubeconfig, haulout, "drain", w.Node("old"), "--settle=0", "--ignore-daemonsets", "-o", "json")
	must(t, err)
	return run
}

// expectEvicted checks that a drain succeeds and which pods it evicted.
func expectEvicted(t *testing.T, w *World, drain *Run, evicted string) {
	t.Helper()
	result, err := drain.Wait()
	must(t, err)
	t.Logf("exit %d after %.1f s\n%s", result.Exit, result.Wall.Seconds(), result.Stderr)
	compare(t, outcome{done: true, evicted: evicted, cordoned: "old"}, observe(t, w, result))
}

// The drain without a fault, with which the drains with faults are compared.
func TestFiftyPods(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := fiftyPods(t, cluster)
	expectFifty(t, w, startFifty(t, w))
}

func TestConnectionIsCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := fiftyPods(t, cluster)
	proxy, kubeconfig := throughProxy(t, w)
	drain := startThrough(t, w, kubeconfig)
	goneAtLeast(t, w, 5)
	var cuts []fault
	for range 8 {
		before := proxy.Accepted()
		cuts = append(cuts, during(proxy.Cut))
		must(t, Until(t.Context(), "the drain has connected again", func() (bool, error) {
			return proxy.Accepted() > before, nil
		}))
	}
	expectFifty(t, w, drain, cuts...)
}

func TestConnectionStalls(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := fiftyPods(t, cluster)
	proxy, kubeconfig := throughProxy(t, w)
	drain := startThrough(t, w, kubeconfig)
	goneAtLeast(t, w, 10)
	stall := during(func() {
		proxy.Stall()
		lasts(t, 12*time.Second) // longer than the limit of a TLS handshake, shorter than the limit of an eviction
		proxy.Resume()
	})
	stall.answersArrive = true
	expectFifty(t, w, drain, stall)
}

// At one moment of the drain, all its open connections stop delivering bytes, as behind a firewall that has forgotten
// them. New connections work.
func TestConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := fiftyPods(t, cluster)
	proxy, kubeconfig := throughProxy(t, w)
	drain := startThrough(t, w, kubeconfig)
	terminatingAtLeast(t, w, 10)
	burial := during(proxy.Bury)
	expectFifty(t, w, drain, burial)
	t.Logf("drained %.1f s after the connections had died", time.Since(burial.to).Seconds())
}

func TestConnectionIsSlow(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := fiftyPods(t, cluster)
	proxy, kubeconfig := throughProxy(t, w)
	proxy.Slow(20 * time.Millisecond)
	expectFifty(t, w, startThrough(t, w, kubeconfig))
}

// refusals returns how many evictions in the world were answered with this code, whatever user the server took the
// client for.
func refusals(w *World, code int) (int, error) {
	found, err := w.Audit.Select(func(e AuditEvent) bool {
		return e.IsEviction() && e.ResponseStatus.Code == code && e.ObjectRef.Namespace == w.Name
	})
	return len(found), err
}

func awaitRefusal(t *testing.T, w *World, code int) {
	t.Helper()
	what := fmt.Sprintf("an eviction is answered with %d", code)
	must(t, UntilWithin(t.Context(), time.Minute, what, func() (bool, error) {
		n, err := refusals(w, code)
		return n > 0, err
	}))
}
