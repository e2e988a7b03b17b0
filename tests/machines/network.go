package machines

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// The network of the room (room.go): a bridge, whose first address is that of the control plane, and for each machine a
// network namespace that is connected to the bridge by a veth. No route leads out of the room.

const (
	bridge    = "machines"
	netPrefix = "10.10.0."
)

// controlPlaneAddress is the address at which machines reach the API server.
var controlPlaneAddress = net.IPv4(10, 10, 0, 1)

// serviceAddress is the address of the API server's Service: the first one in the range of Services. There is no
// kube-proxy, so the room itself has this address (see ServeService).
var serviceAddress = net.IPv4(10, 0, 0, 1)

// machineAddress returns the address of the machine with this number, which begins at 1.
func machineAddress(number int) string { return fmt.Sprintf("%s%d", netPrefix, 10+number) }

// podRange returns the address range of the pods on the machine with this number.
func podRange(number int) string { return fmt.Sprintf("10.20.%d.0/24", number) }

func furnishNetwork() error {
	return ip(
		"link set lo up",
		"link add "+bridge+" type bridge",
		"addr add "+controlPlaneAddress.String()+"/24 dev "+bridge,
		"link set "+bridge+" up",
		"addr add "+serviceAddress.String()+"/32 dev lo",
	)
}

// plugIn creates the network namespace of a machine and connects it to the bridge. It stays when the machine reboots.
func plugIn(name string, number int) error {
	address := machineAddress(number)
	port := cable(name)
	err := ip(
		"netns add "+name,
		"link add "+port+" type veth peer name eth0 netns "+name,
		"link set "+port+" master "+bridge+" up",
		"-n "+name+" link set lo up",
		"-n "+name+" addr add "+address+"/24 dev eth0",
		"-n "+name+" link set eth0 up",
		"-n "+name+" route add default via "+controlPlaneAddress.String(),
		"route add "+podRange(number)+" via "+address,
	)
	if err != nil {
		return err
	}
	return ip("netns exec " + name + " sysctl -q -w net.ipv4.ip_forward=1")
}

// unplug removes the network namespace of a machine.
func unplug(name string, number int) error {
	return ip("route del "+podRange(number), "link del "+cable(name), "netns del "+name)
}

// cable returns the name of the machine's veth at the bridge.
func cable(name string) string { return "to-" + name }

// ip runs these commands of ip(8) one after the other.
func ip(commands ...string) error {
	for _, words := range commands {
		output, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w\n%s", words, err, output)
		}
	}
	return nil
}

func namespacePath(name string) string {
	path := "/run/netns/" + name
	if _, err := os.Stat(path); err != nil {
		return "/var/run/netns/" + name
	}
	return path
}

// ServeService forwards connections to the API server's Service to the API server, until the context ends.
func (f *Fleet) ServeService(ctx context.Context) error {
	server, err := url.Parse(f.URL)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(serviceAddress.String(), "443"))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(connection, server.Host)
		}
	}()
	return nil
}

func forward(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	pass := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go pass(to, from)
	go pass(from, to)
	<-ended
}
