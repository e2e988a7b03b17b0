package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhook is an admission webhook for evictions. It denies those of pods whose name begins with `denies`, unless that
// is empty, and calls `admitted` for the others.
type webhook struct {
	denies   atomic.Pointer[string]
	denials  atomic.Int64
	admitted atomic.Pointer[func(pod string)]

	identity tls.Certificate
	address  string
	server   *http.Server
}

func (h *webhook) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(answer, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if prefix := *h.denies.Load(); prefix != "" && strings.HasPrefix(review.Request.Name, prefix) {
		response.Allowed = false
		response.Result = &metav1.Status{Message: "the database is being backed up"}
		h.denials.Add(1)
	} else if tell := h.admitted.Load(); tell != nil {
		(*tell)(review.Request.Name)
	}
	review.Request, review.Response = nil, response
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(review)
}

// up starts the webhook, on the port that it had before, if it ran before.
func (h *webhook) up(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", h.address)
	must(t, err)
	h.address = listener.Addr().String()
	h.server = &http.Server{Handler: h}
	config := &tls.Config{Certificates: []tls.Certificate{h.identity}}
	go func() { _ = h.server.Serve(tls.NewListener(listener, config)) }()
}

func (h *webhook) down() { h.server.Close() }

func startWebhook(t *testing.T, w *World, denies string) *webhook {
	t.Helper()
	serving, err := w.CA.Serving("localhost")
	must(t, err)
	h := &webhook{address: "127.0.0.1:0"}
	h.denies.Store(&denies)
	h.identity, err = tls.X509KeyPair(serving.Cert, serving.Key)
	must(t, err)
	h.up(t)
	t.Cleanup(func() { h.down() })

	where := "https://" + h.address + "/"
	haveEvictionsJudged(t, w, admissionregistrationv1.WebhookClientConfig{URL: &where, CABundle: w.CA.PEM})
	return h
}

// haveEvictionsJudged makes the API server ask this webhook about evictions in the namespace of this world.
func haveEvictionsJudged(t *testing.T, w *World, where admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	seconds := int32(5)
	hooks := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "evictions.e2e.invalid",
			ClientConfig: where,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"},
				},
			}},
			NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.Name},
			},
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = hooks.Delete(context.Background(), w.Name, metav1.DeleteOptions{}) })
}

// inForce sends dry runs of evictions until the webhook denies one, which shows that the server asks it.
func (h *webhook) inForce(t *testing.T, w *World, pod string) {
	t.Helper()
	must(t, Until(t.Context(), "the webhook is in force", func() (bool, error) {
		err := w.Client.CoreV1().Pods(w.Name).EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: pod, Namespace: w.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		return err != nil && !apierrors.IsTooManyRequests(err), err
	}))
	h.denials.Store(0)
}

// A webhook denies the evictions of some pods, then does not run, and then runs again and admits all evictions. The
// drain evicts the pods that the webhook does not deny at once, and the others after it has begun to admit them.
func TestWebhookDeniesIsDownComesBack(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), StatefulSet("db", 3), Deployment("web", 3)))
	must(t, w.Settle(t.Context(), 6))
	must(t, w.AddNode(t.Context(), "new", "new"))
	h := startWebhook(t, w, "db-")
	h.inForce(t, w, "db-0")

	drain := startThrough(t, w, w.Kubeconfig)
	goneAtLeast(t, w, 3)
	must(t, Until(t.Context(), "every database has been denied", func() (bool, error) { return h.denials.Load() >= 3, nil }))
	h.down()
	awaitRefusal(t, w, http.StatusInternalServerError)
	for _, pod := range w.Kubelets.Pods(w.Name) {
		if pod.App == "db" && pod.Evicted {
			t.Errorf("%s was evicted against the webhook", pod.Name)
		}
	}
	nobody := ""
	h.denies.Store(&nobody)
	h.up(t)
	back := time.Now()
	expectEvicted(t, w, drain, "db=3 web=3")
	t.Logf("drained %.1f s after the webhook came back", time.Since(back).Seconds())
}

// The webhook is a Service that does not exist. The server's error names it, and so does the diagnosis.
func TestWebhookWithoutItsService(t *testing.T) {
	t.Parallel()
	needHaulout(t)
	w := newWorld(t)
	must(t, w.AddNode(t.Context(), "old", "old"))
	must(t, w.Apply(t.Context(), Deployment("web", 2)))
	must(t, w.Settle(t.Context(), 2))
	path := "/judge"
	haveEvictionsJudged(t, w, admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: w.Name, Name: "guard", Path: &path},
		CABundle: w.CA.PEM,
	})
	must(t, Until(t.Context(), "the webhook is in force", func() (bool, error) {
		err := w.Client.CoreV1().Pods(w.Name).EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: "nobody", Namespace: w.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		return apierrors.IsInternalError(err), nil
	}))

	report, err := run(t, w, 1, haulout, "drain", w.Node("old"), "--settle=0", "--timeout=25s", "-o", "json").Report()
	must(t, err)
	if len(report.Diagnoses) != 1 || report.Diagnoses[0].Code != "WebhookDown" ||
		!strings.Contains(report.Diagnoses[0].Message, "its Service "+w.Name+"/guard does not exist") {
		t.Errorf("diagnoses %+v", report.Diagnoses)
	}
}
