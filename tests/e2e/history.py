"""What the handler itself wrote: when each run began, where, and whether it came to its end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a task. Times are epoch seconds; ``ended`` is None for one that was stopped, killed, or still goes on.

    ``stopped``: when the handler was told to end and did, in a drain.
    """

    task: str
    pod: str
    began: float
    ended: float | None
    stopped: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The runs of one test, in the order in which they began."""

    runs: tuple[Run, ...]

    @property
    def done(self) -> set[str]:
        """Tasks that a run has finished."""
        return {run.task for run in self.runs if run.ended is not None}

    @property
    def unfinished(self) -> list[Run]:
        """Runs without an end: the interrupted ones, once nothing runs any more."""
        return [run for run in self.runs if run.ended is None]

    @property
    def repeated(self) -> list[str]:
        """Tasks that were finished more than once."""
        finished = Counter(run.task for run in self.runs if run.ended is not None)
        return [task for task, times in finished.items() if times > 1]

    @property
    def pods(self) -> set[str]:
        """Pods that have run a task."""
        return {run.pod for run in self.runs}


def read_history(lines: Iterable[str]) -> History:
    """The history that the lines of `app/work.py` tell."""
    begun: dict[str, Run] = {}
    ended: dict[str, float] = {}
    stopped: dict[str, float] = {}
    for line in lines:
        entry = json.loads(line)
        if entry["event"] == "begin":
            begun[entry["run"]] = Run(entry["task"], entry["pod"], entry["at"], None)
        elif entry["event"] == "end":
            ended[entry["run"]] = entry["at"]
        elif entry["event"] == "stopped":
            stopped[entry["run"]] = entry["at"]
    runs = [Run(run.task, run.pod, run.began, ended.get(key), stopped.get(key)) for key, run in begun.items()]
    return History(tuple(sorted(runs, key=lambda run: run.began)))
