"""``thunderagent table``: make the task table, and check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from thunderagent.cli.check import check
from thunderagent.cli.exits import FAILED, leave
from thunderagent.cli.output import ProgressLine, say
from thunderagent.cli.parameters import TAG, Where, table_options
from thunderagent.cli.surroundings import Surroundings, open_dynamo_store
from thunderagent.errors import StoreError, TableExists

if TYPE_CHECKING:
    from thunderagent.store.dynamo import DynamoStore


@click.group(short_help="Create the task table and check it.")
def table() -> None:
    """Create the task table and check it."""


table.add_command(check)


@table.command()
@click.option("--deletion-protection", is_flag=True, help="Refuse to delete the table until this is switched off.")
@click.option("--tag", "tags", type=TAG, multiple=True, metavar="KEY=VALUE", help="A tag for the table. May be repeated.")
@click.option("--if-missing", is_flag=True, help="A table that exists is no error; it is left as it is.")
@table_options
@click.pass_obj
def create(
    surroundings: Surroundings,
    deletion_protection: bool,
    tags: tuple[tuple[str, str], ...],
    if_missing: bool,
    where: Where,
) -> None:
    """Create the task table: its key, the index over status and createdAt, on-demand billing, TTL on expiresAt.

    Prints the table's name once it is ready. A table that exists is never changed.
    """
    from thunderagent.store import admin  # noqa: PLC0415 - boto3 takes longer to import than --help may take

    store = open_dynamo_store(surroundings.table(where))
    try:
        admin.create_table(store, deletion_protection=deletion_protection, tags=dict(tags))
    except TableExists as error:
        if not if_missing:
            raise
        say(str(error))
        _wait(surroundings, store)
        if admin.describe(store).ttl is None:
            say("TTL is off there, so tasks that have ended stay in it; `thunderagent table check` tells how to switch it on.")
    else:
        _wait(surroundings, store)
        _enable_ttl(store)
    click.echo(store.settings.table)


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
