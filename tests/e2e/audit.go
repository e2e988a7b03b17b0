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

// AuditEvent is one request as the API server saw it.
type AuditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	// On whose behalf the user asked; empty: on its own.
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

// Resource is, for instance, "pods/eviction" or "nodes".
func (e AuditEvent) Resource() string {
	if e.ObjectRef.Subresource != "" {
		return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.ObjectRef.Resource
}

// Is tells the resource, as in Is("pods/eviction") or Is("nodes").
func (e AuditEvent) Is(resource string) bool { return e.Resource() == resource }

// IsEviction tells an eviction that means it, whatever came of it.
func (e AuditEvent) IsEviction() bool {
	return e.Verb == "create" && e.Is("pods/eviction") && len(e.RequestObject.DeleteOptions.DryRun) == 0 &&
		!strings.Contains(e.RequestURI, "dryRun")
}

// Node is the node of the agent that asked: the one that its pod's token is bound to, or that its certificate is for.
func (e AuditEvent) Node() string {
	if bound := e.User.Extra["authentication.kubernetes.io/node-name"]; len(bound) > 0 {
		return bound[0]
	}
	node, _ := strings.CutPrefix(e.User.Username, "system:node:")
	return node
}

// Kind is verb and resource in short, as in "watch nodes".
func (e AuditEvent) Kind() string { return e.Verb + " " + e.Resource() }

// Accepted tells that the server did what was asked.
func (e AuditEvent) Accepted() bool {
	return e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
}

// RefusedEviction tells an eviction that the server answered with 429: a budget is closed.
func (e AuditEvent) RefusedEviction() bool {
	return e.IsEviction() && e.ResponseStatus.Code == http.StatusTooManyRequests
}

// AuditLog reads the growing log of one API server. The server writes an event before it sends the answer.
type AuditLog struct {
	path string

	mu     sync.Mutex
	offset int64
	byID   map[string]int
	events []AuditEvent
}

// NewAuditLog does not need the file to exist yet.
func NewAuditLog(path string) *AuditLog { return &AuditLog{path: path, byID: map[string]int{}} }

// Of returns the requests of a user, each once (a watch is written at its start and at its end), in order of arrival.
func (a *AuditLog) Of(user string) ([]AuditEvent, error) {
	return a.Select(func(e AuditEvent) bool { return e.User.Username == user })
}

// Select returns the requests that satisfy a predicate.
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

// read takes in whole lines only: the last one may be half written.
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
