"""What is declared of each metric, and what of a scraped text is not as declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from thunderagent.metrics import AgentMetrics, ControllerMetrics, Instrument, add_process_metrics


@dataclass(frozen=True)
class Declared:
    """A family of series. ``labels`` are all that its samples may have, beside ``le`` of a histogram's buckets."""

    kind: str
    text: str
    labels: frozenset[str]


@cache
def declared() -> Mapping[str, Declared]:
    """Every family that any process of ours may serve, by its name as the parser gives it: without ``_total``."""
    instruments = [*AgentMetrics(CollectorRegistry(), "").instruments, *ControllerMetrics(CollectorRegistry()).instruments]
    registry = CollectorRegistry()
    add_process_metrics(registry)
    of_process = {family.name: _of_family(family) for family in registry.collect()}
    return {**dict(map(_of_instrument, instruments)), **of_process}


def series_names() -> frozenset[str]:
    """Every name that a series of ours may have, as a query writes it."""
    return frozenset(name for family, about in declared().items() for name in _names(family, about.kind))


def differences(text: str) -> list[str]:
    """What of a scraped text is not as declared. Fails to parse where it is no exposition at all."""
    return [each for family in text_string_to_metric_families(text) for each in _differences(family)]


def scraped_names(text: str) -> set[str]:
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


def _differences(family: Metric) -> Iterator[str]:
    about = declared().get(family.name)
    if about is None:
        yield f"{family.name} is not declared"
        return
    if (family.type, family.documentation) != (about.kind, about.text):
        yield f"{family.name} is a {family.type} with the help {family.documentation!r}"
    unknown = {label for sample in family.samples for label in sample.labels} - about.labels - {"le"}
    if unknown and about.kind != "info":
        yield f"{family.name} has the labels {sorted(unknown)}"


def _of_instrument(instrument: Instrument) -> tuple[str, Declared]:
    (family,) = instrument.describe()
    kind, name = ("gauge", f"{family.name}_info") if family.type == "info" else (family.type, family.name)
    labels = frozenset({"version"}) if family.type == "info" else frozenset(instrument._labelnames)
    return name, Declared(kind, family.documentation, labels)


def _of_family(family: Metric) -> Declared:
    return Declared(family.type, family.documentation, frozenset(label for each in family.samples for label in each.labels))


def _names(family: str, kind: str) -> Iterable[str]:
    if kind == "counter":
        return (f"{family}_total",)
    return (f"{family}_bucket", f"{family}_sum", f"{family}_count") if kind == "histogram" else (family,)
