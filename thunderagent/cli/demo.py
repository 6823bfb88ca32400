"""``thunderagent demo``: the example of the source tree, run on this machine alone."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

import click

import thunderagent
from thunderagent.cli.exits import FAILED, leave
from thunderagent.cli.output import say
from thunderagent.cli.surroundings import Surroundings

ROOT = Path(thunderagent.__file__).parents[1]
"""The source tree. An installed package has no examples beside it."""

NEEDED = ("moto", "flask", "flask_cors", "matplotlib", "jinja2", "markupsafe")
SAMPLES = "vega_datasets"


@click.command(short_help="Watch a pool grow from zero, make reports, and shrink to zero.")
@click.option(
    "--input", "folder", type=click.Path(path_type=Path), help="A folder of CSV files to report on, in place of the samples."
)
@click.option(
    "--work", type=click.Path(path_type=Path), default=Path("demo-output"), show_default=True, help="Folder for pages and log."
)
@click.option("--keep-open", is_flag=True, help="When all is done, keep the table until Ctrl-C, to be looked at.")
@click.pass_obj
def demo(surroundings: Surroundings, folder: Path | None, work: Path, keep_open: bool) -> None:
    """Make reports from CSV files by a pool of 0 to 4 agents, with an embedded DynamoDB; nothing leaves this machine.

    The pool starts at zero, grows when it sees the tasks, and is back at zero when all have ended; the demo then says where the
    pages are. One of the sample files is broken on purpose, to show how a task fails.
    """
    _check_source_tree()
    _check_packages(() if folder else (SAMPLES,))
    sys.path.insert(0, str(ROOT))
    example = importlib.import_module("examples.reports.demo")  # no import statement: the wheel must not depend on it
    try:
        leave(example.run_demo(example.Options(work, folder, keep_open), surroundings.environ))
    except example.NoInput as error:
        raise click.UsageError(str(error)) from None


def _check_source_tree() -> None:
    if not (ROOT / "examples" / "reports" / "demo.py").is_file():
        say("error: The demo is in the source tree, not in the package. Clone the repository and run `make demo` there.")
        leave(FAILED)


def _check_packages(more: tuple[str, ...]) -> None:
    missing = [name for name in (*NEEDED, *more) if find_spec(name) is None]
    if missing:
        say(f"error: The demo needs {', '.join(missing)}. `make demo` installs all it needs, or: pip install -e '.[demo]'")
        leave(FAILED)
