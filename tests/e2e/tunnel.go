package e2e

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// TunnelProxy is an HTTP or SOCKS5 proxy that accepts one user. For every request it connects to the same server, and
// records which name the client wanted to connect to.
type TunnelProxy struct {
	listener net.Listener
	scheme   string
	user     *url.Userinfo
	target   string

	mu    sync.Mutex
	asked []string
}

// StartTunnelProxy starts a proxy on a free port. It serves until Stop. scheme is "http" or "socks5".
func StartTunnelProxy(scheme, target string) (*TunnelProxy, error) {
	address, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &TunnelProxy{listener: listener, scheme: scheme, user: url.UserPassword("me", "p@ss"), target: address.Host}
	go p.serve()
	return p, nil
}

// Stop ends the proxy for new connections.
func (p *TunnelProxy) Stop() { p.listener.Close() }

// URL returns the URL of the proxy, with or without the user that it requires.
func (p *TunnelProxy) URL(withUser bool) string {
	u := url.URL{Scheme: p.scheme, Host: p.listener.Addr().String()}
	if withUser {
		u.User = p.user
	}
	return u.String()
}

// Asked returns the destinations that clients requested, as "host:port".
func (p *TunnelProxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *TunnelProxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			handshake := p.connect
			if p.scheme == "socks5" {
				handshake = p.socks
			}
			asked, accept, err := handshake(client)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.asked = append(p.asked, asked)
			p.mu.Unlock()
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				return
			}
			defer server.Close()
			if _, err := client.Write(accept); err != nil {
				return
			}
			go func() {
				defer server.Close()
				io.Copy(server, client)
			}()
			io.Copy(client, server)
		}()
	}
}

func (p *TunnelProxy) connect(client net.Conn) (asked string, accept []byte, err error) {
	request, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil {
		return "", nil, err
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:p@ss"))
	if request.Method != http.MethodConnect || request.Header.Get("Proxy-Authorization") != want {
		fmt.Fprint(client, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")
		return "", nil, fmt.Errorf("refused")
	}
	return request.Host, []byte("HTTP/1.1 200 Connection established\r\n\r\n"), nil
}

// Implements RFC 1928 and 1929 for destinations that are names.
func (p *TunnelProxy) socks(client net.Conn) (asked string, accept []byte, err error) {
	read := func(n int) []byte {
		bytes := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(client, bytes)
		}
		return bytes
	}
	methods := read(int(read(2)[1]))
	if !slices.Contains(methods, 2) {
		client.Write([]byte{5, 0xff})
		return "", nil, fmt.Errorf("refused")
	}
	client.Write([]byte{5, 2})
	user := string(read(int(read(2)[1])))
	password := string(read(int(read(1)[0])))
	if user != "me" || password != "p@ss" {
		client.Write([]byte{1, 1})
		return "", nil, fmt.Errorf("refused")
	}
	client.Write([]byte{1, 0})
	if head := read(4); err == nil && (head[1] != 1 || head[3] != 3) {
		return "", nil, fmt.Errorf("not a connection to a name: %v", head)
	}
	name := string(read(int(read(1)[0])))
	port := read(2)
	asked = fmt.Sprintf("%s:%d", name, int(port[0])<<8|int(port[1]))
	return asked, []byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}, err
}
