package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How the pods of these worlds behave, and what the rehearsals are told about it.
var publicPace = Pace{ReadyAfter: 5 * time.Second, TerminatesAfter: 2 * time.Second}

func publicWorlds(t *testing.T) []PublicWorld {
	t.Helper()
	worlds, err := PublicWorlds()
	must(t, err)
	if len(worlds) < 10 {
		t.Fatalf("there are only %d worlds", len(worlds))
	}
	return worlds
}

// auditOf returns the report of haulout audit with these arguments.
func auditOf(t *testing.T, kubeconfig string, args ...string) (report auditReport) {
	t.Helper()
	command := exec.CommandContext(t.Context(), haulout.Path, append([]string{"audit", "-o", "json"}, args...)...)
	command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + kubeconfig}
	stdout, err := command.Output()
	if exit := command.ProcessState.ExitCode(); exit != 0 && exit != 1 {
		t.Fatalf("haulout audit %v: exit %d (%v)", args, exit, err)
	}
	must(t, json.Unmarshal(stdout, &report))
	return report
}

// brief returns "SEVERITY ID OWNER" of the findings about a namespace, or about all if it is empty, and those about the
// cluster that name an object of the namespace. Sorted.
func (r auditReport) brief(namespace string) (found []string) {
	for _, owner := range r.Owners {
		for _, finding := range owner.Findings {
			about := namespace == "" || owner.Namespace == namespace
			if owner.Kind == "Cluster" && owner.Namespace == "" && strings.Contains(finding.Object, "/"+namespace+"-") {
				about = true
			}
			if about {
				found = append(found, finding.Severity+" "+finding.ID+" "+strings.TrimSuffix(owner.Kind+"/"+owner.Name, "/"))
			}
		}
	}
	slices.Sort(found)
	return found
}

// blocked returns "blocked REASON OWNER" of the pods that keep drains of the world's nodes from ending, sorted.
func (r auditReport) blocked(w *World) (found []string) {
	for _, node := range r.Nodes {
		if strings.HasPrefix(node.Name, w.Name+"-") {
			for _, culprit := range node.BlockedBy {
				found = append(found, "blocked "+culprit.Reason+" "+strings.TrimPrefix(culprit.Owner, w.Name+"/"))
			}
		}
	}
	slices.Sort(found)
	return found
}

func expectLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: not in README.md: %s", what, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: only in README.md: %s", what, line)
		}
	}
}

// An audit of the manifests of each world finds what its README.md lists and explains, and nothing else.
func TestPublicWorldsAsManifests(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	for _, world := range publicWorlds(t) {
		expectLines(t, world.Name, auditOf(t, os.DevNull, "-f", world.Dir).brief(""), world.Expected("manifests"))
	}
}

// Each world runs on the real control plane. An audit of the running cluster finds what its README.md lists and
// explains, and names the pods that block drains. A rehearsal of one drain tells what the drain then does: the same pods
// are evicted, the same ones are blocked for the same reasons, as many find no capacity, and the audit has given the node
// the same verdict. No budget ever has fewer healthy pods than it needs.
func TestPublicWorlds(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	staged := map[string]*World{}
	var mu sync.Mutex
	t.Run("applied", func(applied *testing.T) {
		for _, world := range publicWorlds(t) {
			applied.Run(world.Name, func(inner *testing.T) {
				inner.Parallel()
				w := newWorld(t)
				t.Cleanup(w.ClosePublic)
				disks, err := w.StartDisks()
				must(inner, err)
				t.Cleanup(disks.Close)
				must(inner, w.ApplyPublic(t.Context(), disks, world))
				w.Kubelets.SetPace(w.Name, publicPace)
				mu.Lock()
				defer mu.Unlock()
				staged[world.Name] = w
			})
		}
	})
	if t.Failed() {
		return
	}
	any := staged[publicWorlds(t)[0].Name]
	report := auditOf(t, any.Kubeconfig, "--rehearse-at-most=1000")
	expectUntouched(t, any)
	for _, world := range publicWorlds(t) {
		t.Run(world.Name, func(t *testing.T) {
			t.Parallel()
			w := staged[world.Name]
			expectLines(t, "in the cluster", report.brief(w.Name), world.Expected("cluster"))
			expectLines(t, "the drains", report.blocked(w), world.Expected("drain"))
			drainAsForetold(t, w, w.nodeOf(t, world.Drained), report)
		})
	}
}

// nodeOf returns the node with the most pods of this controller, or with this pod.
func (w *World) nodeOf(t *testing.T, whose string) string {
	t.Helper()
	_, name, _ := strings.Cut(whose, "/")
	list, err := w.Client.CoreV1().Pods(w.Name).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	counts := map[string]int{}
	best := ""
	for _, pod := range list.Items {
		if pod.Name == name || strings.HasPrefix(pod.Name, name+"-") {
			counts[pod.Spec.NodeName]++
			if on := pod.Spec.NodeName; counts[on] > counts[best] || counts[on] == counts[best] && on < best {
				best = on
			}
		}
	}
	if best == "" {
		t.Fatalf("no node has a pod of %s", whose)
	}
	return best
}

func drainAsForetold(t *testing.T, w *World, node string, report auditReport) {
	t.Helper()
	budgets, err := w.WatchBudgets(t.Context())
	must(t, err)
	// A drain that ends has all the time that a busy machine needs. One that is blocked evicts its other pods at once.
	limit := "2m"
	for _, audited := range report.Nodes {
		if audited.Name == node && audited.Verdict == "blocked" {
			limit = "25s"
		}
	}
	args := []string{node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=" + limit}
	rehearse := append([]string{"rehearse"}, args...)
	said := foretell(t, w, w.Kubeconfig, append(rehearse, "-o", "json", "--ready-after="+publicPace.ReadyAfter.String(),
		"--terminate-within="+publicPace.TerminatesAfter.String(), "--attach-within=1s", "--detach-within=1s"))
	result, err := w.Run(t.Context(), haulout, append(append([]string{"drain"}, args...), "-o", "jsonl")...)
	must(t, err)
	real, err := carriedOut(result)
	must(t, err)
	real.homeless = homeless(t, w)
	t.Logf("drained: %v, held up: %v\nrehearsed:%v\nreal:%v\nno room: %v", real.drained, real.held(), said, real, real.homeless)
	// Times and waves are compared by TestRehearsal. Here, ten drains at once would measure the machine.
	j := judge(said, real)
	for _, wrong := range slices.Concat(j.outcome, j.held, j.homeless) {
		t.Error(wrong)
	}

	var evicted, named []string
	for _, pod := range w.Kubelets.Pods(w.Name) {
		if pod.Evicted {
			evicted = append(evicted, pod.Name)
			if pod.Node != node {
				t.Errorf("pod %s on %s was evicted", pod.Name, pod.Node)
			}
		}
	}
	for name, pod := range said.pods {
		if pod.evicted != never {
			named = append(named, name)
		}
	}
	slices.Sort(evicted)
	slices.Sort(named)
	if !slices.Equal(evicted, named) {
		t.Errorf("the server has evicted %v, and the rehearsal said %v", evicted, named)
	}
	expectVerdict(t, w, node, report, real)
	broken, err := budgets.Broken(t.Context())
	must(t, err)
	for _, when := range broken {
		t.Error(when)
	}
}

// expectVerdict compares what the audit said about the node with its drain.
func expectVerdict(t *testing.T, w *World, node string, report auditReport, real course) {
	t.Helper()
	for _, audited := range report.Nodes {
		if audited.Name != node {
			continue
		}
		if (audited.Verdict == "blocked") == real.drained {
			t.Errorf("the audit said %s, and the drain ended: %v", audited.Verdict, real.drained)
		}
		var blockers, left []string
		for _, culprit := range audited.BlockedBy {
			blockers = append(blockers, strings.TrimPrefix(culprit.Pod, w.Name+"/")+" "+culprit.Reason)
		}
		for name, pod := range real.pods {
			if pod.vanished == never {
				left = append(left, name+" "+pod.reason)
			}
		}
		slices.Sort(blockers)
		slices.Sort(left)
		if !slices.Equal(blockers, left) {
			t.Errorf("the audit said that %v block, and %v are left", blockers, left)
		}
		return
	}
	t.Errorf("the audit has no node %s", node)
}

// docs/audit.md has a table of the worlds. HAULOUT_UPDATE_DOCS=1 writes it.
func TestPublicWorldsAreDocumented(t *testing.T) {
	const begin, end = "<!-- worlds: begin -->\n", "<!-- worlds: end -->\n"
	root, err := sourceRoot()
	must(t, err)
	page := filepath.Join(root, "docs", "audit.md")
	text, err := os.ReadFile(page)
	must(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table of the worlds", page)
	}
	table := "| world | project | version | findings in the cluster | drains that block |\n|---|---|---|---|---|\n"
	for _, world := range publicWorlds(t) {
		table += fmt.Sprintf("| [%s](%s) | %s | %s | %s | %s |\n", world.Name,
			path.Join("../tests/e2e/worlds", world.Name, "README.md"), world.Project, world.Version, counted(world.Expected("cluster")), counted(world.Expected("drain")))
	}
	if want := before + begin + table + end + after; want != string(text) {
		if os.Getenv("HAULOUT_UPDATE_DOCS") != "" {
			must(t, os.WriteFile(page, []byte(want), 0o644))
			return
		}
		t.Errorf("the table of worlds in %s is not that of tests/e2e/worlds; HAULOUT_UPDATE_DOCS=1 writes it", page)
	}
}

// counted returns the lines without their owners, each once with its number, as in "2 risk SingleReplica".
func counted(lines []string) string {
	var kinds []string
	counts := map[string]int{}
	for _, line := range lines {
		kind := line[:strings.LastIndex(line, " ")]
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ", ")
}
