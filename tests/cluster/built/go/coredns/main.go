// Command coredns is CoreDNS with the plugins that a cluster without an outside needs, and no others.
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func init() {
	// The order in which the plugins see a query.
	dnsserver.Directives = []string{"ready", "health", "errors", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
