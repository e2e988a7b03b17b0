package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// AuditEvent is one request in the audit log of the API server.
type AuditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	// The user that the request impersonates; empty: none.
	ImpersonatedUser struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject struct {
		DeleteOptions deleteOptions `json:"deleteOptions"` // of an Eviction
		deleteOptions               // of a deletion, whose body is the options themselves
	} `json:"requestObject"`
	Received time.Time `json:"requestReceivedTimestamp"`
	StageAt  time.Time `json:"stageTimestamp"`
}

type deleteOptions struct {
	GracePeriodSeconds *int64   `json:"gracePeriodSeconds"`
	DryRun             []string `json:"dryRun"`
	Preconditions      *struct {
		UID             *string `json:"uid"`
		ResourceVersion *string `json:"resourceVersion"`
	} `json:"preconditions"`
}

// Resource returns the resource and the subresource, for example "pods/eviction" or "nodes".
func (e AuditEvent) Resource() string {
	if e.ObjectRef.Subresource != "" {
		return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.ObjectRef.Resource
}

// Is returns true if the request is about this resource, as in Is("pods/eviction") or Is("nodes").
func (e AuditEvent) Is(resource string) bool { return e.Resource() == resource }

// IsEviction returns true if the request is an eviction and no dry run, whatever the answer.
func (e AuditEvent) IsEviction() bool {
	return e.Verb == "create" && e.Is("pods/eviction") && len(e.RequestObject.DeleteOptions.DryRun) == 0 &&
		!strings.Contains(e.RequestURI, "dryRun")
}

// Node returns the node of the agent that sent the request: the node that its pod's token is bound to, or that its
// certificate is for.
func (e AuditEvent) Node() string {
	if bound := e.User.Extra["authentication.kubernetes.io/node-name"]; len(bound) > 0 {
		return bound[0]
	}
	node, _ := strings.CutPrefix(e.User.Username, "system:node:")
	return node
}

// Kind returns verb and resource, for example "watch nodes".
func (e AuditEvent) Kind() string { return e.Verb + " " + e.Resource() }

// Accepted returns true if the server carried out the request.
func (e AuditEvent) Accepted() bool {
	return e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
}

// RefusedEviction returns true if the request is an eviction that the server answered with 429, because a budget is
// exhausted.
func (e AuditEvent) RefusedEviction() bool {
	return e.IsEviction() && e.ResponseStatus.Code == http.StatusTooManyRequests
}

// AuditLog reads the growing log of one API server. The server writes an entry before it sends the answer.
type AuditLog struct {
	path string

	mu     sync.Mutex
	offset int64
	byID   map[string]int
	events []AuditEvent
}

// NewAuditLog returns the log in this file, which need not exist yet.
func NewAuditLog(path string) *AuditLog { return &AuditLog{path: path, byID: map[string]int{}} }

// Of returns the requests of a user in order of arrival, each once, although a watch has an entry at its start and one
// at its end.
func (a *AuditLog) Of(user string) ([]AuditEvent, error) {
	return a.Select(func(e AuditEvent) bool { return e.User.Username == user })
}

// Select returns the requests for which the predicate returns true.
func (a *AuditLog) Select(wanted func(AuditEvent) bool) ([]AuditEvent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.read(); err != nil {
		return nil, err
	}
	var found []AuditEvent
	for _, e := range a.events {
		if wanted(e) {
			found = append(found, e)
		}
	}
	return found, nil
}

// read reads only complete lines, because the server may be writing the last one.
func (a *AuditLog) read() error {
	file, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return nil
		}
		var event AuditEvent
		if err := json.Unmarshal(data[:end], &event); err != nil {
			return err
		}
		if index, known := a.byID[event.AuditID]; known {
			a.events[index] = event
		} else {
			a.byID[event.AuditID] = len(a.events)
			a.events = append(a.events, event)
		}
		a.offset += int64(end) + 1
		data = data[end+1:]
	}
}
