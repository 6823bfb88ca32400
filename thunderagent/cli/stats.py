"""``thunderagent stats``: how many tasks there are, and what the pool has to do, at a bounded cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from thunderagent.cli.output import Form, output_option, print_fields, print_json, print_table
from thunderagent.cli.parameters import Where, table_options
from thunderagent.cli.surroundings import Surroundings
from thunderagent.task import Status
from thunderagent.times import span

if TYPE_CHECKING:
    from thunderagent.queue import Stats
    from thunderagent.store.base import CallReport


@click.command(short_help="Count tasks by status, and what waits for an agent.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="Count up to this many of each status.")
@output_option(Form.TABLE, Form.JSON)
@table_options
@click.pass_obj
def stats(surroundings: Surroundings, limit: int, form: Form, where: Where) -> None:
    """Count tasks by status, and what waits for an agent.

    Each count stops at --limit, which bounds what this costs however large the table is; "1000+" means that there are more.
    """
    calls: list[CallReport] = []
    counted = surroundings.queue(where, calls.append).stats(limit)
    units = sum(call.units for call in calls)
    if form is Form.JSON:
        print_json(as_json(counted, units))
        return
    print_table(("status", "tasks"), [(str(status), _count(counted, status)) for status in Status])
    click.echo()
    print_fields(fields(counted, units))


def fields(counted: Stats, units: float) -> dict[str, str]:
    """The backlog as names and values. A count that was cut carries a plus."""
    backlog = counted.backlog
    more = "+" if backlog.cut else ""
    oldest = f", the oldest for {span(backlog.oldest_ready_age)}" if backlog.ready else ""
    due = f", {backlog.waiting_due}{more} of them due for a look" if backlog.waiting_due else ""
    return {
        "ready": f"{backlog.ready}{more}{oldest}",
        "waiting": f"{backlog.waiting}{more} for other tasks{due}",
        "scheduled": f"{backlog.scheduled}{more} for a time",
        "running": f"{sum(backlog.running.values())}{more} under a lease{_owners(backlog.running)}",
        "expired": f"{backlog.expired}{more} past their lease",
        "read units": f"{units:g}",
    }


def as_json(counted: Stats, units: float) -> dict[str, Any]:
    """The same for programs. ``cut`` names the statuses, and ``backlogCut`` says, where a count is a lower bound."""
    backlog = counted.backlog
    return {
        "at": backlog.at,
        "counts": {str(status): counted.counts[status] for status in Status},
        "cut": sorted(str(status) for status in counted.cut),
        "ready": backlog.ready,
        "waiting": backlog.waiting,
        "waitingDue": backlog.waiting_due,
        "scheduled": backlog.scheduled,
        "running": dict(sorted(backlog.running.items())),
        "expired": backlog.expired,
        "oldestReadyAge": backlog.oldest_ready_age,
        "backlogCut": backlog.cut,
        "readUnits": units,
    }


def _count(counted: Stats, status: Status) -> str:
    return f"{counted.counts[status]}{'+' if status in counted.cut else ''}"


def _owners(running: Mapping[str, int]) -> str:
    lines = [f"\n{count:>5}  {owner or '(no owner)'}" for owner, count in sorted(running.items(), key=lambda item: -item[1])]
    return "".join(lines)
