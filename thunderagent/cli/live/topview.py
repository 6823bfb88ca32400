"""An overview as rich draws it: a pure function of it and of the room there is.

Only the terminal's own colours are used, and none alone carries a meaning. What there is no room for is told as a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from thunderagent.cli.live.overview import AgentRow, FailureRow, Overview, PoolRow, RunRow
from thunderagent.cli.live.view import COLOURS, WIDEST, cut_left
from thunderagent.cli.output import printable
from thunderagent.task import Status
from thunderagent.times import brief, moment, span

LEAST_ROWS = 3
"""Lines of a list that are shown however low the terminal is."""

TROUBLE = "bold red"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list. ``is_number``: to the right; ``is_wide``: takes the room that is left; ``from_width``: columns of the
    terminal from which on there is room for it."""

    title: str
    is_number: bool = False
    is_wide: bool = False
    from_width: int = 0


def top_view(seen: Overview, width: int, height: int) -> RenderableType:
    """The overview within ``width`` columns and ``height`` lines (24 at least; of fewer, the lower ones are cut)."""
    width = min(width, WIDEST)
    lists = [
        *([_pools(seen.pools)] if seen.pools else []),
        _agents(seen.agents, seen.pools or ()),
        _running(seen.running),
        _failures(seen.failures),
    ]
    head = [_title(seen, width), *_numbers(seen), *(_note(note) for note in seen.notes)]
    rows = max(LEAST_ROWS, (height - len(head)) // len(lists) - 2)
    return Group(*head, *(part for each in lists for part in each.draw(width, rows)))


@dataclass(frozen=True, slots=True)
class _List:
    """Rows under titles, the first of which says what they are, cut to the room there is. ``empty`` stands in place of none."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[Text, ...]]
    empty: str

    def draw(self, width: int, rows: int) -> Iterable[RenderableType]:
        yield Text()
        if not self.rows:
            yield Text.assemble((self.columns[0].title, "bold"), (f"  {self.empty}", "dim"))
            return
        shown = self.rows if len(self.rows) <= rows else self.rows[: rows - 1]
        yield self._table(shown, width)
        if len(shown) < len(self.rows):
            yield Text(f"and {len(self.rows) - len(shown)} more", style="dim")

    def _table(self, rows: Iterable[tuple[Text, ...]], width: int) -> RenderableType:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, width=width)
        kept = [number for number, column in enumerate(self.columns) if width >= column.from_width]
        for number in kept:
            column = self.columns[number]
            title = Text(column.title, style="bold" if number == 0 else "dim")
            justify: JustifyMethod = "right" if column.is_number else "left"
            ratio = 1 if column.is_wide else None
            table.add_column(title, justify=justify, ratio=ratio, no_wrap=True, overflow="ellipsis")
        for row in rows:
            table.add_row(*(row[number] for number in kept))
        return table


# --- the parts ----------------------------------------------------------------------------------------------------------


def _title(seen: Overview, width: int) -> RenderableType:
    line = Table.grid(expand=False)
    line.width = width
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    title = Text.assemble(("thunderagent top", "bold"), f"  {printable(seen.table)}")
    line.add_row(title, Text(f"{moment(seen.backlog.at)}  {seen.units:g} read units a look", style="dim"))
    return line


def _numbers(seen: Overview) -> Iterable[RenderableType]:
    statuses = Text(no_wrap=True, overflow="ellipsis")
    for status in (Status.PENDING, Status.RUNNING, Status.SUCCESS, Status.DONE, Status.FAILED):
        count = seen.tasks.of(status)
        statuses.append(
            f"{count}{'+' if status in seen.tasks.cut else ''} {status}   ", COLOURS.get(status, "") if count else "dim"
        )
    yield statuses
    backlog = seen.backlog
    more = "+" if backlog.cut else ""
    oldest = f", the oldest for {span(backlog.oldest_ready_age)}" if backlog.ready else ""
    line = Text(no_wrap=True, overflow="ellipsis")
    if backlog.expired:
        line.append(f"{backlog.expired}{more} past their lease; ", style=TROUBLE)
    line.append(f"{backlog.ready}{more} ready{oldest}; ")
    line.append(f"{backlog.waiting}{more} wait for others, {backlog.scheduled}{more} for a time")
    yield line


def _note(note: str) -> Text:
    return Text(printable(note), style="dim", no_wrap=True, overflow="ellipsis")


def _pools(pools: Sequence[PoolRow]) -> _List:
    columns = (
        Column("Pools"),
        Column("ready"),
        Column("backlog", True),
        Column("oldest", True),
        Column("running", True),
        Column("agents", True),
        Column("min-max", True),
        Column("why", is_wide=True, from_width=100),
    )
    return _List(columns, [_pool(each) for each in pools], "none of this table")


def _pool(pool: PoolRow) -> tuple[Text, ...]:
    is_ready = pool.ready == "True"
    return (
        Text(printable(f"{pool.namespace}/{pool.name}")),
        Text("yes" if is_ready else printable(pool.reason or pool.ready), style="green" if is_ready else TROUBLE),
        Text(str(pool.backlog)),
        Text(brief(pool.oldest) or "-"),
        Text(str(pool.running)),
        Text(f"{pool.available} of {pool.desired}"),
        Text(f"{pool.least}-{pool.most}"),
        Text(printable(pool.why), style="dim"),
    )


def _agents(agents: Sequence[AgentRow], pools: Sequence[PoolRow]) -> _List:
    """An agent's slots are known where its pool is."""
    slots = {f"{pool.namespace}.{pool.name}": pool.slots for pool in pools}
    columns = (
        Column("Agents that run tasks", is_wide=True),
        Column("running", True),
        Column("lost", True),
        Column("oldest", True),
    )
    return _List(columns, [_agent(each, slots.get(each.owner.partition("/")[0])) for each in agents], "none runs a task")


def _agent(agent: AgentRow, slots: int | None) -> tuple[Text, ...]:
    running = str(agent.running) if slots is None else f"{agent.running} of {slots}"
    return (
        Text(printable(agent.owner)),
        Text(running, style=COLOURS[Status.RUNNING] if agent.running else "dim"),
        Text(str(agent.expired or "-"), style=TROUBLE if agent.expired else "dim"),
        Text(brief(agent.longest) or "0s"),
    )


def _running(running: Sequence[RunRow]) -> _List:
    columns = (
        Column("Running tasks", is_wide=True),
        Column("type"),
        Column("age", True),
        Column("lease", True),
        Column("retry", True),
        Column("agent", from_width=80),
    )
    return _List(columns, [_run(each) for each in running], "none")


def _run(task: RunRow) -> tuple[Text, ...]:
    over = task.lease <= 0
    return (
        Text(printable(task.task_id)),
        Text(printable(task.task_type) or "-"),
        Text(brief(task.age) or "0s"),
        Text(f"over {brief(task.lease)}".strip() if over else brief(task.lease), style=TROUBLE if over else ""),
        Text(str(task.retry or "-")),
        Text(cut_left(printable(task.owner), 28), style="dim"),
    )


def _failures(failures: Sequence[FailureRow]) -> _List:
    columns = (Column("Last failures"), Column("type"), Column("ago", True), Column("error", is_wide=True))
    rows = [
        (
            Text(cut_left(printable(each.task_id), 36)),
            Text(printable(each.task_type) or "-"),
            Text(brief(each.ago) or "0s"),
            Text(printable(each.error), style="red"),
        )
        for each in failures
    ]
    return _List(columns, rows, "none")
