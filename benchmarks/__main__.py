"""``python -m benchmarks``: measure everything and print one table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks import (
    backlog_reads,
    cost,
    fleet,
    hidden_task,
    idle,
    operator,
    renewals,
    report,
    rerun,
    startup,
    throughput,
    versus_first_user,
    write_units,
)
from benchmarks.processes import require_linux
from benchmarks.report import Figure
from benchmarks.servers import Server, dynalite, embedded, ministack
from tests.cluster.settings import from_environment
from tests.standins.aws import cut_off_from_aws


@dataclass(frozen=True, slots=True)
class Effort:
    """How often and how long is measured. Fewer pairs mean more noise, never another method."""

    throughput_pairs: int = 7
    versus_pairs: int = 3
    versus_tasks: int = 160
    idle_seconds: float = 120.0
    startup_pairs: int = 15
    scale_rounds: int = 20
    rerun_tries: int = 50
    renewal_seconds: float = 10.0
    fleet_pairs: int = 3
    waiting: int = hidden_task.WAITING


SHORT = Effort(
    throughput_pairs=2,
    versus_pairs=1,
    versus_tasks=80,
    idle_seconds=10.0,
    startup_pairs=3,
    scale_rounds=3,
    rerun_tries=5,
    renewal_seconds=3.0,
    fleet_pairs=1,
    waiting=10_000,
)


@click.command()
@click.option("--short", is_flag=True, help="Fewer repetitions: about two minutes, and noisier.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write the figures here.")
def main(short: bool, json_file: Path | None) -> None:
    """Measure ThunderAgent beside what it is compared with. Goals are printed, and a missed one is no error."""
    require_linux()
    cut_off_from_aws(os.environ)
    figures = []
    for figure in measure_all(SHORT if short else Effort()):
        click.echo(f"{figure.name}: {figure.value_text} {figure.verdict}".rstrip(), err=True)
        figures.append(figure)
    report.print_table(figures, report.console())
    if json_file is not None:
        json_file.write_text(report.as_json(figures), encoding="utf-8")


def measure_all(effort: Effort) -> Iterator[Figure]:
    """Every figure, as it comes."""
    yield from write_units.measure()
    yield from backlog_reads.measure()
    yield from cost.measure()
    yield from hidden_task.measure(effort.waiting)
    yield from rerun.measure(effort.rerun_tries)
    yield from startup.measure(effort.startup_pairs)
    with embedded() as server:
        yield from throughput.measure(server, effort.throughput_pairs)
        yield from idle.measure(server, effort.idle_seconds)
        yield from _measure_operator(server, effort.scale_rounds)
    with dynalite() as other:
        if other is not None:
            yield from throughput.measure(other, effort.throughput_pairs)
    with ministack() as fastest:
        if fastest is not None:
            yield from throughput.measure(fastest, effort.throughput_pairs)
            yield from fleet.measure(fastest, effort.fleet_pairs)
            yield from renewals.measure(fastest, effort.renewal_seconds)
            yield from versus_first_user.measure(fastest, effort.versus_tasks, effort.versus_pairs)


def _measure_operator(server: Server, rounds: int) -> Iterator[Figure]:
    programs = from_environment(os.environ).state / "bin"
    if (programs / "kube-apiserver").exists():
        yield from operator.measure(server, programs, rounds)
    else:
        click.echo("No API server has been built (make cluster-up); the operator's rows are left out.", err=True)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
