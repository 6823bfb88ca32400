"""A real Kubernetes for the tests: `make cluster-up`, `make cluster-down`, and what lies between.

Start reading at `ways.py`: it says how a cluster can be had and how one is chosen. `built/` is the longest, because it makes
a whole cluster on a bare machine. Nothing here needs more than Python's standard library, so it runs before anything is
installed.
"""
