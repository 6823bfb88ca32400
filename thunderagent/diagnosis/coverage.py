"""What a check did not look at: a clean result must not claim more than was read."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.diagnosis.shape import is_readable

_LIMIT = "Raise --limit to see more; each task read costs read units."


def cut(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Everything there was has been read."""
    if observation.shape is not None and not is_readable(observation):
        what = "No task was looked at: the index cannot be read."
        yield Finding(Severity.INFO, "tasks-not-read", observation.table, what, "Mend the index first, then check again.")
    for status, sample in observation.samples.items():
        if sample.cut:
            which = "newest" if status.is_final else "oldest"
            what = f"Only the {which} {len(sample.tasks)} tasks of this status were looked at."
            yield Finding(Severity.INFO, "cut", str(status), what, _LIMIT)
    if observation.unread:
        what = f"{len(observation.unread)} dependencies of waiting tasks could not be read, or were too many."
        yield Finding(Severity.INFO, "cut", "dependencies", what, _LIMIT)
    if observation.scanned is not None and observation.scanned.cut:
        what = f"The scan ended after {len(observation.scanned.records)} items; there are more."
        yield Finding(Severity.INFO, "cut", "scan", what, "Raise --scan to see more; each item read costs read units.")
