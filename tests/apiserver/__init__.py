"""The operator's dealings with Kubernetes, against a real API server alone: etcd and kube-apiserver, no controller, no node.

What the tests of `tests/controller` take for granted of their small Kubernetes is checked here on both, so that the small one
cannot drift from the real one unseen.
"""
