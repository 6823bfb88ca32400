"""``thunderagent report``: a page about a pool over a time, from a Prometheus or from a local pool's own samples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thunderagent import __version__
from thunderagent.cli.output import say
from thunderagent.cli.parameters import MOMENT, SPAN
from thunderagent.cli.surroundings import Surroundings
from thunderagent.errors import InvalidInput

if TYPE_CHECKING:
    from thunderagent.report.record import Record

STDOUT = "-"


@click.command(short_help="Write a page about a pool over a time: backlog, replicas, waits, outcomes.")
@click.option("--prometheus", metavar="URL", help="The Prometheus to ask, such as http://127.0.0.1:9090.")
@click.option("--samples", metavar="FILE", type=click.Path(path_type=Path), help="What `pool run --samples FILE` has written.")
@click.option("--from", "start", type=MOMENT, help="Where the time begins: ISO 8601 with a zone, or epoch seconds.")
@click.option("--to", "end", type=MOMENT, help="Where it ends.  [default: now, or the last sample]")
@click.option("--last", type=SPAN, help="How long it is, in place of --from.  [default: 1h, or all samples]")
@click.option("--pool", help="The pool.  [default: the only one there is]")
@click.option("--namespace", help="Its namespace in the metrics.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="report.html",
    show_default=True,
    help="The page. A file that is there is replaced; - is stdout.",
)
@click.pass_obj
def report(
    surroundings: Surroundings,
    prometheus: str | None,
    samples: Path | None,
    start: float | None,
    end: float | None,
    last: float | None,
    pool: str | None,
    namespace: str | None,
    out: str,
) -> None:
    """Write one HTML file about a pool: it holds its charts, loads nothing, and can be attached to an incident.

    The figures come from a Prometheus that scrapes the pool, or from the samples that a pool on this machine has written.
    """
    if (prometheus is None) == (samples is None):
        raise click.UsageError("Say where the figures come from: either --prometheus URL or --samples FILE.")
    if start is not None and last is not None:
        raise click.UsageError("--from and --last say the same. Leave one of them out.")
    from thunderagent.report.make import Wanted, record_from_file, record_from_prometheus  # noqa: PLC0415 - for --help

    wanted = Wanted(start, end, last, pool, namespace)
    now = surroundings.wall()
    try:
        record = record_from_file(samples, wanted, now) if samples else record_from_prometheus(str(prometheus), wanted, now)
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
    _write(record, now, out)


def _write(record: Record, now: float, out: str) -> None:
    from thunderagent.report.page import report_page  # noqa: PLC0415

    for note in record.notes:
        say(f"note: {note}")
    page = report_page(record, now, __version__)
    if out == STDOUT:
        sys.stdout.write(page)
        return
    Path(out).write_text(page, encoding="utf-8")
    click.echo(out)
