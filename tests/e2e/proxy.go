package e2e

import (
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// Proxy forwards TCP connections between a tool and the API server. It can reset, delay and silence them, but cannot
// read their content, which is encrypted.
type Proxy struct {
	URL string

	listener net.Listener
	target   string

	mu       sync.Mutex
	changed  *sync.Cond
	stalled  bool
	slowness time.Duration
	links    map[*link]struct{}
	accepted int
	used     int
	ended    bool
}

// link is one connection of a client, and the connection to the server that belongs to it.
type link struct {
	near, far net.Conn
	dead      bool // receives everything and delivers nothing, but does not close
	cut       bool
	used      bool // the client has sent something
}

// StartProxy starts a proxy on a free port. It serves until Stop.
func StartProxy(target string) (*Proxy, error) { return StartProxyAt("127.0.0.1:0", target) }

// StartProxyAt is StartProxy with this address and port.
func StartProxyAt(address, target string) (*Proxy, error) {
	server, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		URL: "https://" + listener.Addr().String(), listener: listener, target: server.Host, links: map[*link]struct{}{},
	}
	p.changed = sync.NewCond(&p.mu)
	go p.serve()
	return p, nil
}

// Stop ends the proxy and all of its connections.
func (p *Proxy) Stop() {
	p.listener.Close()
	p.set(func() { p.ended = true })
	p.Cut()
}

// Cut resets every connection.
func (p *Proxy) Cut() {
	p.set(func() {
		for l := range p.links {
			l.cut = true
			reset(l.near)
			if l.far != nil {
				l.far.Close()
			}
		}
	})
}

// Stall holds back every byte, also of new connections, which are accepted. Resume lets all bytes pass again.
func (p *Proxy) Stall()  { p.set(func() { p.stalled = true }) }
func (p *Proxy) Resume() { p.set(func() { p.stalled = false }) }

// Bury makes the existing connections silent for ever. New connections work.
func (p *Proxy) Bury() {
	p.set(func() {
		for l := range p.links {
			l.dead = true
		}
	})
}

// Slow delays every kilobyte by this time.
func (p *Proxy) Slow(perKilobyte time.Duration) { p.set(func() { p.slowness = perKilobyte }) }

// Accepted returns the number of connections so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Used returns the number of connections on which the client has sent something. A client that tries several addresses
// at the same time closes all of these connections but one without using them.
func (p *Proxy) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

func (p *Proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := &link{near: near}
		p.set(func() {
			p.links[l] = struct{}{}
			p.accepted++
		})
		go p.carry(l)
	}
}

func (p *Proxy) carry(l *link) {
	defer p.set(func() { delete(p.links, l) })
	defer l.near.Close()
	if !p.mayPass(l) {
		return
	}
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(l.near)
		return
	}
	defer far.Close()
	p.set(func() { l.far = far })
	done := make(chan struct{})
	go func() {
		p.copy(l, far, l.near)
		close(done)
	}()
	p.copy(l, l.near, far)
	<-done
}

// copy forwards up to one kilobyte at a time in one direction. When one of the two connections ends, it closes both.
func (p *Proxy) copy(l *link, to, from net.Conn) {
	buffer := make([]byte, 1024)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if from == l.near && !l.used {
				l.used = true
				p.set(func() { p.used++ })
			}
			if !p.mayPass(l) {
				break
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			// The end of a connection is delayed like its bytes.
			p.mayPass(l)
			if err != io.EOF {
				reset(to)
			}
			break
		}
	}
	to.Close()
	from.Close()
}

// mayPass waits while the proxy holds back this connection, and then for the delay of Slow. It returns false if the
// connection was cut.
func (p *Proxy) mayPass(l *link) bool {
	p.mu.Lock()
	for (p.stalled || l.dead) && !l.cut && !p.ended {
		p.changed.Wait()
	}
	wait, open := p.slowness, !l.cut && !p.ended
	p.mu.Unlock()
	if open && wait > 0 {
		time.Sleep(wait)
	}
	return open
}

// reset closes a connection with RST, as a host does that does not know the connection.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	connection.Close()
}
