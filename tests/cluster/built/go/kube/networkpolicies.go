package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

// queueID is the netfilter queue whose packets are judged; tests/cluster/built/network.py sends new connections there.
const queueID = 98

// newNetworkPoliciesCommand enforces NetworkPolicy on one node. The published command of kube-network-policies runs only
// in a pod; this one takes a kubeconfig, like the other components that run beside the kubelet.
func newNetworkPoliciesCommand() *cobra.Command {
	var kubeconfig, node string
	command := &cobra.Command{
		Use:          "network-policies",
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return enforceNetworkPolicies(command, kubeconfig, node)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file with the API server's address and a client certificate")
	command.Flags().StringVar(&node, "node-name", "", "name of the node whose pods are protected")
	return command
}

func enforceNetworkPolicies(command *cobra.Command, kubeconfig, node string) error {
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(client,
		factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Namespaces(), factory.Core().V1().Pods(),
		nil, nil, nil, nil,
		// FailOpen: a test that waits for an answer must not hang because the judge has just started. NRI stays on although
		// containerd here has no socket for it, which is logged once: turned off, v0.8.0 dereferences nil at the first packet
		// whose address is no pod's, such as one of a pod that has just gone.
		networkpolicy.Config{NodeName: node, QueueID: queueID, FailOpen: true})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return controller.Run(ctx)
}
