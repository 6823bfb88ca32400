"""The operator: it scales the Deployment of every ``ThunderAgentPool`` with the backlog of the pool's task table.

It is in the operator's image, not in the wheel, and alone imports kopf and kubernetes. Rooms, from what only thinks to what
acts:

- ``names``, ``errors``, ``settings``: words, errors and settings
- ``resource``: the CRD; ``render``: the pool's Deployment; ``pods``: what the cluster shows, in the words of scaling
- ``allowed``, ``marks``, ``rivals``, ``faults``, ``conditions``, ``status``: decisions about one pool
- ``cluster``: what is asked of Kubernetes; ``kube``: the one room that asks it; ``events``: what it has written as which event;
  ``reading``: the backlog, read from the table
- ``cycle``: one cycle of one pool, made of all of the above; ``registry``: a task for each pool
- ``election``, ``watchdog``, ``watch``, ``main``: the process

Start reading at :mod:`controller.cycle`.
"""
