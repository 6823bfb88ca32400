"""A snapshot as rich draws it: a pure function of the snapshot and of the room there is.

Only the terminal's own colours are used, and none alone carries a meaning, so that it reads the same on dark, on light and
without colours. Every part has a fixed height for a given room: lines that jump cannot be read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from thunderagent.cli.live.bars import bar_rows, columns
from thunderagent.cli.live.snapshot import EndedTask, PoolState, RunningTask, Snapshot, TaskCounts
from thunderagent.cli.output import printable
from thunderagent.task import Status
from thunderagent.times import brief

LABEL = 10
"""Columns before what a line says."""

WIDEST = 140
"""Columns that are used at most: eyes lose the line in wider ones."""

CHART_ROWS = 4
LEAST_LISTED = 2
SENTENCE_ROWS = 2
AGENT, TIME = 24, 6
"""Columns for an agent and for a time."""

MARKS = {Status.SUCCESS: "✓", Status.DONE: "✓", Status.FAILED: "✗"}
COLOURS = {Status.SUCCESS: "green", Status.DONE: "green", Status.FAILED: "red", Status.RUNNING: "cyan"}


@dataclass(frozen=True, slots=True)
class Room:
    """How the lines of a terminal are shared out."""

    width: int
    chart_rows: int
    running: int
    ended: int


def view(snapshot: Snapshot, width: int, height: int) -> RenderableType:
    """The snapshot within ``width`` columns and ``height`` lines (20 at least; of fewer, the lower ones are cut)."""
    room = share_out(snapshot, width, height)
    parts: list[RenderableType] = [_title(snapshot, room.width)]
    for pool in snapshot.pools:
        parts += [Text(), *_pool(pool, room)]
    parts += [Text(), *_counts(snapshot.tasks, room.width)]
    parts += [Text(), *_running(snapshot.running, room), *_ended(snapshot.ended, room)]
    return Group(*parts)


def share_out(snapshot: Snapshot, width: int, height: int) -> Room:
    """Lists take what the fixed parts leave; a high terminal draws the charts higher first."""
    fixed = 1 + 3 + 1  # the title; the counts below an empty line; the empty line above the lists
    per_pool = 2 + SENTENCE_ROWS
    left = height - fixed - len(snapshot.pools) * (per_pool + 2)
    chart_rows = 1
    while chart_rows < CHART_ROWS and left - 2 * len(snapshot.pools) >= 16:
        chart_rows += 1
        left -= 2 * len(snapshot.pools)
    slots = sum(pool.most for pool in snapshot.pools) or len(snapshot.running)
    running = max(LEAST_LISTED, min(slots, left * 2 // 5))
    return Room(min(width, WIDEST), chart_rows, running, max(LEAST_LISTED, left - running))


# --- the parts ----------------------------------------------------------------------------------------------------------


def _title(snapshot: Snapshot, width: int) -> RenderableType:
    line = Table.grid(expand=False)
    line.width = width
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    title = Text(printable(snapshot.title), style="bold")
    if snapshot.note:
        title.append(f"  {printable(snapshot.note)}", style="bold magenta")
    line.add_row(title, Text(clock(snapshot.elapsed)))
    return line


def _pool(pool: PoolState, room: Room) -> Iterable[RenderableType]:
    yield _labelled("pool", _replicas(pool))
    sentence = Text(printable(pool.sentence), style="red" if pool.is_trouble else "")
    yield _exactly(sentence, room.width - LABEL, SENTENCE_ROWS)
    width = room.width - LABEL - 6
    yield from _chart("agents", [each.replicas for each in pool.history], pool.most, width, room.chart_rows, "green")
    work = [each.work for each in pool.history]
    yield from _chart("to do", work, max([*work, 1]), width, room.chart_rows, "cyan")


def _replicas(pool: PoolState) -> Text:
    counts = pool.replicas
    text = Text()
    text.append("●" * min(counts.ready, 40), style="bold green")
    text.append("◐" * min(counts.starting, 40), style="bold cyan")
    text.append("◌" * min(counts.draining, 40), style="bold magenta")
    text.append(" " * max(1, min(pool.most, 40) - counts.total + 2))
    text.append(f"{counts.ready} ready, {counts.starting} starting, {counts.draining} draining")
    wanted = "?" if pool.wanted is None else str(pool.wanted)
    text.append(f" · at most {pool.most}, {wanted} wanted · {printable(pool.name)}")
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _chart(label: str, values: Sequence[int], top: int, width: int, rows: int, style: str) -> Iterable[RenderableType]:
    """A bar a moment over the whole run, with the latest value behind it."""
    lines = bar_rows(columns(values, width), top, rows)
    for number, line in enumerate(lines):
        last = number == rows - 1
        text = Text(line, style=style, no_wrap=True)
        if last and values:
            text.append(f" {values[-1]}", style="bold")
        yield _labelled(label if last else "", text)


def _counts(counts: TaskCounts, width: int) -> Iterable[RenderableType]:
    yield _labelled("tasks", _progress(counts, width - LABEL))
    text = Text(no_wrap=True, overflow="ellipsis")
    for status in (Status.SUCCESS, Status.DONE, Status.FAILED, Status.RUNNING, Status.PENDING):
        count = counts.of(status)
        shown = f"{count}{'+' if status in counts.cut else ''}"
        text.append(f"{shown} {status}", style=COLOURS.get(status, "") if count else "dim")
        text.append("  ")
    if counts.waiting:
        text.append(f"({counts.waiting} waiting)")
    yield _labelled("", text)


def _progress(counts: TaskCounts, width: int) -> RenderableType:
    if not counts.is_whole:
        return Text(f"{counts.total}{'+' if counts.cut else ''} in the table")
    said = Text(f"{counts.ended} of {counts.total} ended ")
    line = Table.grid(padding=(0, 1))
    colour = COLOURS[Status.SUCCESS]
    bar = ProgressBar(
        total=max(counts.total, 1),
        completed=counts.ended,
        width=max(10, width - len(said) - 8),
        style="bright_black",
        complete_style=colour,
        finished_style=colour,
    )
    line.add_row(said, bar, Text(f"{100 * counts.ended // max(counts.total, 1)} %"))
    return line


def _running(tasks: Sequence[RunningTask], room: Room) -> Iterable[RenderableType]:
    """As many lines as there is room for, so that what stands below keeps its place."""
    shown = len(tasks) if len(tasks) <= room.running else room.running - 1
    columns = _columns(room.width, about=AGENT)
    for number in range(room.running):
        label = "running" if number == 0 else ""
        if number < shown:
            yield _running_line(label, tasks[number], columns)
        else:
            more = f"and {len(tasks) - shown} more" if number == shown < len(tasks) else ""
            yield _labelled(label, Text(more, style="dim"))


def _running_line(label: str, task: RunningTask, columns: Columns) -> RenderableType:
    again = f", retry {task.retry}" if task.retry else ""
    return columns.line(
        label,
        Text("▸", style=COLOURS[Status.RUNNING]),
        Text(cut_left(printable(task.task_id), columns.name)),
        Text(f"agent {short_agent(task.agent)}{again}", style="dim"),
        brief(task.seconds),
    )


def _ended(tasks: Sequence[EndedTask], room: Room) -> Iterable[RenderableType]:
    if not tasks:
        yield _labelled("ended", Text("none yet", style="dim"))
    for number, task in enumerate(tasks[: room.ended]):
        colour = COLOURS.get(task.status, "")
        columns = _columns(room.width, about=(room.width - LABEL) // 2 if task.error else len(Status.SUCCESS))
        yield columns.line(
            "ended" if number == 0 else "",
            Text(MARKS.get(task.status, " "), style=colour),
            Text(cut_left(printable(task.task_id), columns.name), style=colour if task.error else ""),
            Text(printable(task.error) if task.error else str(task.status), style="" if task.error else "dim"),
            "" if task.seconds is None else brief(task.seconds),
        )


# --- how lines are made -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a list of tasks: label, mark, name, about it, for how long. Nothing breaks into a second line."""

    name: int
    about: int

    def line(self, label: str, mark: Text, name: Text, about: Text, time: str) -> RenderableType:
        table = Table.grid(padding=(0, 1, 0, 0))
        for width in (LABEL - 1, 1, self.name, self.about):
            table.add_column(width=width, no_wrap=True, overflow="ellipsis")
        table.add_column(width=TIME, justify="right", no_wrap=True)
        table.add_row(Text(label, style="bold"), mark, name, about, time)
        return table


def _columns(width: int, about: int) -> Columns:
    return Columns(name=max(8, width - LABEL - 2 - TIME - about - 2), about=about)


def cut_left(text: str, width: int) -> str:
    """The end of a text that is too long: it is where names of one kind differ."""
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def _labelled(label: str, what: RenderableType) -> RenderableType:
    line = Table.grid()
    line.add_column(width=LABEL, no_wrap=True)
    line.add_column()
    line.add_row(Text(label, style="bold"), what)
    return line


def _exactly(text: Text, width: int, rows: int) -> RenderableType:
    """The text in as many lines as given, whether it needs them or not."""
    lines = textwrap.wrap(text.plain, max(width, 10))
    if len(lines) > rows:
        kept = lines[:rows]
        lines = [*kept[:-1], kept[-1][: width - 1] + "…"]
    lines += [""] * (rows - len(lines))
    return Group(*(_labelled("", Text(line, style=text.style, no_wrap=True)) for line in lines))


def clock(seconds: float) -> str:
    """Minutes and seconds as a stop-watch has them; hours before them once there are some."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def short_agent(owner: str) -> str:
    """What tells the agents of one pool and host apart: the last part of a lockOwner without its random end."""
    return owner.rpartition("/")[2].rpartition("-")[0] or owner
