package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// newHelm returns a helm without a cluster.
func newHelm(t *testing.T) Helm {
	t.Helper()
	h, err := cluster.NewHelm(t.TempDir(), "")
	if err != nil {
		cannotRun(t, err.Error())
	}
	return h
}

func set(values ...string) (args []string) {
	for _, value := range values {
		args = append(args, "--set", value)
	}
	return args
}

func (h Helm) objects(t *testing.T, args ...string) Objects {
	t.Helper()
	text, err := h.Template(t.Context(), args...)
	must(t, err)
	objects, err := ParseObjects(text)
	must(t, err)
	return objects
}

// kustomized returns the objects of the base, of these further kustomizations and of these components.
func kustomized(t *testing.T, more []string, components ...string) Objects {
	t.Helper()
	dir, err := kustomizationWith(t.TempDir(), more, components...)
	must(t, err)
	text, err := cluster.AdminKubectl(t.Context(), "kustomize", dir)
	must(t, err)
	objects, err := ParseObjects(text)
	must(t, err)
	return objects
}

// at returns a member of an object, which must exist.
func at(t *testing.T, value any, path ...string) any {
	t.Helper()
	for _, key := range path {
		members, _ := value.(map[string]any)
		next, ok := members[key]
		if !ok {
			t.Fatalf("there is no %s in %v", key, value)
		}
		value = next
	}
	return value
}

const agents = "DaemonSet haulout/haulout"

// alike takes the one difference on purpose out of both: how a change of the configuration restarts the agents. With
// kustomize the name of the ConfigMap ends in a hash, with the chart the pod has the checksum of the configuration. The
// comments of the configuration file count as nothing. Neither does the empty line that kustomize itself adds to an
// expression, before the first line that is indented further.
func alike(t *testing.T, chart, base Objects) {
	t.Helper()
	annotations := at(t, chart[agents], "spec", "template", "metadata", "annotations").(map[string]any)
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(at(t, annotations, "checksum/config").(string)) {
		t.Errorf("the pods of the chart have the annotations %v", annotations)
	}
	delete(annotations, "checksum/config")

	hashed := regexp.MustCompile(`^haulout-config-[0-9a-z]{10}$`)
	renamed := 0
	for key, object := range base {
		if metadata := at(t, object, "metadata").(map[string]any); hashed.MatchString(metadata["name"].(string)) {
			delete(base, key)
			metadata["name"] = "haulout-config"
			base["ConfigMap haulout/haulout-config"] = object
			renamed++
		}
	}
	for _, volume := range at(t, base[agents], "spec", "template", "spec", "volumes").([]any) {
		if source, ok := volume.(map[string]any)["configMap"].(map[string]any); ok && hashed.MatchString(source["name"].(string)) {
			source["name"] = "haulout-config"
			renamed++
		}
	}
	for _, object := range base {
		if object["kind"] == "ValidatingAdmissionPolicy" {
			withoutEmptyLines(object)
		}
	}
	if renamed != 2 {
		t.Errorf("the hash was in %d places, not in the ConfigMap and in its volume", renamed)
	}
	for _, objects := range []Objects{chart, base} {
		data := at(t, objects["ConfigMap haulout/haulout-config"], "data").(map[string]any)
		var config map[string]any
		must(t, yaml.UnmarshalStrict([]byte(data["config.yaml"].(string)), &config))
		data["config.yaml"] = config
	}
}

func withoutEmptyLines(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			withoutEmptyLines(item)
		}
	case map[string]any:
		for key, member := range value {
			if text, ok := member.(string); ok && (key == "expression" || key == "messageExpression") {
				value[key] = strings.ReplaceAll(text, "\n\n", "\n")
			}
			withoutEmptyLines(member)
		}
	}
}

// By default the chart has the objects of the kustomize base, and each switch has those of the component of the same name.
func TestHelmRendersWhatKustomizeDoes(t *testing.T) {
	h := newHelm(t)
	surge, fleetLock := set("surge.policy=true", "surge.rights=true"), []string{"fleetlock-server"}
	for _, r := range []struct {
		name       string
		args       []string
		components []string
		more       []string
	}{
		{name: "default"},
		{"policies only", set("policiesOnly=true"), []string{"policies-only"}, nil},
		{"unmarked kubelets", set("unmarkedKubelets=true"), []string{"unmarked-kubelets"}, nil},
		{"kubelet credentials", set("kubeletCredentials=true"), []string{"kubelet-credentials"}, nil},
		{"Bottlerocket", set("bottlerocket=true"), []string{"bottlerocket"}, nil},
		{"guards", set("guards=true"), []string{"guards"}, nil},
		{"surge", surge, []string{"surge"}, nil},
		{"eviction requests", set("evictionRequests.policy=true", "evictionRequests.rights=true"), []string{"eviction-requests"}, nil},
		{"network policy", set("networkPolicy.enabled=true"), []string{"network-policy"}, nil},
		{"pod monitor", set("podMonitor.enabled=true"), []string{"pod-monitor"}, nil},
		{"policies only, with surge and guards", slices.Concat(set("policiesOnly=true", "guards=true"), surge),
			[]string{"policies-only", "surge", "guards"}, nil},
		{"Bottlerocket, policies only", set("policiesOnly=true", "bottlerocket=true"), []string{"policies-only", "bottlerocket"}, nil},
		{"kubelet credentials, unmarked", set("kubeletCredentials=true", "unmarkedKubelets=true"),
			[]string{"unmarked-kubelets", "kubelet-credentials"}, nil},
		{"FleetLock server", set("fleetlockServer.enabled=true"), nil, fleetLock},
		{"FleetLock server for kubelet credentials", set("fleetlockServer.enabled=true", "kubeletCredentials=true"),
			[]string{"kubelet-credentials"}, fleetLock},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			chart, base := h.objects(t, r.args...), kustomized(t, r.more, r.components...)
			alike(t, chart, base)
			if changes := chart.Changes(base); len(changes) > 0 {
				t.Errorf("+ is only in the chart, - only in kustomize:\n%s", strings.Join(changes, "\n"))
			}
			if len(r.args) > 0 && len(chart.Changes(h.objects(t))) < 2 {
				t.Errorf("the switch changes nothing but the checksum")
			}
		})
	}
}

// Agents with the credentials of their kubelets need no rights. Their FleetLock server in the same namespace does, and the
// quota limits its slots.
func TestKubeletCredentialsKeepTheFleetLockServer(t *testing.T) {
	objects := kustomized(t, []string{"fleetlock-server"}, "kubelet-credentials")
	for _, kept := range []string{"Role haulout/haulout-fleetlock", "RoleBinding haulout/haulout-fleetlock",
		"ValidatingAdmissionPolicy haulout-machine-slots", "ResourceQuota haulout/haulout-slots"} {
		if objects[kept] == nil {
			t.Errorf("there is no %s", kept)
		}
	}
	for key := range objects {
		if strings.Contains(key, "Role") && !strings.HasSuffix(key, " haulout/haulout-fleetlock") {
			t.Errorf("the agents have the rights of %s", key)
		}
	}
}

// Each other value changes what its description says, and nothing else.
func TestHelmValues(t *testing.T) {
	h := newHelm(t)
	const pod = agents + " .spec.template.spec"
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, r := range []struct {
		args []string
		want []string // of Changes; a line without the type of its value
	}{
		{set("image.repository=registry.example/h", "image.tag=v1", "image.pullPolicy=Always"), []string{
			"+ " + pod + ".containers[0].image: registry.example/h:v1", "- " + pod + ".containers[0].image: haulout:0.1.0",
			"+ " + pod + ".containers[0].imagePullPolicy: Always", "- " + pod + ".containers[0].imagePullPolicy: IfNotPresent"}},
		{set("image.tag=v1", "image.digest="+digest), []string{
			"+ " + pod + ".containers[0].image: haulout@" + digest, "- " + pod + ".containers[0].image: haulout:0.1.0"}},
		{set("image.pullSecrets[0].name=secret"), []string{"+ " + pod + ".imagePullSecrets[0].name: secret"}},
		{set("namespace.podSecurityLabel=false"), []string{
			"- Namespace haulout .metadata.labels.pod-security.kubernetes.io/enforce: privileged"}},
		{set("priorityClass.name=mine"), []string{
			"+ " + pod + ".priorityClassName: mine", "- " + pod + ".priorityClassName: haulout",
			"+ PriorityClass mine", "- PriorityClass haulout"}},
		{set("priorityClass.create=false", "priorityClass.name="), []string{
			"- " + pod + ".priorityClassName: haulout", "- PriorityClass haulout"}},
		{set("slotQuota=3000000"), []string{
			"+ ResourceQuota haulout/haulout-slots .spec.hard.count/leases.coordination.k8s.io: 3000000",
			"- ResourceQuota haulout/haulout-slots .spec.hard.count/leases.coordination.k8s.io: 1000"}},
		{set("serviceAccount.annotations.a=b"), []string{"+ ServiceAccount haulout/haulout .metadata.annotations.a: b"}},
		{set("podAnnotations.a=b", "podLabels.c=d", `podLabels.app\.kubernetes\.io/name=x`), []string{ // selected pods stay selected
			"+ " + agents + " .spec.template.metadata.annotations.a: b", "+ " + agents + " .spec.template.metadata.labels.c: d"}},
		{set("resources.limits.memory=1Gi"), []string{
			"+ " + pod + ".containers[0].resources.limits.memory: 1Gi", "- " + pod + ".containers[0].resources.limits.memory: 128Mi"}},
		{set("nodeSelector.a=b", "affinity.podAffinity.x=y"), []string{
			"+ " + pod + ".nodeSelector.a: b", "+ " + pod + ".affinity.podAffinity.x: y"}},
		{set("tolerations[0].key=k"), []string{
			"+ " + pod + ".tolerations[0].key: k", "- " + pod + ".tolerations[0].operator: Exists"}},
		{set("updateStrategy.type=OnDelete"), []string{
			"+ " + agents + " .spec.updateStrategy.type: OnDelete", "- " + agents + " .spec.updateStrategy.type: RollingUpdate",
			"- " + agents + " .spec.updateStrategy.rollingUpdate.maxUnavailable: 1"}},
		{set("extraVolumes[0].name=v", "extraVolumeMounts[0].name=v", "extraEnv[0].name=V"), []string{
			"+ " + pod + ".volumes[10].name: v", "+ " + pod + ".containers[0].volumeMounts[10].name: v",
			"+ " + pod + ".containers[0].env[3].name: V"}},
		{set("extraVolumes=null", "extraVolumeMounts=null", "extraEnv=null", "podAnnotations=null", "podLabels=null", "affinity=null",
			"serviceAccount.annotations=null", "image.pullSecrets=null"), nil},
		{set("config.metrics-address=:9800"), []string{
			"+ " + pod + ".containers[0].ports[0].containerPort: 9800", "- " + pod + ".containers[0].ports[0].containerPort: 9797",
			"+ " + agents + " .spec.template.metadata.annotations.checksum/config", "- " + agents + " .spec.template.metadata.annotations.checksum/config",
			"+ ConfigMap haulout/haulout-config .data.config.yaml: max-unavailable: 1\nmetrics-address: :9800",
			"- ConfigMap haulout/haulout-config .data.config.yaml: max-unavailable: 1\n"}},
	} {
		t.Run(strings.Join(r.args, " "), func(t *testing.T) {
			t.Parallel()
			expectChanges(t, h.objects(t, r.args...).Changes(h.objects(t)), r.want)
		})
	}
}

// Each value of the FleetLock servers changes what its description says, and nothing else.
func TestHelmFleetLockServer(t *testing.T) {
	h := newHelm(t)
	on := set("fleetlockServer.enabled=true")
	plain := h.objects(t, on...)
	const deployment, service = "Deployment haulout/haulout-fleetlock", "Service haulout/haulout-fleetlock"
	const pod, policy = deployment + " .spec.template.spec", "NetworkPolicy haulout/haulout-fleetlock"
	const limit = ".containers[0].args[5]: --max-unavailable="
	for _, r := range []struct {
		args []string
		want []string // as of TestHelmValues
	}{
		{set("fleetlockServer.pools={web,edge}", "fleetlockServer.maxUnavailable=3"), []string{
			"+ " + pod + ".containers[0].args[4]: --pool=web", "- " + pod + ".containers[0].args[4]: --pool=default",
			"+ " + pod + ".containers[0].args[5]: --pool=edge", "- " + pod + limit + "1",
			"+ " + pod + ".containers[0].args[6]: --max-unavailable=3"}},
		{set("fleetlockServer.maxUnavailable=20"), []string{"+ " + pod + limit + "20", "- " + pod + limit + "1"}},
		{set("fleetlockServer.replicas=3", "fleetlockServer.resources.limits.memory=1Gi"), []string{
			"+ " + deployment + " .spec.replicas: 3", "- " + deployment + " .spec.replicas: 2",
			"+ " + pod + ".containers[0].resources.limits.memory: 1Gi", "- " + pod + ".containers[0].resources.limits.memory: 128Mi"}},
		{set("fleetlockServer.nodeSelector.a=b", "fleetlockServer.tolerations[0].key=k", "fleetlockServer.affinity.podAffinity.x=y"),
			[]string{"+ " + pod + ".nodeSelector.a: b", "+ " + pod + ".tolerations[0].key: k", "+ " + pod + ".affinity.podAffinity.x: y"}},
		{set("fleetlockServer.service.type=NodePort", "fleetlockServer.service.annotations.a=b"), []string{
			"+ " + service + " .spec.type: NodePort", "+ " + service + " .spec.externalTrafficPolicy: Cluster",
			"+ " + service + " .metadata.annotations.a: b"}},
		{set("fleetlockServer.service.type=LoadBalancer", "fleetlockServer.service.loadBalancerSourceRanges={192.0.2.0/24}",
			"fleetlockServer.service.externalTrafficPolicy=Local"), []string{
			"+ " + service + " .spec.type: LoadBalancer", "+ " + service + " .spec.externalTrafficPolicy: Local",
			"+ " + service + " .spec.loadBalancerSourceRanges[0]: 192.0.2.0/24"}},
		{set("fleetlockServer.clients[0].ipBlock.cidr=192.0.2.0/24"), []string{"+ " + policy}},
	} {
		t.Run(strings.Join(r.args, " "), func(t *testing.T) {
			t.Parallel()
			expectChanges(t, h.objects(t, slices.Concat(on, r.args)...).Changes(plain), r.want)
			if without := h.objects(t, r.args...).Changes(h.objects(t)); len(without) > 0 {
				t.Errorf("without fleetlockServer.enabled there are changes: %v", without)
			}
		})
	}

	// The servers and the agents have the same image, and the same limit unless it is set.
	all := h.objects(t, slices.Concat(on, set("image.repository=registry.example/h", "image.tag=v1", "image.pullPolicy=Always",
		"image.pullSecrets[0].name=secret", "config.max-unavailable=7", "serviceAccount.annotations.a=b"))...)
	var image, pull, secrets []any
	for _, object := range []string{agents, deployment} {
		spec := at(t, all[object], "spec", "template", "spec")
		container := at(t, spec, "containers").([]any)[0]
		image, pull = append(image, at(t, container, "image")), append(pull, at(t, container, "imagePullPolicy"))
		secrets = append(secrets, at(t, at(t, spec, "imagePullSecrets").([]any)[0], "name"))
	}
	for _, pair := range [][]any{image, pull, secrets} {
		if pair[0] != pair[1] {
			t.Errorf("the agents have %v, the servers %v", pair[0], pair[1])
		}
	}
	expectArgument(t, all, "--max-unavailable=7")
	if _, there := at(t, all["ServiceAccount haulout/haulout-fleetlock"], "metadata").(map[string]any)["annotations"]; there {
		t.Error("the ServiceAccount of the servers has the annotations of the agents' one")
	}
	expectArgument(t, h.objects(t, slices.Concat(on, set("config.max-unavailable=10%", "fleetlockServer.maxUnavailable=4"))...),
		"--max-unavailable=4")
	expectArgument(t, h.objects(t, slices.Concat(on, set("config.max-unavailable=null"))...), "--max-unavailable=1")
	policySpec := at(t, h.objects(t, slices.Concat(on, set("fleetlockServer.clients[0].ipBlock.cidr=192.0.2.0/24"))...)[policy], "spec")
	selected := at(t, policySpec, "podSelector", "matchLabels").(map[string]any)
	if labels := at(t, plain[deployment], "spec", "template", "metadata", "labels").(map[string]any); !maps.Equal(labels, selected) {
		t.Errorf("the NetworkPolicy selects %v, and the pods have %v", selected, labels)
	}
	ingress := at(t, policySpec, "ingress").([]any)[0]
	port := at(t, ingress, "ports").([]any)[0]
	container := at(t, plain[deployment], "spec", "template", "spec", "containers").([]any)[0]
	if name := at(t, at(t, container, "ports").([]any)[0], "name"); at(t, port, "port") != name {
		t.Errorf("the NetworkPolicy admits the port %v, not %v", port, name)
	}
	if cidr := at(t, at(t, ingress, "from").([]any)[0], "ipBlock", "cidr"); cidr != "192.0.2.0/24" {
		t.Errorf("the NetworkPolicy admits %v", cidr)
	}
}

// expectArgument looks for an argument of the FleetLock servers.
func expectArgument(t *testing.T, objects Objects, want string) {
	t.Helper()
	container := at(t, objects["Deployment haulout/haulout-fleetlock"], "spec", "template", "spec", "containers").([]any)[0]
	if args := at(t, container, "args").([]any); !slices.Contains(args, any(want)) {
		t.Errorf("%s is missing in %v", want, args)
	}
}

// expectChanges compares the beginnings of the lines. An object that is not in one of both has the beginning of its lines.
func expectChanges(t *testing.T, changes, want []string) {
	t.Helper()
	for _, line := range changes {
		if !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(line, w) }) {
			t.Errorf("more than wanted: %s", line)
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(changes, func(line string) bool { return strings.HasPrefix(line, w) }) {
			t.Errorf("missing: %s", w)
		}
	}
}

func TestHelmMonitoring(t *testing.T) {
	h := newHelm(t)
	root, err := sourceRoot()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "packaging", "prometheus", "haulout.rules.yaml"))
	must(t, err)
	var rules map[string]any
	must(t, yaml.UnmarshalStrict(text, &rules))

	got := h.objects(t, set("prometheusRule.enabled=true", "prometheusRule.labels.release=p", "podMonitor.enabled=true",
		"podMonitor.labels.release=p", "podMonitor.interval=30s", "networkPolicy.enabled=true",
		"networkPolicy.prometheusNamespace=observability")...)
	rule := got["PrometheusRule haulout/haulout"]
	spec := Objects{"rules ": at(t, rule, "spec").(map[string]any)}
	if changes := spec.Changes(Objects{"rules ": rules}); len(changes) > 0 || !strings.Contains(string(text), "{{ $labels.node }}") {
		t.Errorf("the alert rules are others:\n%s", strings.Join(changes, "\n"))
	}
	elsewhere := h.objects(t, set("prometheusRule.enabled=true", "prometheusRule.runbooks=https://wiki.example.com/haulout/")...)
	served := strings.ReplaceAll(string(text), "runbook_url: docs/", "runbook_url: https://wiki.example.com/haulout/")
	must(t, yaml.UnmarshalStrict([]byte(served), &rules))
	spec = Objects{"rules ": at(t, elsewhere["PrometheusRule haulout/haulout"], "spec").(map[string]any)}
	if changes := spec.Changes(Objects{"rules ": rules}); len(changes) > 0 || served == string(text) {
		t.Errorf("the alert rules with another address of the runbooks are others:\n%s", strings.Join(changes, "\n"))
	}
	monitor, policy := "PodMonitor haulout/haulout", "NetworkPolicy haulout/haulout"
	endpoint := at(t, got[monitor], "spec", "podMetricsEndpoints").([]any)[0]
	for _, object := range []any{rule, got[monitor]} {
		if at(t, object, "metadata", "labels", "release") != "p" ||
			at(t, object, "metadata", "labels", "app.kubernetes.io/name") != "haulout" {
			t.Errorf("the labels are %v", at(t, object, "metadata", "labels"))
		}
	}
	if at(t, endpoint, "interval") != "30s" {
		t.Errorf("the endpoint is %v", endpoint)
	}
	plain := h.objects(t, set("networkPolicy.enabled=true")...)
	expectChanges(t, Objects{policy: got[policy]}.Changes(Objects{policy: plain[policy]}), []string{
		"+ " + policy + " .spec.ingress[0].from[0].namespaceSelector.matchLabels.kubernetes.io/metadata.name: observability",
		"- " + policy + " .spec.ingress[0].from[0].namespaceSelector.matchLabels.kubernetes.io/metadata.name: monitoring"})
}

// The ConfigMap has each dashboard of the chart as it is, although it contains braces.
func TestHelmDashboard(t *testing.T) {
	h := newHelm(t)
	root, err := sourceRoot()
	must(t, err)
	shipped, err := filepath.Glob(filepath.Join(root, "packaging", "grafana", "*.json"))
	must(t, err)
	want := map[string]any{"other.json": `{"title": "{{ node }} ${datasource}"}` + "\n"}
	for _, path := range shipped {
		text, err := os.ReadFile(path)
		must(t, err)
		want[filepath.Base(path)] = string(text)
	}

	chart := filepath.Join(h.home, "chart")
	must(t, os.CopyFS(chart, os.DirFS(h.Chart)))
	h.Chart = chart
	directory := filepath.Join(chart, "files", "grafana")
	must(t, os.MkdirAll(directory, 0o700))
	must(t, os.WriteFile(filepath.Join(directory, "other.json"), []byte(want["other.json"].(string)), 0o600))
	object := h.objects(t, set("dashboard.enabled=true", "dashboard.labels.a=b", "namespace.name=of-nodes")...)["ConfigMap of-nodes/haulout-dashboard"]
	if data := at(t, object, "data").(map[string]any); !maps.Equal(data, want) {
		t.Errorf("the dashboards are %v", data)
	}
	labels := map[string]any{"app.kubernetes.io/name": "haulout", "grafana_dashboard": "1", "a": "b"}
	if got := at(t, object, "metadata", "labels").(map[string]any); !maps.Equal(got, labels) {
		t.Errorf("the labels are %v", got)
	}

	must(t, os.RemoveAll(directory))
	if _, err := h.Template(t.Context(), set("dashboard.enabled=true")...); err == nil || !strings.Contains(err.Error(), "this chart has no dashboard") {
		t.Errorf("without a dashboard: %v", err)
	}
}

// In a namespace of another name, everything is as in `haulout`: no object, no right and no policy keeps the old name.
func TestHelmNamespace(t *testing.T) {
	h := newHelm(t)
	all := set("guards=true", "surge.policy=true", "surge.rights=true", "evictionRequests.policy=true", "evictionRequests.rights=true",
		"networkPolicy.enabled=true", "podMonitor.enabled=true", "prometheusRule.enabled=true", "fleetlockServer.enabled=true",
		"fleetlockServer.clients[0].ipBlock.cidr=192.0.2.0/24")
	for _, more := range [][]string{nil, set("policiesOnly=true")} {
		usual, err := h.Template(t.Context(), slices.Concat(all, more)...)
		must(t, err)
		other, err := h.Template(t.Context(), slices.Concat(all, more, set("namespace.name=of-nodes"))...)
		must(t, err)
		for _, pattern := range []string{`namespace: haulout\n`, `serviceaccount:haulout`, `namespace == 'haulout'`, `Leases haulout/`} {
			if regexp.MustCompile(pattern).MatchString(other) {
				t.Errorf("there still is %s", pattern)
			}
		}
		// Back again, it is what it was.
		back := strings.NewReplacer("namespace: of-nodes\n", "namespace: haulout\n", "serviceaccount:of-nodes:", "serviceaccount:haulout:",
			"namespace == 'of-nodes'", "namespace == 'haulout'", "Leases of-nodes/", "Leases haulout/", "name: of-nodes\n", "name: haulout\n").Replace(other)
		before, err := ParseObjects(usual)
		must(t, err)
		after, err := ParseObjects(back)
		must(t, err)
		if changes := after.Changes(before); len(changes) > 0 {
			t.Errorf("not only the namespace changes:\n%s", strings.Join(changes, "\n"))
		}
		if len(after) < 25 {
			t.Errorf("there are only %d objects", len(after))
		}
	}
	if objects := h.objects(t, "--namespace=haulout"); objects["Namespace haulout"] != nil || objects[agents] == nil {
		t.Error("the chart has the namespace that Helm itself creates")
	}
	if objects := h.objects(t, set("namespace.create=false")...); objects["Namespace haulout"] != nil || objects[agents] == nil {
		t.Error("the chart has the namespace, although it should not")
	}
}

// A mistake in the values ends with a message that names it.
func TestHelmRefusesMistakes(t *testing.T) {
	h := newHelm(t)
	for _, r := range []struct {
		args []string
		want []string
	}{
		{set("config.max-unavailble=2"), []string{"/config", "'max-unavailble' not allowed"}},
		{set("policyOnly=true"), []string{"'policyOnly' not allowed"}},
		{set("image.name=x"), []string{"/image", "'name' not allowed"}},
		{set("config.namespace=x"), []string{"/config", "'namespace' not allowed"}},
		{set("config.check=true"), []string{"/config", "'check' not allowed"}},
		{set("config.update=now"), []string{"/config/update", "'off', 'before-drain', 'after-drain'"}},
		{set("config.soak=5d"), []string{"/config/soak", "'5d'"}},
		{set("config.soak=5"), []string{"/config/soak"}},
		{set("config.verbosity=11"), []string{"/config/verbosity", "10"}},
		{set("config.max-unavailable=some"), []string{"/config/max-unavailable", "'some'"}},
		{set("config.max-concurrent=0"), []string{"/config/max-concurrent"}},
		{set("config.wait-volumes=maybe"), []string{"/config/wait-volumes", "true"}},
		{set("config.pool[0]=a"), []string{"/config/pool", "string"}},
		{set("config.window[0].x=a"), []string{"/config/window/0", "string"}},
		{set("config.reboot-method={logind,soft}"), []string{"/config/reboot-method/1", "'kexec'"}},
		{set("config.fleetlock-url=fleetlock.example"), []string{"/config/fleetlock-url"}},
		{set("config.metrics-address="), []string{"/config/metrics-address"}},
		{set("guards=yes"), []string{"/guards", "boolean"}},
		{set("surge.rights=true"), []string{"set surge.policy to true"}},
		{set("evictionRequests.rights=true"), []string{"set evictionRequests.policy to true"}},
		{set("policiesOnly=true", "kubeletCredentials=true"), []string{"policiesOnly and kubeletCredentials exclude each other"}},
		{set("fleetlockServer.enabled=true", "config.max-unavailable=10%"), []string{"10%", "set fleetlockServer.maxUnavailable to a number"}},
		{set("fleetlockServer.enabled=true", "config.max-unavailable=0"), []string{"config.max-unavailable is 0"}},
		{set("fleetlockServer.maxUnavailable=10%"), []string{"/fleetlockServer/maxUnavailable"}},
		{set("fleetlockServer.maxUnavailable=0"), []string{"/fleetlockServer/maxUnavailable"}},
		{set("fleetlockServer.pools={}"), []string{"/fleetlockServer/pools"}},
		{set("fleetlockServer.pools={a b}"), []string{"/fleetlockServer/pools/0", "'a b'"}},
		{set("fleetlockServer.service.type=ExternalName"), []string{"/fleetlockServer/service/type"}},
		{set("fleetlockServer.service.loadBalancerSourceRanges={192.0.2.0/24}"), []string{"only with the type LoadBalancer"}},
		{set("prometheusRule.runbooks=https://wiki.example.com"), []string{"/prometheusRule/runbooks"}},
		{set("prometheusRule.runbooks=a b/"), []string{"/prometheusRule/runbooks"}},
		{set("priorityClass.name="), []string{"set priorityClass.create to false"}},
		{[]string{"--kube-version=1.35.2"}, []string{"Kubernetes v1.35.2", "set policiesOnly to true"}},
		{[]string{"--kube-version=1.29.0", "--set", "policiesOnly=true"}, []string{">=1.30.0"}},
	} {
		t.Run(strings.Join(r.args, " "), func(t *testing.T) {
			t.Parallel()
			output, err := h.Template(t.Context(), r.args...)
			if err == nil {
				t.Fatalf("accepted:\n%s", output)
			}
			for _, want := range r.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message lacks %q: %v", want, err)
				}
			}
		})
	}
	_, err := h.Template(t.Context(), "--kube-version=1.30.0", "--set", "policiesOnly=true")
	must(t, err)
}

// An agent reads the configuration that the chart makes of each example, of all defaults that the schema states, and of the
// options that values.yaml lists as comments.
func TestHelmConfigurationIsRead(t *testing.T) {
	needHaulout(t)
	h := newHelm(t)
	examples, err := h.Examples()
	must(t, err)
	for _, example := range append(examples, allDefaults(t, h), listedOptions(t, h), valuesOfTypes(t)) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			objects := h.objects(t, "--values", example)
			config, flags := "", []string{}
			for key, object := range objects {
				if strings.HasSuffix(key, "/haulout-config") {
					config = at(t, object, "data", "config.yaml").(string)
				}
				if strings.HasPrefix(key, "DaemonSet ") {
					container := at(t, object, "spec", "template", "spec", "containers").([]any)[0]
					for _, flag := range at(t, container, "args").([]any)[4:] { // those that components add
						flags = append(flags, flag.(string))
					}
				}
			}
			if valid, says := isRead(t, config, flags...); !valid {
				t.Errorf("%s\n%s", config, says)
			}
		})
	}
}

// isRead returns whether an agent accepts a configuration, and what it says. It has no cluster, so it must fail.
func isRead(t *testing.T, config string, flags ...string) (bool, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	command := exec.CommandContext(t.Context(), haulout.Path,
		append([]string{"agent", "--check", "--config=" + file, "--kubeconfig=" + file + ".missing"}, flags...)...)
	command.Env = []string{}
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, output)
	}
	return exit.ExitCode() != 2, string(output)
}

// The schema accepts what the agent accepts. It also accepts some values that only the agent can judge.
func TestHelmSchemaIsNoStricterThanTheAgent(t *testing.T) {
	needHaulout(t)
	h := newHelm(t)
	const both, agentOnly, chartOnly, none = "both", "the agent", "the chart", "none"
	for line, accepts := range map[string]string{
		"soak: 0": both, "soak: 1.s": both, "soak: .5s": both, "soak: +5s": both, "soak: 1h30m": both, "soak: 3μs": both,
		"soak: ''": none, "soak: 5": none, "soak: 5d": none, "soak: -5s": none, "soak: [1s]": none,
		"ramp: 1,2,5%,25%": both, "ramp: '05'": both, "ramp: ''": both, "ramp: 5": none, "ramp: 1, 2": none, "ramp: 1,0": chartOnly,
		"reboot-method: logind, systemd": both, "reboot-method: [kexec]": both, "reboot-method: ''": none, "reboot-method: []": none,
		"reboot-method: [logind, soft]": none, "reboot-method: [logind, logind]": chartOnly,
		"max-unavailable: 0%": both, "max-unavailable: 0": both, "max-unavailable: '3'": both, "max-unavailable: ''": none,
		"max-unavailable: 101%": chartOnly, "max-unavailable: -1": none, "max-unavailable: 1.5": none,
		"verbosity: 10": both, "verbosity: '1'": both, "verbosity: 11": none, "verbosity: '11'": chartOnly, "verbosity: true": none,
		"max-concurrent: unlimited": both, "max-concurrent: 1000000": both, "max-concurrent: '7'": both, "max-concurrent: 0": none,
		"wait-volumes: false": both, "wait-volumes: 'true'": both, "wait-volumes: 1": none,
		"update: 'off'": both, "update: off": none, "update: ''": none, "backend: rpm-ostree": both, "backend: ubuntu": none,
		"pool: ''": both, "pool: a": both, "pool: 1": none, "pool-label: ''": both, "pool-label: example.com/a": both, "pool-label: -a": none,
		"pool-label: a b": none, "roll-out-order: label:a": both, "roll-out-order: ''": both, "roll-out-order: 'label:'": none,
		"roll-out-order: alphabet": none, "roll-out-order: 'label:a b'": chartOnly, "sentinel-exit-codes: ''": both,
		"sentinel-exit-codes: 0=no,7=yes\nsentinel-command: x": both, "sentinel-exit-codes: '0'": none, "sentinel-exit-codes: 0=no,0=yes": chartOnly,
		"window: ''": both, "window: []": both, "window: 22:00+4h": both, "window: [22:00+4h, 'cron(0 2 * * 1-5)+3h']": both,
		"window: 22:00+4d": chartOnly, "window: [[a]]": none, "window: {a: b}": none, "hooks-dir: ''": both, "hooks-dir: hooks": none,
		"prometheus-url: HTTP://p": both, "prometheus-url: p": none, "sentinel-command: ''": both, "sentinel-command: []": both,
		"sentinel-command: [/bin/x, 'a b']": both, "sentinel-command: /bin/x 'a b'": both, "sentinel: x": chartOnly,
		"metrics-address: '[::1]:9797'": both, "metrics-address: :9800": both, "metrics-address: localhost": none,
		"soak: null": both, "update: null": both, "window: null": both, "verbosity: ~": both, "wait-volumes: null": both,
		"metrics-address: null": both, "max-unavailable: null": both,
		// Without a port that is known before, the probes of the DaemonSet would fail.
		"metrics-address: ''": agentOnly, "metrics-address: ':0'": agentOnly,
		// Flags of the DaemonSet, which override the file.
		"namespace: a": agentOnly, "host-root: /": agentOnly, "config: /etc/x": none, "check: true": none, "windw: 22:00+4h": none,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			read, says := isRead(t, line+"\n")
			file, err := os.CreateTemp(h.home, "values-*.yaml") // Helm would split a path with commas, as t.TempDir() may have
			must(t, err)
			_, err = fmt.Fprintf(file, "config:\n  %s\n", strings.ReplaceAll(line, "\n", "\n  "))
			must(t, errors.Join(err, file.Close()))
			_, refusal := h.Template(t.Context(), "--values", file.Name())
			got := map[[2]bool]string{{true, true}: both, {true, false}: agentOnly, {false, true}: chartOnly, {false, false}: none}
			if verdict := got[[2]bool{read, refusal == nil}]; verdict != accepts {
				t.Errorf("%s accepts it, not %s\n%s%v", verdict, accepts, says, refusal)
			}
		})
	}
}

// allDefaults writes a file of values with the default of each option.
func allDefaults(t *testing.T, h Helm) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Chart, "values.schema.json"))
	must(t, err)
	var schema map[string]any
	must(t, json.Unmarshal(text, &schema))
	config := map[string]any{}
	options := at(t, schema, "properties", "config", "properties").(map[string]any)
	for name, option := range options {
		if value, ok := option.(map[string]any)["default"]; ok {
			config[name] = value
		}
	}
	if len(options) < 70 || len(config) < 45 {
		t.Errorf("the schema has %d options, %d of them with a default", len(options), len(config))
	}
	return writeValues(t, "all-defaults.yaml", map[string]any{"config": config})
}

// listedOptions writes a file of values with the options that values.yaml lists as comments.
func listedOptions(t *testing.T, h Helm) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Chart, "values.yaml"))
	must(t, err)
	var lines string
	for _, found := range regexp.MustCompile(`(?m)^  #   ([a-z-]+: .*)$`).FindAllStringSubmatch(string(text), -1) {
		lines += found[1] + "\n"
	}
	var config map[string]any
	must(t, yaml.UnmarshalStrict([]byte(lines), &config))
	if len(config) < 70 {
		t.Errorf("values.yaml lists %d options", len(config))
	}
	return writeValues(t, "listed-options.yaml", map[string]any{"config": config})
}

// valuesOfTypes writes a file of values that YAML or Helm could change: large numbers, lists, texts like numbers.
func valuesOfTypes(t *testing.T) string {
	t.Helper()
	return writeValues(t, "types.yaml", map[string]any{"config": map[string]any{
		"max-concurrent": 1000000, "halt-after": 1, "max-unavailable": "3", "soak": 0, "drain-deadline": "3h30m", "update": "off",
		"pool": "010", "window": []string{"Sat,Sun 01:00+6h Europe/Berlin", "cron(0 2 * * 1-5)+3h"}, "blackout": "2026-12-20..2027-01-03",
		"reboot-method": []string{"kexec", "logind"}, "sentinel-command": []string{"/usr/bin/check", "a b"},
		"sentinel-exit-codes": "0=no,1=yes", "wait-volumes": false, "zone-label": "topology.kubernetes.io/zone",
		"roll-out-order": "label:example.com/rank", "pod-rule": "kind:Job=wait-completed=2h", "prometheus-url": "http://p:9090",
		"prometheus-query": `ALERTS{alertstate="firing"} # on`, "canary": "1.5h", "metrics-address": "[::1]:9797", "hooks-dir": "",
	}})
}

func writeValues(t *testing.T, name string, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(values)
	must(t, err)
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, text, 0o600))
	return file
}

// helm lint has nothing to say about the chart, also with each example.
func TestHelmLint(t *testing.T) {
	h := newHelm(t)
	examples, err := h.Examples()
	must(t, err)
	for _, example := range append(examples, filepath.Join(h.Chart, "values.yaml")) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			output, err := h.Run(t.Context(), "lint", "--strict", "--kube-version="+h.version, h.Chart, "--values", example)
			must(t, err)
			if !strings.Contains(output, "1 chart(s) linted, 0 chart(s) failed") {
				t.Error(output)
			}
		})
	}
}
