package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"
)

// The servers that a test may kill, but only in a control plane that no other test uses.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
)

// These servers end by themselves when their API server ends. In a real cluster a supervisor starts them again.
var supervised = map[string]bool{"kube-controller-manager": true, "kube-scheduler": true}

// Supervise starts the servers in `supervised` again when they have ended. It returns when the context ends.
func (c *ControlPlane) Supervise(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
		for name := range supervised {
			_ = c.replace(name, func(old *process) (*process, error) {
				if !old.exited() || ctx.Err() != nil {
					return old, nil
				}
				return old.again()
			})
		}
	}
}

// replace replaces a server by what `next` returns for it.
func (c *ControlPlane) replace(name string, next func(*process) (*process, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, old := range c.processes {
		if old.name != name {
			continue
		}
		p, err := next(old)
		if err == nil {
			c.processes[i] = p
		}
		return err
	}
	return fmt.Errorf("no %s runs here", name)
}

// server returns the latest process of the server with this name, which may have ended, or nil if there was none.
func (c *ControlPlane) server(name string) *process {
	for _, p := range c.running() {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Kill sends SIGKILL and returns when the server has ended.
func (c *ControlPlane) Kill(name string) error {
	return c.replace(name, func(old *process) (*process, error) {
		old.kill()
		return old, nil
	})
}

// Restart starts a server that was killed, and returns when the API answers again.
func (c *ControlPlane) Restart(ctx context.Context, name string) error {
	if err := c.replace(name, (*process).again); err != nil {
		return err
	}
	return c.waitForDespite(ctx, "the API server is ready again", supervised, c.apiServerReady)
}

// Succeed sends SIGTERM to the API server and starts another one as soon as the first has closed its listening socket.
// The first one continues to serve its open watches for up to a minute.
func (c *ControlPlane) Succeed(ctx context.Context) error {
	address, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	closed := func() (bool, error) {
		connection, err := net.DialTimeout("tcp", address.Host, time.Second)
		if err == nil {
			connection.Close()
		}
		return err != nil, nil
	}
	err = c.replace(apiServer, func(old *process) (*process, error) {
		if err := old.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return nil, err
		}
		if err := Until(ctx, "the old API server has closed its listener", closed); err != nil {
			return nil, err
		}
		if old.exited() {
			return nil, fmt.Errorf("the old API server had no watch left to serve")
		}
		c.retired = append(c.retired, old)
		return old.again()
	})
	if err != nil {
		return err
	}
	return c.waitForDespite(ctx, "the new API server is ready", supervised, c.apiServerReady)
}
