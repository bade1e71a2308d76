// Kind-cni is the pod network of a kind cluster: on each node it writes the configuration of the CNI plugins for the
// node's own pods, and keeps one route to the pods of every other node. Network policies are not enforced.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"time"
)

const (
	configFile = "/etc/cni/net.d/10-kind.conflist"
	retryAfter = time.Second
)

func main() {
	self, network := os.Getenv("NODE_NAME"), os.Getenv("POD_NETWORK")
	if self == "" || network == "" {
		log.Fatal("NODE_NAME and POD_NETWORK must be set")
	}
	source, err := inCluster(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	if err != nil {
		log.Fatal(err)
	}
	agent := agent{self: self, network: network, table: kernelRoutes{}, write: writeWhole}
	for {
		err := source.watch(context.Background(), agent.apply)
		log.Printf("the watch of the nodes ended, and begins again: %v", err)
		time.Sleep(retryAfter)
	}
}

// An agent brings one node's configuration and routes to what the cluster's nodes say.
type agent struct {
	self, network string
	table         routes
	write         func(path string, data []byte) error
}

// routes are those of this node to the pods of the others.
type routes interface {
	set(podNetwork, via string) error
	remove(podNetwork string) error
}

// apply takes one event of the watch of the nodes.
func (a agent) apply(event string, node node) error {
	podNetwork, address := node.Spec.PodCIDR, node.internalAddress()
	switch {
	case podNetwork == "":
		return nil // the controller manager has not assigned it yet
	case node.Metadata.Name == a.self:
		data, err := conflist(a.network, podNetwork)
		if err != nil {
			return err
		}
		return a.write(configFile, data)
	case event == deleted:
		return a.table.remove(podNetwork)
	case address == "":
		return nil
	default:
		return a.table.set(podNetwork, address)
	}
}

// writeWhole writes a file that its readers see whole or not at all.
func writeWhole(path string, data []byte) error {
	unfinished := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".unfinished")
	if err := os.WriteFile(unfinished, data, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
