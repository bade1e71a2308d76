// Network-policies decides by the cluster's NetworkPolicies which new connections of pods are forwarded.
//
// The kernel asks it over a netfilter queue, so one process serves all nodes of a local cluster, which share their
// network namespace. Connections of the nodes themselves, as for probes, are not asked for, as with other plugins.
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "credentials that may list pods, namespaces and NetworkPolicies")
	queue := flag.Int("queue", 100, "number of the netfilter queue")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *queue); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig string, queue int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(
		client,
		objects.Networking().V1().NetworkPolicies(),
		objects.Core().V1().Namespaces(),
		objects.Core().V1().Pods(),
		nil, nil, nil, nil,
		networkpolicy.Config{NodeName: "all", QueueID: queue}, // without NRI it looks up addresses in what is not there
	)
	if err != nil {
		return err
	}
	objects.Start(ctx.Done())
	return controller.Run(ctx)
}
