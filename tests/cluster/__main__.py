"""Run by `python -m tests.cluster`, from the root of the repository."""

from tests.cluster.cli import main

main()
