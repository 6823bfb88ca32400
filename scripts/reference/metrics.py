"""``docs/metrics.md``, from the one place that declares the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Histogram

from scripts.reference.markdown import code, page, table
from thunderagent.metrics import AgentMetrics, ControllerMetrics, Instrument, add_process_metrics, exposed_name
from thunderagent.settings import AgentSettings

_INTRODUCTION = f"""# Metrics

Every process serves its metrics for Prometheus at `/metrics`: an agent on port {AgentSettings().port} (the
[settings](settings.md) `host` and `port` change that), the operator on port 8080, and a pool on one machine where
`thunderagent pool run FILE --port 9465` names a port; its agents then have the ports after it. A scrape never asks DynamoDB.
No label carries a taskId or the name of a pod, so the number of series does not grow with the work. Who asks for OpenMetrics
gets it.

`namespace` and `pool` tell pools apart. On one machine a pool has no namespace, and the label is empty."""

_POOLS = """The operator tells these of every pool that it scales, `thunderagent pool run` of its own. A pool that is gone takes
its series with it."""

_PROCESS = """Every process tells these of itself, as all programs do that are made with Prometheus's client for Python."""

_TITLES = ("Metric", "Type", "Labels", "Meaning")


def metrics_page() -> str:
    """The page."""
    agent = AgentMetrics(CollectorRegistry(), pool="").instruments
    operator = ControllerMetrics(CollectorRegistry())
    pools = [*operator.pool_instruments, *operator.process_instruments]
    return page(
        "thunderagent/metrics.py",
        _INTRODUCTION,
        "## An agent",
        table(_TITLES, map(_row, agent)),
        "## A pool",
        _POOLS,
        table(_TITLES, map(_row, pools)),
        "## The operator",
        "These beside those of its pools:",
        table(_TITLES, map(_row, operator.operator_instruments)),
        "## The process",
        _PROCESS,
        table(("Metric", "Type", "Meaning"), _process_rows()),
        "## Buckets of the histograms",
        table(("Metric", "Upper bounds in seconds"), _buckets([*agent, *pools])),
    )


def _row(instrument: Instrument) -> Sequence[str]:
    (family,) = instrument.describe()
    labels = ", ".join(map(code, instrument._labelnames))  # a metric tells its labels only with a sample of each
    return code(exposed_name(instrument)), family.type, labels, family.documentation


def _process_rows() -> Iterator[Sequence[str]]:
    registry = CollectorRegistry()
    add_process_metrics(registry)
    for family in registry.collect():
        suffix = "_total" if family.type == "counter" else ""
        yield code(family.name + suffix), family.type, family.documentation


def _buckets(instruments: Sequence[Instrument]) -> Iterator[Sequence[str]]:
    for each in instruments:
        if isinstance(each, Histogram):
            yield code(exposed_name(each)), ", ".join(f"{bound:g}" for bound in each._upper_bounds[:-1])
