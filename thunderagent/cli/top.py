"""``thunderagent top``: a live view of a task table, and of the pools of a cluster that work on it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from thunderagent.cli.output import Form, on_terminal, output_option, print_json
from thunderagent.cli.parameters import SPAN, Where, table_options
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import StoreError

if TYPE_CHECKING:
    from rich.console import Console

    from thunderagent.cli.live.overview import Overview
    from thunderagent.store.base import CallReport

WIDTH, HEIGHT = 120, 60
"""Columns and lines where there is no terminal to say how many it has."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster is asked for pools, if any."""

    is_wanted: bool
    context: str | None
    namespace: str | None


@click.command(short_help="Watch the task table, its agents and its pools.")
@click.option("--once", is_flag=True, help="Look once, print, and end. So it does where stdout is no terminal.")
@click.option("--every", type=SPAN, default="5s", show_default=True, help="Time between two looks.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Tasks of each status to look at."
)
@click.option("--pools/--no-pools", default=True, show_default=True, help="Ask kubectl for the pools of this table.")
@click.option("--context", help="The context of kubectl.  [default: its current one]")
@click.option("--namespace", help="Show only the pools of this namespace.  [default: all that you may see]")
@output_option(Form.TABLE, Form.JSON)
@table_options
@click.pass_obj
def top(
    surroundings: Surroundings,
    once: bool,
    every: float,
    limit: int,
    pools: bool,
    context: str | None,
    namespace: str | None,
    form: Form,
    where: Where,
) -> None:
    """Watch the task table: statuses, ages, agents with what they run, last failures; and its pools, if kubectl knows any.

    A look reads at most --limit tasks of each status, whatever the table holds, and says how many read units that took.
    """
    looker = _looker(surroundings, where, limit, Cluster(pools, context, namespace))
    if form is Form.JSON:
        print_json(looker().as_json())
    elif once or not on_terminal(sys.stdout):
        _print_once(looker())
    else:
        _watch(looker, surroundings.sleep, every)


def _looker(surroundings: Surroundings, where: Where, limit: int, cluster: Cluster) -> Callable[[], Overview]:
    from thunderagent.cli.live.kubectl import NoPools, pools_of  # noqa: PLC0415 - --help need not wait for these
    from thunderagent.cli.live.tablelook import TableLook  # noqa: PLC0415

    calls: list[float] = []

    def count(call: CallReport) -> None:
        calls.append(call.units)

    settings = surroundings.table(where)
    store = surroundings.open_store(settings, count)
    table = TableLook(store, settings.table, limit, surroundings.rng, lambda: sum(calls))

    def look() -> Overview:
        seen = table.look()
        if not cluster.is_wanted:
            return seen
        try:
            found = pools_of(surroundings.kubectl, settings.table, cluster.context, cluster.namespace)
        except NoPools as problem:
            return replace(seen, notes=(*seen.notes, f"No pools are shown: {problem}"))
        return replace(seen, pools=found)

    return look


def _print_once(seen: Overview) -> None:
    from rich.console import Console  # noqa: PLC0415 - rich is slower to import than the rest of a plain command

    console = Console(highlight=False, markup=False)
    width, height = console.size if console.is_terminal else (WIDTH, HEIGHT)
    _draw(Console(highlight=False, markup=False, width=width), seen, height)


def _draw(console: Console, seen: Overview, height: int) -> None:
    from thunderagent.cli.live.topview import top_view  # noqa: PLC0415

    console.print(top_view(seen, console.width, height))


def _watch(look: Callable[[], Overview], sleep: Callable[[float], None], every: float) -> None:
    """Draw until Ctrl-C. A table that cannot be read any more is told above what was last seen of it."""
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from thunderagent.cli.live.topview import top_view  # noqa: PLC0415

    console = Console(highlight=False, markup=False)
    with contextlib.suppress(KeyboardInterrupt):
        seen = look()
        with Live(console=console, auto_refresh=False, screen=True) as live:
            while True:
                width, height = console.size
                live.update(top_view(seen, width, height), refresh=True)
                sleep(every)
                seen = _look_again(look, seen)


def _look_again(look: Callable[[], Overview], seen: Overview) -> Overview:
    try:
        return look()
    except StoreError as error:
        return replace(seen, notes=(f"The table could not be read: {error}",))
