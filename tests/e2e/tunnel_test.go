package e2e

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// The API server has a name that only the proxy knows, so every request that arrives has come through the proxy.
// kubectl shows that the proxy works.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "socks5"} {
		for _, tool := range []Tool{cluster.Kubectl(), haulout} {
			t.Run(scheme+" "+tool.Name, func(t *testing.T) {
				t.Parallel()
				if tool == haulout {
					needHaulout(t)
				}
				w := smallWorld(t, Deployment("web", 2))
				drainThroughTunnel(t, w, scheme, tool)
			})
		}
	}
}

func drainThroughTunnel(t *testing.T, w *World, scheme string, tool Tool) {
	proxy, err := StartTunnelProxy(scheme, w.URL)
	must(t, err)
	t.Cleanup(proxy.Stop)
	server, err := url.Parse(w.URL)
	must(t, err)
	identity, err := w.CA.Client(w.User, "system:masters")
	must(t, err)
	access := w.Access(identity)
	hidden := "kubernetes.default.svc:" + server.Port()
	access.Server = "https://" + hidden
	access.ProxyURL = proxy.URL(true)
	kubeconfig, err := access.Write(w.Home)
	must(t, err)
	run, err := w.StartWith(t.Context(), kubeconfig, tool, "drain", w.Node("old"), "--timeout=2m")
	must(t, err)
	result, err := run.Wait()
	must(t, err)
	compare(t, outcome{done: true, evicted: "web=2", cordoned: "old"}, observe(t, w, result))
	asked := proxy.Asked()
	if len(asked) == 0 || slices.ContainsFunc(asked, func(name string) bool { return name != hidden }) {
		t.Errorf("the proxy was asked for %q, not for %s\n%s", asked, hidden, result.Stderr)
	}

	access.ProxyURL = proxy.URL(false)
	kubeconfig, err = access.Write(w.Home)
	must(t, err)
	run, err = w.StartWith(t.Context(), kubeconfig, tool, "uncordon", w.Node("old"))
	must(t, err)
	result, err = run.Wait()
	must(t, err)
	if result.Exit == 0 {
		t.Error("it went through without the password of the proxy")
	}
	if tool == haulout && !strings.Contains(result.Stderr, "proxy-url") {
		t.Errorf("what to do about the proxy is not said:\n%s", result.Stderr)
	}
}
