"""``thunderagent table``: make the task table, and check it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from thunderagent.cli.check import check
from thunderagent.cli.exits import FAILED, leave
from thunderagent.cli.output import ProgressLine, say
from thunderagent.cli.parameters import TAG, Where, table_options
from thunderagent.cli.surroundings import Surroundings, open_dynamo_store
from thunderagent.errors import StoreError, TableExists
from thunderagent.store.layout import (
    CLASSIC,
    DEFAULT_SHARDS,
    MAX_SHARDS,
    Layout,
    Way,
    checked_queues,
    dispatch_layout,
)

if TYPE_CHECKING:
    from thunderagent.store.dynamo import DynamoStore


def layout_option(default: str | None) -> Callable[[Any], Any]:
    """``--layout``: through which index agents find work."""
    told = "As it is, by default." if default is None else ""
    return click.option(
        "--layout",
        type=click.Choice([str(way) for way in Way]),
        default=default,
        show_default=default is not None,
        help=f"Which index agents find work by: the published one, or one of their own over shards. {told}".strip(),
    )


shards_option = click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    help=f"Partitions that dispatch spreads each queue over, for 500 tasks a second each.  [default: {DEFAULT_SHARDS}]",
)
queues_option = click.option(
    "--queue", "queues", multiple=True, metavar="QUEUE", help="A queue to add beside the default one. May be repeated."
)


@click.group(short_help="Create the task table, check it and change its layout.")
def table() -> None:
    """Create the task table, check it and change its layout."""


table.add_command(check)


@table.command()
@click.option("--deletion-protection", is_flag=True, help="Refuse to delete the table until this is switched off.")
@click.option("--tag", "tags", type=TAG, multiple=True, metavar="KEY=VALUE", help="A tag for the table. May be repeated.")
@layout_option("classic")
@shards_option
@queues_option
@click.option("--if-missing", is_flag=True, help="A table that exists is no error; it is left as it is.")
@table_options
@click.pass_obj
def create(
    surroundings: Surroundings,
    deletion_protection: bool,
    tags: tuple[tuple[str, str], ...],
    layout: str,
    shards: int | None,
    queues: tuple[str, ...],
    if_missing: bool,
    where: Where,
) -> None:
    """Create the task table: its key, the index of its layout, on-demand billing, TTL on expiresAt.

    Prints the table's name once it is ready. A table that exists is never changed; `thunderagent table migrate` does that.
    """
    from thunderagent.store import admin  # noqa: PLC0415 - boto3 takes longer to import than --help may take

    store = open_dynamo_store(surroundings.table(where))
    wanted = _new_layout(layout, shards, queues)
    try:
        admin.create_table(store, layout=wanted, deletion_protection=deletion_protection, tags=dict(tags))
    except TableExists as error:
        if not if_missing:
            raise
        say(str(error))
        _wait(surroundings, store)
        if admin.describe(store).ttl is None:
            say("TTL is off there, so tasks that have ended stay in it; `thunderagent table check` tells how to switch it on.")
    else:
        _wait(surroundings, store)
        if wanted != CLASSIC:
            admin.write_layout(store, wanted)
        _enable_ttl(store)
    click.echo(store.settings.table)


@table.command()
@layout_option(None)
@shards_option
@queues_option
@click.option("--drop-index", is_flag=True, help="In the end, remove the index that no agent reads any more.")
@table_options
@click.pass_obj
def migrate(
    surroundings: Surroundings,
    layout: str | None,
    shards: int | None,
    queues: tuple[str, ...],
    drop_index: bool,
    where: Where,
) -> None:
    """Change the layout of a table, its shards or its queues, while agents work on it.

    It goes in steps, and waits between them until every agent and operator has read the change. Stopped at any moment, the same
    command goes on from there. Every agent has to be of a version that knows layouts. Without an option it looks through the
    table and files what stands in the wrong place.
    """
    from thunderagent.store.migration import Goal, Migration  # noqa: PLC0415

    store = open_dynamo_store(surroundings.table(where))
    way = Way(layout) if layout else store.layout().way
    if way is Way.CLASSIC and shards is not None:
        raise click.UsageError("--shards goes with --layout dispatch: the classic layout has none.")
    with ProgressLine() as line:
        migration = Migration(store, surroundings.sleep, line.show)
        reached = migration.run(Goal(way, shards, queues, drop_index))
    for task_id, why in migration.refused.items():
        say(f"The task {task_id} could not be filed, so no agent finds it: {why}")
    click.echo(_told(store.settings.table, reached))


def _told(name: str, layout: Layout) -> str:
    shards = f", {layout.shards} shards" if layout.keyed else ""
    return f"{name}: layout {layout.way}{shards}, queues {', '.join(layout.queues)}"


def _new_layout(name: str, shards: int | None, queues: tuple[str, ...]) -> Layout:
    if Way(name) is Way.DISPATCH:
        return dispatch_layout(DEFAULT_SHARDS if shards is None else shards, queues)
    if shards is not None:
        raise click.UsageError("--shards goes with --layout dispatch: the classic layout has none.")
    return replace(CLASSIC, queues=checked_queues(queues))


def _wait(surroundings: Surroundings, store: DynamoStore) -> None:
    from thunderagent.store import admin  # noqa: PLC0415

    with ProgressLine() as line:
        admin.wait_until_active(store, surroundings.sleep, report=line.show)


def _enable_ttl(store: DynamoStore) -> None:
    from thunderagent.store import admin  # noqa: PLC0415

    try:
        enabled = admin.enable_ttl(store)
    except StoreError as error:
        say(f"error: the table is there, but TTL could not be switched on: {error} `thunderagent table check` tells how.")
        leave(FAILED)
    if not enabled:
        say("This DynamoDB has no TTL: tasks that have ended stay in the table.")
