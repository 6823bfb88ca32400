"""Running the loops that agents are compared with, each as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.agents import PATIENCE, ROOT, Span
from benchmarks.backlog import Backlog


def run_bare_loop(backlog: Backlog, threads: int) -> Span:
    """Have the bare loop make the two writes of each task."""
    return _run("benchmarks.bare_loop", backlog, threads, "\n".join(backlog.task_ids))


def run_first_user_loop(backlog: Backlog) -> Span:
    """Have the first user's loop run the backlog."""
    return _run("benchmarks.first_user_loop", backlog, len(backlog.task_ids), "")


def _run(module: str, backlog: Backlog, number: int, given: str) -> Span:
    arguments = [backlog.table.table, str(backlog.table.endpoint), str(number)]
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE,
        check=True,
    )
    backlog.check_all_ended()
    return Span(**json.loads(ended.stdout))
