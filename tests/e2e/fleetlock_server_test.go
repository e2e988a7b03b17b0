package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const fleetLockName = "haulout-fleetlock"

// The shipped manifests give the FleetLock server what it needs, and nothing with which it could take the slot of a node
// away or make one up.
func expectMachinesServed(t *testing.T, in *Installed) {
	shipped, err := manifests()
	must(t, err)
	dir := filepath.Join(shipped, "fleetlock-server")
	_, err = in.AdminKubectl(t.Context(), "apply", "-k", dir, "--validate=strict")
	must(t, err)
	defer func() {
		_, err := in.AdminKubectl(t.Context(), "delete", "-k", dir, "--wait=false")
		must(t, err)
	}()
	expectTypeChecked(t, in)

	answer, err := in.Client.CoreV1().ServiceAccounts(agentName).CreateToken(t.Context(), fleetLockName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	by := &AgentToken{cluster: in.Cluster, token: answer.Status.Token, client: clientOf(in.CA)}
	in.awaitMachinePolicy(t, by)

	access, err := Access{Server: in.URL, CA: in.CA.PEM, Token: by.token}.Write(in.Dir)
	must(t, err)
	server, err := startProcess(in.Dir, "fleetlock-serve", haulout.Path, "fleetlock-serve", "--kubeconfig", access,
		"--listen", "127.0.0.1:0", "--log-format=json", "--pool=machines")
	must(t, err)
	defer server.kill()
	url := servedAt(t, server)
	for _, step := range []struct {
		path, id string
		status   int
	}{
		{"pre-reboot", "m1", 200}, {"pre-reboot", "m1", 200}, {"pre-reboot", "m2", 423}, {"steady-state", "m2", 200},
		{"pre-reboot", "m2", 423}, {"steady-state", "m1", 200}, {"pre-reboot", "m2", 200},
	} {
		if status, body := ask(t, url+"/v1/"+step.path, step.id); status != step.status {
			t.Errorf("%s %s: %d, want %d: %s", step.path, step.id, status, step.status, body)
		}
	}
	leases := in.Client.CoordinationV1().Leases(agentName)
	lease, err := leases.Get(t.Context(), "haulout-machines-0", getOptions)
	must(t, err)
	if *lease.Spec.HolderIdentity != "outside machine m2/fleetlock" || len(lease.OwnerReferences) > 0 {
		t.Errorf("the Lease is %+v", lease)
	}
	if status, body := ask(t, url+"/v1/steady-state", "m2"); status != 200 {
		t.Errorf("the slot is not released: %d %s", status, body)
	}
	if _, err := leases.Get(t.Context(), "haulout-machines-0", getOptions); err == nil {
		t.Errorf("the Lease is still there")
	}

	// Agents that look whether the holder of a slot is degraded ask for its Node. There is none.
	in.tryAll(t, []attempt{{"no Node", in.Own, get("/api/v1/nodes/outside%20machine%20m1"), http.StatusNotFound}})
	in.tryAll(t, []attempt{{"take a slot of a node", in.Own, post(leasesPath, in.Own.slot("haulout-default-7")), 201}})
	in.tryAll(t, machineAttacks(by, in.Own))
	in.tryAll(t, []attempt{{"give it back", in.Own, remove(leasesPath+"/haulout-default-7", ""), 200}})
}

// machineAttacks returns requests of the server's ServiceAccount that must be refused. The Node of `agent` holds the slot
// haulout-default-7.
func machineAttacks(by, agent *AgentToken) (attempts []attempt) {
	lease := func(name, metadata, holder string) Request {
		return post(leasesPath+"?dryRun=All", fmt.Sprintf(`{"metadata":{"name":%q,%s},"spec":{"holderIdentity":%q}}`,
			name, metadata, holder))
	}
	const machine, name, good = "outside machine m1/fleetlock", "haulout-default-8", `"labels":{"haulout.dev/pool":"default"}`
	for _, holder := range []string{
		agent.Holder(), "", "m1", "outside machine ", "outside machine a b/fleetlock",
		"outside machine " + strings.Repeat("x", 129) + "/fleetlock",
	} {
		attempts = append(attempts, denied("holder", by, lease(name, good, holder)))
	}
	for _, wrong := range []string{"leader", "haulout-default-08", "haulout-default-10000", "haulout-other-0"} {
		attempts = append(attempts, denied("name", by, lease(wrong, good, machine)))
	}
	for _, metadata := range []string{
		good + `,"finalizers":["x/y"]`, good + `,"annotations":{"x":"y"}`, `"labels":{"haulout.dev/pool":"default","x":"y"}`,
		`"labels":{}`, good + `,"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]`,
	} {
		attempts = append(attempts, denied("form", by, lease(name, metadata, machine)))
	}
	for _, fields := range longFields("coordination.k8s.io/v1", "f:spec") {
		attempts = append(attempts, denied("managedFields", by, lease(name, good+`,"managedFields":`+fields, machine)))
	}
	slot := leasesPath + "/haulout-default-7"
	return append(attempts,
		denied("release a node", by, remove(slot, "")),
		denied("release all", by, remove(leasesPath, "")),
		denied("change", by, patch(slot, `{"spec":{"holderIdentity":"`+machine+`"}}`)),
		denied("elsewhere", by, post("/apis/coordination.k8s.io/v1/namespaces/default/leases",
			`{"metadata":{"name":"haulout-default-8",`+good+`},"spec":{"holderIdentity":"`+machine+`"}}`)),
		denied("nodes", by, get("/api/v1/nodes")),
		denied("secrets", by, get("/api/v1/namespaces/haulout/secrets")))
}

// awaitMachinePolicy returns when the API server enforces the policy, which it has just learned.
func (in *Installed) awaitMachinePolicy(t *testing.T, by *AgentToken) {
	t.Helper()
	must(t, Until(t.Context(), "the policy of the FleetLock server is in force", func() (bool, error) {
		code, status, err := by.Send(t.Context(), post(leasesPath+"?dryRun=All", `{"metadata":{"name":"leader"}}`))
		if err != nil || code != http.StatusForbidden {
			return false, err
		}
		return strings.Contains(status.Message, "haulout-machine-slots"), fmt.Errorf("%s", status.Message)
	}))
}

// servedAt returns the URL of the server, whose first line of the log has the port.
func servedAt(t *testing.T, server *process) string {
	t.Helper()
	var line struct{ Port string }
	must(t, Until(t.Context(), "the server listens", func() (bool, error) {
		log, err := os.Open(server.logPath)
		if err != nil {
			return false, err
		}
		defer log.Close()
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Port != "" {
				return true, nil
			}
		}
		return false, fmt.Errorf("%s", server.logTail())
	}))
	return "http://127.0.0.1:" + line.Port
}

// ask sends a request of the FleetLock protocol for the pool machines.
func ask(t *testing.T, url, id string) (int, string) {
	t.Helper()
	body := strings.NewReader(`{"client_params":{"id":"` + id + `","group":"machines"}}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	must(t, err)
	request.Header.Set("fleet-lock-protocol", "true")
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(text)
}
