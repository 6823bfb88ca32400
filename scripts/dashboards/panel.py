"""What a dashboard is made of, as frozen values: rows of panels, each with its queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CHOSEN = 'namespace=~"$namespace", pool=~"$pool"'
"""Matchers of the pools that a person has chosen by the variables."""

BY_POOL = "sum by (namespace, pool)"
RATE = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Panel:
    """``queries`` maps a legend to PromQL. ``unit`` is one of Grafana's; ``stat``: the last value as a number.

    ``stacked``: the series are parts of a whole. ``signed``: values may be below zero. ``good_below``: the value above which a
    stat is drawn as bad.
    """

    title: str
    description: str
    unit: str
    queries: Mapping[str, str]
    stat: bool = False
    stacked: bool = False
    signed: bool = False
    good_below: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. ``prices``: whether it has variables for the prices of capacity units."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    prices: bool = True
    tags: tuple[str, ...] = field(default=("thunderagent",))


def quantiles(metric: str, matchers: str = CHOSEN) -> dict[str, str]:
    """p50, p95 and p99 of a histogram over all that the matchers choose."""
    buckets = f"sum by (le) (rate({metric}_bucket{{{matchers}}}[{RATE}]))"
    return {f"p{share}": f"histogram_quantile(0.{share}, {buckets})" for share in (50, 95, 99)}


def price_per_hour(metric: str, matchers: str = "") -> str:
    """US dollars an hour for what is consumed now, with the prices that the variables name."""
    before = f"{matchers}, " if matchers else ""
    read = f'sum(rate({metric}{{{before}operation=~"GetItem|BatchGetItem|Query"}}[{RATE}])) * $price_read'
    write = f'(sum(rate({metric}{{{before}operation=~"UpdateItem|PutItem"}}[{RATE}])) or vector(0)) * $price_write'
    return f"({read} + {write}) * 3600 / 1e6"
