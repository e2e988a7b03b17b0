package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	agentName      = "haulout" // name of the namespace, the ServiceAccount and the DaemonSet in the manifests
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// AgentToken sends raw requests with the token of an agent. The answers of the API server show what a thief could do
// with that token.
type AgentToken struct {
	Node, NodeUID string

	cluster *Cluster
	token   string
	as      string // the user to impersonate, or empty
	client  *http.Client
}

// AgentToken issues a token that is bound to the agent's pod, or, if pod is nil, one that is not bound to any object.
func (c *Cluster) AgentToken(ctx context.Context, pod *corev1.Pod) (*AgentToken, error) {
	request := &authenticationv1.TokenRequest{}
	agent := &AgentToken{cluster: c}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
		}
		node, err := c.Client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, getOptions)
		if err != nil {
			return nil, err
		}
		agent.Node, agent.NodeUID = node.Name, string(node.UID)
	}
	answer, err := c.Client.CoreV1().ServiceAccounts(agentName).CreateToken(ctx, agentName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	agent.token = answer.Status.Token
	agent.client = clientOf(c.CA)
	return agent, nil
}

// clientOf returns an HTTP client that trusts this authority and has no client certificate.
func clientOf(ca *Authority) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// WriteTo writes the token to a file and returns, as a kubelet does for a pod. Until the context ends, the file gets a
// new token that is bound to the same pod every two seconds.
func (a *AgentToken) WriteTo(ctx context.Context, pod *corev1.Pod, path string) error {
	write := func(token string) error {
		next := path + ".next"
		if err := os.WriteFile(next, []byte(token), 0o600); err != nil {
			return err
		}
		return os.Rename(next, path)
	}
	if err := write(a.token); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(2 * time.Second):
			}
			if next, err := a.cluster.AgentToken(ctx, pod); err == nil {
				_ = write(next.token)
			}
		}
	}()
	return nil
}

// KubeletOf returns a sender of requests that has no token: it identifies itself by a new client certificate of the
// node's kubelet.
func (c *Cluster) KubeletOf(node string) (*AgentToken, error) {
	identity, err := c.CA.Client("system:node:"+node, "system:nodes")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(identity.Cert, identity.Key)
	if err != nil {
		return nil, err
	}
	client := clientOf(c.CA)
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{certificate}
	return &AgentToken{Node: node, cluster: c, client: client}, nil
}

// As returns a copy with the same token, whose requests impersonate the kubelet of this node.
func (a *AgentToken) As(node string) *AgentToken {
	other := *a
	other.as = "system:node:" + node
	return &other
}

// Holder returns what a Lease has as its holder when this agent's node has the slot.
func (a *AgentToken) Holder() string { return a.Node + "/" + a.NodeUID }

// Request is one request. Its body is JSON.
type Request struct {
	Method, Path, Type, Body string
}

func get(path string) Request { return Request{Method: http.MethodGet, Path: path} }

func post(path, body string) Request {
	return Request{Method: http.MethodPost, Path: path, Type: "application/json", Body: body}
}

func patch(path, body string) Request {
	return Request{Method: http.MethodPatch, Path: path, Type: mergePatch, Body: body}
}

// apply returns a server-side apply, which creates the object if it does not exist. The body is JSON without apiVersion
// and kind.
func apply(path, apiVersion, kind, name, body string) Request {
	object := map[string]any{}
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		panic(err)
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = name
	object["apiVersion"], object["kind"], object["metadata"] = apiVersion, kind, metadata
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return Request{Method: http.MethodPatch, Path: path + "?fieldManager=thief&force=true", Type: applyPatch, Body: string(text)}
}

func remove(path, body string) Request {
	return Request{Method: http.MethodDelete, Path: path, Type: "application/json", Body: body}
}

// Send returns the status code and, if the request failed, the server's Status. Unknown fields in the answer are
// errors.
func (a *AgentToken) Send(ctx context.Context, r Request) (int, *metav1.Status, error) {
	code, _, status, err := a.exchange(ctx, r)
	return code, status, err
}

// HeadersOf returns the headers of the answer to a GET.
func (a *AgentToken) HeadersOf(ctx context.Context, path string) (http.Header, error) {
	_, headers, _, err := a.exchange(ctx, get(path))
	return headers, err
}

func (a *AgentToken) exchange(ctx context.Context, r Request) (int, http.Header, *metav1.Status, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, a.cluster.URL+r.Path, bytes.NewBufferString(r.Body))
	if err != nil {
		return 0, nil, nil, err
	}
	if r.Method != http.MethodGet {
		query := request.URL.Query()
		query.Set("fieldValidation", "Strict")
		request.URL.RawQuery = query.Encode()
	}
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	if r.Type != "" {
		request.Header.Set("Content-Type", r.Type)
	}
	if a.as != "" {
		request.Header.Set("Impersonate-User", a.as)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, nil, err
	}
	status := &metav1.Status{}
	if response.StatusCode >= 300 {
		if err := json.Unmarshal(body, status); err != nil {
			return 0, nil, nil, fmt.Errorf("%s %s: %d, and no Status: %s", r.Method, r.Path, response.StatusCode, body)
		}
	}
	return response.StatusCode, response.Header, status, nil
}
