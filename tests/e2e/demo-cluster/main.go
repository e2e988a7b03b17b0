// Command demo-cluster runs a real control plane with the objects of a world file, for ./dev demo drain --real. Its
// kubelets are those of the end-to-end tests; annotations of a pod say what they do with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"haulout.dev/haulout/tests/e2e"
	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` to write once the pods are up; removed at the end")
	world := flag.String("world", "", "`file` with Kubernetes objects in YAML or JSON")
	flag.Parse()
	if *kubeconfig == "" || *world == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	if err := serve(ctx, *kubeconfig, *world); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// If a shell starts this program in the background, SIGINT is ignored. Then Ctrl-C ends the drain, and not the cluster
// that it needs.
func endSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGHUP}
	if !signal.Ignored(syscall.SIGINT) {
		signals = append(signals, syscall.SIGINT)
	}
	return signals
}

func serve(ctx context.Context, kubeconfig, world string) error {
	objects, err := readWorld(world)
	if err != nil {
		return err
	}
	programs, err := e2e.FindPrograms()
	if err != nil {
		return err
	}
	cluster, err := e2e.StartCluster(ctx, programs)
	if err != nil {
		return err
	}
	defer cluster.Stop()
	if err := load(ctx, cluster, objects); err != nil {
		return fmt.Errorf("%s: %w", world, err)
	}
	if err := writeKubeconfig(cluster, kubeconfig); err != nil {
		return err
	}
	defer os.Remove(kubeconfig)
	fmt.Printf("a real control plane listens on %s; kubectl --kubeconfig %s get pods -A shows its pods\n",
		cluster.URL, kubeconfig)
	<-ctx.Done()
	return nil
}

func readWorld(path string) ([]runtime.Object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := e2e.DecodeWorld(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

// writeKubeconfig writes another file and renames it, so that a reader never sees half of it.
func writeKubeconfig(cluster *e2e.Cluster, path string) error {
	identity, err := cluster.CA.Client("demo", "system:masters")
	if err != nil {
		return err
	}
	written, err := cluster.Access(identity).Write(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(written))
	return os.Rename(written, path)
}
