//go:build tools

// Package tools names commands that are built from this module although no package here imports them.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "sigs.k8s.io/kind"
)
