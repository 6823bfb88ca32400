"""How long a Python takes to import ThunderAgent, and its command to say what it can do."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.agents import ROOT
from benchmarks.pairs import interleaved, middle
from benchmarks.report import Figure

ROWS = (
    ("import thunderagent", ("-c", "import thunderagent")),
    ("import of what an application uses (TaskQueue)", ("-c", "from thunderagent import TaskQueue")),
    ("import of what a handler uses (Router)", ("-c", "from thunderagent import Router")),
    ("thunderagent --help", ("-m", "thunderagent", "--help")),
)


def measure(pairs: int) -> list[Figure]:
    """The time of each beyond that of a Python that does nothing."""
    return [_figure(name, arguments, pairs) for name, arguments in ROWS]


def _figure(name: str, arguments: tuple[str, ...], pairs: int) -> Figure:
    measured = interleaved(lambda: _seconds(arguments), lambda: _seconds(("-c", "pass")), pairs)
    samples = tuple(1000 * (ours - theirs) for ours, theirs in measured)
    return Figure(
        name, middle(samples), "ms", "python -c pass, subtracted", f"wall time, median of {pairs} pairs", None, samples
    )


def _seconds(arguments: tuple[str, ...]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, cwd=ROOT, check=True)
    return time.perf_counter() - began
