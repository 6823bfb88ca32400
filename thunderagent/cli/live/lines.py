"""What changed between two snapshots, in plain lines: for pipes, logs and terminals that cannot be drawn on."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.cli.live.snapshot import Replicas, Snapshot, TaskCounts
from thunderagent.task import Status

EVERY = 5.0
"""Seconds between two lines of progress."""


def news(before: Snapshot | None, now: Snapshot, every: float = EVERY) -> list[str]:
    """A line for each change of a pool's replicas and each task that FAILED, and now and then one of progress."""
    return [f"{now.elapsed:6.1f}s  {line}" for line in _news(before, now, every)]


def _news(before: Snapshot | None, now: Snapshot, every: float) -> Iterator[str]:
    known = {pool.name: pool for pool in before.pools} if before else {}
    for pool in now.pools:
        earlier = known.get(pool.name)
        if earlier is None or (earlier.replicas, earlier.is_trouble) != (pool.replicas, pool.is_trouble):
            yield f"pool   {_replicas(pool.replicas)} of at most {pool.most}. {pool.sentence}".rstrip()
    told = {task.task_id for task in before.ended} if before else set()
    for task in reversed(now.ended):
        if task.status is Status.FAILED and task.task_id not in told:
            yield f"failed {task.task_id}: {task.error}"
    if before is None or _turn(before, every) != _turn(now, every) or _just_done(before, now):
        yield f"tasks  {_counts(now.tasks)}"
    if now.note and (before is None or before.note != now.note):
        yield f"note   {now.note}"


def _turn(snapshot: Snapshot, every: float) -> int:
    return int(snapshot.elapsed / every) if snapshot.tasks.ended < snapshot.tasks.total else -1


def _just_done(before: Snapshot, now: Snapshot) -> bool:
    return now.tasks.ended == now.tasks.total != before.tasks.ended


def _replicas(replicas: Replicas) -> str:
    parts = {"ready": replicas.ready, "starting": replicas.starting, "draining": replicas.draining}
    shown = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
    agents = f"{replicas.total} agent{'' if replicas.total == 1 else 's'}"
    return f"{agents} ({shown})" if shown else agents


def _counts(counts: TaskCounts) -> str:
    parts = ", ".join(f"{counts.of(status)} {status}" for status in Status if counts.of(status))
    waiting = f" ({counts.waiting} wait for others)" if counts.waiting else ""
    ended = f"{counts.ended} of {counts.total} ended: " if counts.is_whole else ""
    return f"{ended}{parts or 'none'}{waiting}"
