"""A record from the metrics in a Prometheus: which pools it knows, and what is asked of it about one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from thunderagent.errors import NoReport
from thunderagent.metrics import error_name
from thunderagent.report.prometheus import Labels, Points, Prometheus
from thunderagent.report.record import Change, Counted, Period, Record
from thunderagent.times import moment

USUAL_INTERVAL = 15.0
"""Seconds between two scrapes, where it cannot be seen."""

SCRAPES_PER_STEP = 2
SCRAPES_PER_RATE = 4
"""Scrapes that a step has at least, and that an increase is worked out from at least."""

LOOKED_AT = 6 * 3600.0
"""Seconds of the end of the period that are looked at for the time between two scrapes."""

_GAUGES: Mapping[str, str] = {
    "ready": "thunderagent_pool_ready_tasks",
    "waiting": "thunderagent_pool_waiting_tasks",
    "running": "thunderagent_pool_running_tasks",
    "expired": "thunderagent_pool_expired_tasks",
    "oldest": "thunderagent_pool_oldest_ready_seconds",
    "wanted": "thunderagent_pool_wanted_replicas",
    "desired": "thunderagent_pool_desired_replicas",
    "minimum": "thunderagent_pool_min_replicas",
    "maximum": "thunderagent_pool_max_replicas",
}
_STATES = ("available", "starting")

_NO_POOLS = (
    "Correct --from and --to, and see that it scrapes the operator (the chart's metrics.serviceMonitor) or the port of "
    "`thunderagent pool run --port`."
)


@dataclass(frozen=True, slots=True)
class PoolId:
    """A pool as its metrics name it. On one machine the namespace is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def selector(self) -> str:
        return f"namespace={_quoted(self.namespace)}, pool={_quoted(self.name)}"


def find_pool(prometheus: Prometheus, period: Period, name: str | None, namespace: str | None) -> PoolId:
    """The one pool that there was in the period and that bears the name and the namespace, as far as they are given.

    Raises NoReport where there is none or several, and names those that there were.
    """
    expr = f"group by (namespace, pool) (last_over_time({_GAUGES['desired']}[{_span(period.seconds)}]))"
    known = [PoolId(labels.get("namespace", ""), labels.get("pool", "")) for labels, _ in prometheus.query(expr, period.end)]
    if not known:
        between = f"between {moment(period.start)} and {moment(period.end)}"
        raise NoReport(f"This Prometheus has no metrics of a pool {between}. {_NO_POOLS}")
    found = [each for each in known if name in (None, each.name) and namespace in (None, each.namespace)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(map(str, known)))
    trouble = "Several pools fit" if found else "No such pool was there"
    raise NoReport(f"{trouble}; this Prometheus knows {names}. Choose one with --pool and --namespace.")


def scrape_interval(prometheus: Prometheus, pool: PoolId, period: Period) -> float:
    """The usual time between two scrapes of the pool, in seconds."""
    selector = f"{_GAUGES['desired']}{{{pool.selector}}}"
    scraped = prometheus.scraped(selector, min(period.seconds, LOOKED_AT), period.end)
    gaps = [after - before for times in scraped for before, after in pairwise(times)]
    return median(gaps) if gaps else USUAL_INTERVAL


def record_of_prometheus(prometheus: Prometheus, pool: PoolId, period: Period, interval: float, source: str) -> Record:
    """Ask for all that a report shows. ``interval``: seconds between two scrapes. Raises NoReport where no answer comes."""
    asked = _Asked(prometheus, pool, period, interval)
    gauges = {name: asked.gauge(metric, "max_over_time") for name, metric in _GAUGES.items()}
    gauges |= {state: asked.gauge("thunderagent_pool_replicas", "max_over_time", f'state="{state}"') for state in _STATES}
    conditions = asked.gauges("thunderagent_pool_condition", "max_over_time", _label("type"), 'type!="Ready"')
    ready = asked.gauges("thunderagent_pool_condition", "min_over_time", _label("type"), 'type="Ready"')
    reasons = asked.counted("thunderagent_pool_decisions_total", _label("reason"))
    return Record(
        source=source,
        pool=str(pool),
        period=period,
        gauges=gauges,
        conditions={**ready, **conditions},
        outcomes=_outcomes(asked),
        errors=asked.counted("thunderagent_task_errors_total", error_name),
        reasons=reasons,
        waits=asked.counted("thunderagent_task_wait_seconds_bucket", _label("le")),
        changes=list(_changes(gauges["desired"], reasons, period)),
        notes=("Counts are what Prometheus makes of its scrapes, so they may be off by a few.",),
    )


def _outcomes(asked: _Asked) -> Counted:
    """Runs, and what ended without one, which agents count apart."""
    runs = asked.counted("thunderagent_tasks_total", _label("outcome"))
    abandoned = asked.counted("thunderagent_dependency_looks_total", _label("result"), 'result="abandoned"')
    buried = asked.counted("thunderagent_buried_total", lambda labels: "buried")
    parts = (runs, abandoned, buried)
    each = {name: values for part in parts for name, values in part.each.items()}
    return Counted(each, {name: total for part in parts for name, total in part.totals.items()})


class _Asked:
    """Questions about one pool, and the answers by step."""

    def __init__(self, prometheus: Prometheus, pool: PoolId, period: Period, interval: float) -> None:
        self._prometheus = prometheus
        self._pool = pool
        self._period = period
        self._window = max(period.step, SCRAPES_PER_RATE * interval)

    def gauge(self, metric: str, over: str, more: str = "") -> list[float | None]:
        """One series: its highest where several tell of the same, as two replicas of the operator may for a moment."""
        series = self.gauges(metric, over, lambda labels: "", more)
        return series.get("", [None] * self._period.count)

    def gauges(self, metric: str, over: str, name: Callable[[Labels], str], more: str = "") -> dict[str, list[float | None]]:
        expr = f"{over}({self._selected(metric, more)}[{_span(self._period.step)}])"
        return self._by_step(expr, name, max, 1.0)

    def counted(self, metric: str, name: Callable[[Labels], str], more: str = "") -> Counted:
        selected = self._selected(metric, more)
        each = self._by_step(f"rate({selected}[{_span(self._window)}])", name, lambda values: sum(values), self._period.step)
        totals: dict[str, float] = defaultdict(float)
        expr = f"increase({selected}[{_span(self._period.seconds)}])"
        for labels, value in self._prometheus.query(expr, self._period.end):
            totals[name(labels)] += value
        return Counted(each, dict(totals))

    def _selected(self, metric: str, more: str = "") -> str:
        return f"{metric}{{{', '.join(filter(None, (self._pool.selector, more)))}}}"

    def _by_step(
        self, expr: str, name: Callable[[Labels], str], join: Callable[[Iterable[float]], float], times: float
    ) -> dict[str, list[float | None]]:
        period = self._period
        found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for labels, points in self._prometheus.query_range(expr, period.ends, period.step):
            for step, value in _steps(points, period):
                found[name(labels)][step].append(value * times)
        return {
            key: [join(steps[step]) if step in steps else None for step in range(period.count)] for key, steps in found.items()
        }


def _steps(points: Points, period: Period) -> Iterator[tuple[int, float]]:
    """The points by their step. Prometheus answers at the moments that it was asked for, which are the ends of the steps."""
    for at, value in points:
        step = round((at - period.start) / period.step) - 1
        if 0 <= step < period.count and value == value:  # not NaN, which is what it says of 0 / 0
            yield step, value


def _changes(desired: Iterable[float | None], reasons: Counted, period: Period) -> Iterator[Change]:
    """Where the replicas asked for changed, with the reasons that decisions around it gave, the most frequent first."""
    known = [(step, round(value)) for step, value in enumerate(desired) if value is not None]
    for (_, before), (step, after) in pairwise(known):
        if before != after:
            given = {reason: values[step] or 0.0 for reason, values in reasons.each.items()}
            why = sorted((reason for reason in given if given[reason] > 0), key=lambda reason: -given[reason])
            yield Change(period.ends[step], before, after, ", ".join(why))


def _label(name: str) -> Callable[[Labels], str]:
    return lambda labels: labels.get(name, "")


def _span(seconds: float) -> str:
    return f"{max(1, round(seconds))}s"


def _quoted(text: str) -> str:
    """A string of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
