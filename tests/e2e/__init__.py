"""The whole of ThunderAgent on a real Kubernetes: chart, operator, agents in pods, tasks from the command line.

Start reading at `stage.py`: what a test has to do with. `app/` is the image whose handler the agents run; it writes a history
of its own, which `history.py` reads, so that nothing is judged by what ThunderAgent says of itself.
"""
