"""Report generation from CSV files: the work that the demo's pool does, and an example to copy from.

``plan`` says which tasks there are, ``tasks`` holds their handlers; every other module is plain Python that knows nothing
of tasks.
"""
