"""``thunderagent table check``: what is wrong with a table, and what to do about it."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from thunderagent.cli.exits import FAILED, leave
from thunderagent.cli.output import STYLES, Form, on_terminal, output_option, print_json, print_table, printable, say
from thunderagent.cli.parameters import Where, table_options
from thunderagent.cli.surroundings import Surroundings, open_dynamo_store
from thunderagent.diagnosis import Finding, Observation, Severity, diagnose
from thunderagent.diagnosis.finding import named

if TYPE_CHECKING:
    from thunderagent.store.base import CallReport

SHOWN = 3
"""Findings with one code that are shown to people; JSON has them all."""


@click.command()
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="Tasks read of each status.")
@click.option("--scan", type=click.IntRange(1), help="Also scan this many items for those that no index shows.")
@output_option(Form.TABLE, Form.JSON)
@table_options
@click.pass_obj
def check(surroundings: Surroundings, limit: int, scan: int | None, form: Form, where: Where) -> None:
    """Look for what is wrong with the table, its index and its tasks, and say what to do.

    Reads at a bounded cost and changes nothing. The exit code is 1 when there is an error or a warning; an info is none.
    """
    observation = _observe(surroundings, limit, scan, where)
    findings = diagnose(observation)
    if form is Form.JSON:
        print_json(as_json(observation, findings))
    else:
        if findings:
            _print_findings(shortened(findings))
        say(summary(observation, findings))
    if not is_healthy(findings):
        leave(FAILED)


def is_healthy(findings: Iterable[Finding]) -> bool:
    return all(finding.severity is Severity.INFO for finding in findings)


def shortened(findings: Iterable[Finding]) -> list[Finding]:
    """At most :data:`SHOWN` findings of each severity and code, and after them the subjects of the others."""
    alike: dict[tuple[Severity, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        alike[finding.severity, finding.code].append(finding)
    return [shown for group in alike.values() for shown in (*group[:SHOWN], *_rest(group))]


def _rest(group: list[Finding]) -> list[Finding]:
    rest = group[SHOWN:]
    if not rest:
        return []
    what = f"The same of {named([finding.subject for finding in rest])}."
    return [Finding(rest[0].severity, rest[0].code, f"{len(rest)} more", what, "-o json shows all.")]


def summary(observation: Observation, findings: Iterable[Finding]) -> str:
    """What was looked at and how much was found, in one line."""
    counts = Counter(finding.severity for finding in findings)
    tasks = sum(len(sample.tasks) for sample in observation.samples.values())
    found = ", ".join(f"{counts[severity]} {severity}{'s' * (counts[severity] != 1)}" for severity in Severity)
    return f"Checked the table {observation.table} and {tasks} of its tasks: {found}."


def as_json(observation: Observation, findings: Iterable[Finding]) -> dict[str, Any]:
    """Everything found, and what was looked at."""
    return {
        "table": observation.table,
        "index": observation.index,
        "at": observation.now,
        "healthy": is_healthy(findings),
        "read": {str(status): {"tasks": len(each.tasks), "cut": each.cut} for status, each in observation.samples.items()},
        "findings": [asdict(finding) for finding in findings],
    }


def _observe(surroundings: Surroundings, limit: int, scan: int | None, where: Where) -> Observation:
    from thunderagent.diagnosis.read import Effort, Look  # noqa: PLC0415 - boto3 takes longer to import than --help may take

    calls: list[CallReport] = []
    settings = replace(surroundings.table(where), attempts=1)
    store = open_dynamo_store(settings, calls.append)
    look = Look(store, calls, wall=surroundings.wall, sleep=surroundings.sleep, rng=surroundings.rng)
    return look.observe(Effort(limit, scan))


def _print_findings(findings: list[Finding]) -> None:
    """For people, a paragraph each; for grep, a line each."""
    if not on_terminal(sys.stdout):
        rows = [(str(each.severity), each.code, each.subject, f"{each.what} {each.remedy}") for each in findings]
        print_table(("severity", "code", "subject", "finding"), rows)
        return
    for each in findings:
        _print_paragraph(each)


def _print_paragraph(finding: Finding) -> None:
    from rich.console import Console  # noqa: PLC0415 - slow to import, and for terminals alone
    from rich.padding import Padding  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    style = STYLES[str(finding.severity)]
    console = Console(file=sys.stdout, highlight=False, markup=False)
    head = Text.assemble((str(finding.severity), style), "  ", (printable(finding.subject), "bold"), f"  ({finding.code})")
    console.print(head)
    console.print(Padding(Text(printable(finding.what)), (0, 0, 0, 2)))
    console.print(Padding(Text(f"→ {printable(finding.remedy)}", style="italic"), (0, 0, 1, 2)))
