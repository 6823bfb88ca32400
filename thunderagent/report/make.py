"""A record of a pool from either source, over the time that a person has asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thunderagent.report.fromprometheus import SCRAPES_PER_STEP, find_pool, record_of_prometheus, scrape_interval
from thunderagent.report.fromsamples import finest_step, of_pool, record_of_samples
from thunderagent.report.prometheus import Prometheus, address
from thunderagent.report.record import Record, period
from thunderagent.report.samplefile import read_file

HOUR = 3600.0
"""How long the time is that a Prometheus is asked about, where nobody says."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which time and which pool, as far as they were given. ``start`` and ``end`` in epoch seconds, ``last`` in seconds."""

    start: float | None = None
    end: float | None = None
    last: float | None = None
    pool: str | None = None
    namespace: str | None = None

    def start_before(self, end: float, otherwise: float) -> float:
        """Where the time begins that ends at ``end``."""
        if self.last is not None:
            return end - self.last
        return otherwise if self.start is None else self.start


def record_from_file(path: Path, wanted: Wanted, now: float) -> Record:
    """From the samples of a local pool; of all of them, where no time was given. Raises NoReport, InvalidInput."""
    found, left_out = read_file(path)
    samples = of_pool(found, wanted.pool)
    finest = finest_step(samples)
    end = samples[-1].at if wanted.end is None else wanted.end
    start = wanted.start_before(end, otherwise=min(samples[0].at, end) - finest)
    return record_of_samples(samples, period(start, end, now, finest), f"samples of the local pool in {path.name}", left_out)


def record_from_prometheus(url: str, wanted: Wanted, now: float) -> Record:
    """From the metrics in a Prometheus; of the last hour, where no time was given. Raises NoReport, InvalidInput."""
    where = address(url)
    prometheus = Prometheus(where)
    end = now if wanted.end is None else wanted.end
    start = wanted.start_before(end, otherwise=end - HOUR)
    whole = period(start, end, now)
    pool = find_pool(prometheus, whole, wanted.pool, wanted.namespace)
    interval = scrape_interval(prometheus, pool, whole)
    exact = period(start, end, now, SCRAPES_PER_STEP * interval)
    return record_of_prometheus(prometheus, pool, exact, interval, f"Prometheus at {where.shown}")
