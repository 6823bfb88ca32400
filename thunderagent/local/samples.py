"""A local pool's cycles as samples in a file, for ``thunderagent report``."""

from __future__ import annotations

import logging
from collections.abc import Callable

from thunderagent.local.meter import conditions
from thunderagent.local.pool import PoolView
from thunderagent.log import say
from thunderagent.pool import Pool
from thunderagent.report.sample import VERSION, PoolSample
from thunderagent.report.samplefile import SampleFile
from thunderagent.scaling import FailedRead, Observation, ReplicaState

log = logging.getLogger("thunderagent.pool")


class Sampler:
    """Is told of each cycle of one pool, and writes a line. ``wall`` is in epoch seconds.

    A full disk is told once and stops nothing: the pool is what matters, and its samples only tell of it.
    """

    def __init__(self, pool: Pool, file: SampleFile, wall: Callable[[], float]) -> None:
        self._pool = pool
        self._file = file
        self._wall = wall
        self._began = wall()
        self._fails = False

    def tell(self, view: PoolView) -> None:
        """Write down a cycle."""
        try:
            self._file.add(sample_of(view, self._pool, self._wall(), self._began))
        except OSError as error:
            if not self._fails:
                say(log, logging.WARNING, "samples cannot be written", pool=self._pool.name, error=str(error))
            self._fails = True
        else:
            self._fails = False


def sample_of(view: PoolView, pool: Pool, at: float, began: float) -> PoolSample:
    """What a cycle that ended at ``at`` has shown. Times in epoch seconds."""
    seen = view.seen if isinstance(view.seen, Observation) else None
    return PoolSample(
        sample=VERSION,
        at=round(at, 3),
        began=round(began, 3),
        pool=view.name,
        ready=None if seen is None else seen.ready,
        waiting=None if seen is None else seen.waiting,
        running=None if seen is None else seen.running,
        expired=None if seen is None else seen.expired,
        oldest=None if seen is None else seen.oldest_ready_age or 0.0,
        wanted=view.decision.wanted,
        was=view.asked[0],
        desired=view.asked[1],
        available=view.replicas.get(ReplicaState.READY, 0),
        starting=view.replicas.get(ReplicaState.STARTING, 0),
        minimum=pool.spec.scaling.min_replicas,
        maximum=pool.spec.scaling.max_replicas,
        reason=str(view.decision.reasons[-1]),
        sentence=view.decision.sentence,
        problem=view.seen.reason if isinstance(view.seen, FailedRead) else "",
        conditions=conditions(view),
        tasks=dict(view.tally.tasks),
        errors=dict(view.tally.errors),
        waits=dict(view.tally.waits),
    )
