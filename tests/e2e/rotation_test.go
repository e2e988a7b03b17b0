package e2e

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// put replaces a file by renaming, as programs do that rotate credentials: a reader never sees half of it.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path+".next", content, 0o600))
	must(t, os.Rename(path+".next", path))
}

// blockedDrain starts a drain, and returns when the drain waits for a budget that allows no disruption.
func blockedDrain(t *testing.T, w *World, access Access) *Run {
	t.Helper()
	kubeconfig, err := access.Write(w.Home)
	must(t, err)
	drain := startThrough(t, w, kubeconfig)
	must(t, blocked(t.Context(), w))
	return drain
}

// boundToken returns a token of the world's ServiceAccount that is valid as long as the Secret of that name exists.
func boundToken(t *testing.T, w *World, name string) []byte {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	secret, err := w.Client.CoreV1().Secrets(w.Name).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
	request := &authenticationv1.TokenRequest{}
	request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
		Kind: "Secret", APIVersion: "v1", Name: name, UID: secret.UID,
	}
	token, err := w.Client.CoreV1().ServiceAccounts(w.Name).CreateToken(t.Context(), "drainer", request, metav1.CreateOptions{})
	must(t, err)
	return []byte(token.Status.Token)
}

// A token is revoked before the next one is written. The drain waits for the next one.
func TestTokenRotates(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	access := serviceAccount(t, w, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	w.User = "system:serviceaccount:" + w.Name + ":drainer"
	access.Token, access.TokenFile = "", filepath.Join(w.Home, "token")
	first := boundToken(t, w, "first")
	put(t, access.TokenFile, first)
	drain := blockedDrain(t, w, access)

	must(t, w.Client.CoreV1().Secrets(w.Name).Delete(t.Context(), "first", metav1.DeleteOptions{}))
	old := &AgentToken{cluster: cluster, token: string(first), client: clientOf(w.CA)}
	must(t, Until(t.Context(), "the token is worth nothing", func() (bool, error) {
		code, _, err := old.Send(t.Context(), get("/api/v1/nodes"))
		return code == http.StatusUnauthorized, err
	}))
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	awaitRefusal(t, w, http.StatusUnauthorized)
	put(t, access.TokenFile, boundToken(t, w, "second"))
	expectEvicted(t, w, drain, "web=2")
}

// A client certificate expires before the next one is written. The drain waits for the next one.
func TestClientCertificateRotates(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	access := w.Access(Identity{})
	access.CertFile, access.KeyFile = filepath.Join(w.Home, "client.crt"), filepath.Join(w.Home, "client.key")
	end := time.Now().Add(12 * time.Second)
	install := func(end time.Time) {
		identity, err := w.CA.ClientUntil(end, w.User, "system:masters", RunGroup)
		must(t, err)
		put(t, access.KeyFile, identity.Key)
		put(t, access.CertFile, identity.Cert)
	}
	install(end)
	drain := blockedDrain(t, w, access)
	lasts(t, time.Until(end)+time.Second)
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	awaitRefusal(t, w, http.StatusUnauthorized)
	install(time.Now().Add(time.Hour))
	expectEvicted(t, w, drain, "web=2")
}

// The server gets a certificate of another authority, whose own certificate the drain's CA file gets only later. The
// drain waits for it.
func TestAuthorityRotates(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := smallWorld(t, Deployment("web", 2), Budget("web", "0"))
	proxy, err := StartProxy(w.URL)
	must(t, err)
	t.Cleanup(proxy.Stop)
	identity, err := w.CA.Client(w.User, "system:masters", RunGroup)
	must(t, err)
	access := Access{
		Server: proxy.URL, TLSServerName: rotatingName, CAFile: filepath.Join(w.Home, "ca.crt"), Identity: identity,
	}
	put(t, access.CAFile, w.CA.PEM)
	drain := blockedDrain(t, w, access)

	next, err := NewAuthority("haulout-e2e-next-ca")
	must(t, err)
	serving, err := next.Serving(rotatingName)
	must(t, err)
	put(t, w.path("rotating.key"), serving.Key)
	put(t, w.path("rotating.crt"), serving.Cert)
	address, err := url.Parse(w.URL)
	must(t, err)
	must(t, UntilWithin(t.Context(), 90*time.Second, "the server shows its next certificate", func() (bool, error) {
		shown, err := tls.Dial("tcp", address.Host, &tls.Config{ServerName: rotatingName, InsecureSkipVerify: true})
		if err != nil {
			return false, err
		}
		defer shown.Close()
		return shown.ConnectionState().PeerCertificates[0].Issuer.CommonName == "haulout-e2e-next-ca", nil
	}))
	proxy.Cut()
	before := proxy.Accepted()
	must(t, Until(t.Context(), "the drain has met the certificate", func() (bool, error) {
		return proxy.Accepted() >= before+3, nil
	}))
	must(t, w.SetBudget(t.Context(), "web", "100%"))
	put(t, access.CAFile, next.PEM)
	expectEvicted(t, w, drain, "web=2")
}
