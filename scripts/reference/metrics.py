"""``docs/metrics.md``, from the one place that declares the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from scripts.reference.markdown import code, page, table
from thunderagent.metrics import AgentMetrics
from thunderagent.settings import AgentSettings

_INTRODUCTION = f"""# Metrics

An agent serves its metrics for Prometheus at `/metrics` on port {AgentSettings().port}; the [settings](settings.md) `host` and
`port` change that. A scrape never asks DynamoDB. No label carries a taskId or the name of a pod, so the number of series does
not grow with the work."""

Instrument = Counter | Gauge | Histogram | Info

_SUFFIX = {Counter: "_total", Info: "_info"}
"""What prometheus_client adds to a name when it is scraped."""


def metrics_page() -> str:
    """The page."""
    declared = vars(AgentMetrics(CollectorRegistry(), pool=""))
    instruments = [each for each in declared.values() if isinstance(each, Instrument)]
    return page(
        "thunderagent/metrics.py",
        _INTRODUCTION,
        "## An agent",
        table(("Metric", "Type", "Labels", "Meaning"), map(_row, instruments)),
        "## Buckets of the histograms",
        table(("Metric", "Upper bounds in seconds"), _buckets(instruments)),
    )


def _row(instrument: Instrument) -> Sequence[str]:
    (family,) = instrument.describe()
    labels = ", ".join(map(code, instrument._labelnames))  # a metric tells its labels only with a sample of each
    return code(_exposed_name(instrument)), family.type, labels, family.documentation


def _buckets(instruments: Sequence[Instrument]) -> Iterator[Sequence[str]]:
    for each in instruments:
        if isinstance(each, Histogram):
            yield code(_exposed_name(each)), ", ".join(f"{bound:g}" for bound in each._upper_bounds[:-1])


def _exposed_name(instrument: Instrument) -> str:
    (family,) = instrument.describe()
    return family.name + _SUFFIX.get(type(instrument), "")
