package e2e

import (
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// Proxy stands between a tool and the API server, on TCP: it cannot read what it carries, only cut, hold and slow it.
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

// link is one connection, with its other half once there is one.
type link struct {
	near, far net.Conn
	dead      bool // swallows everything and says nothing, but does not end
	cut       bool
	used      bool // the client has sent something
}

// StartProxy serves on a free port until Stop.
func StartProxy(target string) (*Proxy, error) { return StartProxyAt("127.0.0.1:0", target) }

// StartProxyAt is StartProxy with an address and port of its own.
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

// Stop ends it with all of its connections.
func (p *Proxy) Stop() {
	p.listener.Close()
	p.set(func() { p.ended = true })
	p.Cut()
}

// Cut resets every connection that there is.
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

// Stall holds back every byte, of new connections too, which are accepted; Resume lets them go on.
func (p *Proxy) Stall()  { p.set(func() { p.stalled = true }) }
func (p *Proxy) Resume() { p.set(func() { p.stalled = false }) }

// Bury makes the connections that there are silent for ever; new ones are well.
func (p *Proxy) Bury() {
	p.set(func() {
		for l := range p.links {
			l.dead = true
		}
	})
}

// Slow holds every kilobyte up for as long.
func (p *Proxy) Slow(perKilobyte time.Duration) { p.set(func() { p.slowness = perKilobyte }) }

// Accepted is how many connections there have been.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Used is how many connections there have been over which the client sent something. A client that tries several addresses
// at once closes all connections but one unused.
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

// copy moves a kilobyte at a time, as long as both ends live; the end of one is the end of the other.
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
			// The end of a connection is news, too, and comes no faster.
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

// mayPass waits for as long as nothing may; false when the connection has been cut.
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

// reset makes the other side see RST, as from a host that has forgotten the connection.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	connection.Close()
}
