"""``python -m tests.faults``: the trials at their full size, against one stand-in, with what they show."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import click

from tests.faults.load import Findings, kill_agents, lose_replies
from tests.faults.trials import Tally, run_trials
from tests.standins.aws import cut_off_from_aws
from tests.standins.ministack import Ministack
from thunderagent.store.layout import CLASSIC, Layout, Way, dispatch_layout

PER_TABLE = 1_500

PARTS = ("pauses", "replies", "kills")


@click.command()
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="Of the three, these; default: all.")
@click.option("--trials", default=10_000, show_default=True, help="Agents that are paused, robbed and resumed.")
@click.option("--tasks", default=30_000, show_default=True, help="Tasks that run while replies get lost.")
@click.option("--seconds", default=600, show_default=True, help="Time in which agents are killed.")
@click.option("--layout", type=click.Choice([str(way) for way in Way]), default=str(Way.CLASSIC), help="Of replies and kills.")
@click.option("--seed", type=int, default=lambda: int(time.time()), help="Default: the time.")
def main(only: tuple[str, ...], trials: int, tasks: int, seconds: int, layout: str, seed: int) -> None:
    """Trials with real clients and real agents. The exit code is 1 where a promise was broken."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the agents and the stand-in go, too
    cut_off_from_aws(os.environ)
    logging.getLogger("thunderagent").setLevel(logging.CRITICAL)
    click.echo(f"seed {seed}")
    broken = False
    laid = dispatch_layout() if Way(layout) is Way.DISPATCH else CLASSIC
    with Ministack() as server, tempfile.TemporaryDirectory() as folder:
        for part in only or PARTS:
            place = Path(folder) / part
            place.mkdir()
            if part == "pauses":
                broken |= _tell_trials(run_trials(server.endpoint, trials, seed=seed, processes=os.cpu_count() or 1))
            elif part == "replies":
                broken |= _tell("tasks with 5% of replies lost", _lose_replies(server.endpoint, place, tasks, seed, laid))
            else:
                found = kill_agents(server.endpoint, place, seconds=seconds, seed=seed, layout=laid)
                broken |= _tell("tasks with agents killed", found)
    raise SystemExit(1 if broken else 0)


def _lose_replies(endpoint: str, folder: Path, tasks: int, seed: int, layout: Layout) -> Findings:
    """A table of a few thousand tasks after the other: the stand-in goes through all items for a page of the index."""
    found = Findings()
    for start in range(0, tasks, PER_TABLE):
        place = folder / str(start)
        place.mkdir()
        found += lose_replies(endpoint, place, tasks=min(PER_TABLE, tasks - start), seed=seed + start, layout=layout)
        click.echo(
            f"{found.tasks} tasks in {found.seconds:.0f} s: {len(found.stranded)} stranded, {len(found.twice)} run twice",
            err=True,
        )
    return found


def bound(failures: int, count: int) -> str:
    """The share that can be ruled out at 95%, by the rule of three; nothing is said where there were failures."""
    return "" if failures or not count else f" (below {3 / count:.3%} at 95%)"


def _tell_trials(tally: Tally) -> bool:
    stale = len(tally.stale)
    click.echo(
        f"{tally.trials} trials of pause, take-over and resumption in {tally.seconds:.0f} s, "
        f"{tally.trials / tally.seconds:.1f} a second: {stale} stale writes accepted{bound(stale, tally.trials)}"
    )
    for moment, count in sorted(tally.moments.items()):
        click.echo(f"  {count:6d} {moment}")
    click.echo(f"  {tally.first_won:6d} of the races were won by the first agent, before its lease was taken over")
    _list("stale", tally.stale)
    return bool(tally.stale)


def _tell(what: str, found: Findings) -> bool:
    twice = len(found.twice)
    click.echo(
        f"{found.tasks} {what} in {found.seconds:.0f} s, {found.runs} runs, {found.kills} kills, "
        f"{found.lost_replies} replies lost: {len(found.stranded)} stranded, {twice} run twice{bound(twice, found.tasks)}, "
        f"{len(found.unrun)} SUCCESS without a run, {len(found.overcharged)} charged wrongly"
    )
    for name in ("stranded", "twice", "unrun", "overcharged"):
        _list(name, getattr(found, name))
    return not found.is_clean


def _list(name: str, subjects: Iterable[str]) -> None:
    for subject in list(subjects)[:10]:
        click.echo(f"  {name}: {subject}")


if __name__ == "__main__":
    main()
