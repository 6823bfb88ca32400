"""Making a table and describing it, on DynamoDB's stand-ins."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from tests.contract.conftest import ALL_OLD, TABLES, TTL, Table
from thunderagent import transitions
from thunderagent.errors import StoreUnavailable, TableExists, TableMissing
from thunderagent.store.admin import IndexShape, create_table, describe, enable_ttl, wait_until_active
from thunderagent.store.base import CallReport
from thunderagent.store.dynamo import DynamoStore


def no_sleep(seconds: float) -> None:
    """Time does not have to pass: what is waited for takes milliseconds, and each look at it does, too."""


def test_a_new_table_has_the_published_format_and_takes_tasks(table: Table) -> None:
    table.needs(TABLES)
    with closing(table.other(table=f"made-{table.task_id}")) as store:
        create_table(store)
        wait_until_active(store, no_sleep, tries=2000)
        shape = describe(store)

        assert (shape.status, shape.billing, shape.deletion_protection) == ("ACTIVE", "PAY_PER_REQUEST", False)
        assert shape.keys == (("taskId", "HASH"),)
        assert shape.attribute_types == {"taskId": "S", "status": "S", "createdAt": "N"}
        keys = (("status", "HASH"), ("createdAt", "RANGE"))
        assert shape.indexes == (IndexShape("status-createdAt-index", "ACTIVE", keys, "ALL"),)
        assert store.apply(transitions.enqueue("t", {}, now=1, token="E1")).ok


def test_a_table_that_is_there_is_not_made_again(table: Table) -> None:
    table.needs(TABLES)
    assert isinstance(table.store, DynamoStore)
    with pytest.raises(TableExists, match=table.settings.table):
        create_table(table.store)


def test_a_table_that_is_not_there_cannot_be_described_and_never_becomes_active(table: Table) -> None:
    table.needs(TABLES)
    with closing(table.other(table="no-such-table")) as store:
        with pytest.raises(TableMissing):
            describe(store)
        with pytest.raises(StoreUnavailable, match="the table no-such-table"):
            wait_until_active(store, no_sleep, tries=3)


def test_ttl_is_switched_on_for_the_time_at_which_ended_tasks_expire(table: Table) -> None:
    table.needs(TTL)
    assert isinstance(table.store, DynamoStore)
    assert describe(table.store).ttl is None

    assert enable_ttl(table.store)
    assert enable_ttl(table.store), "a second time is no error"
    assert describe(table.store).ttl == "expiresAt"


def test_where_there_is_no_ttl_that_is_said_and_nothing_fails(table: Table) -> None:
    if table.adapter != "dynalite":
        pytest.skip(f"{table.adapter} is not a DynamoDB without TTL")
    assert isinstance(table.store, DynamoStore)

    assert not enable_ttl(table.store)
    assert describe(table.store).ttl is None


def test_every_call_is_reported_with_what_became_of_it(table: Table) -> None:
    table.needs(TABLES)
    reports: list[CallReport] = []
    with closing(DynamoStore(table.settings, observer=reports.append)) as store:
        write = transitions.enqueue(table.task_id, {}, now=1, token="E1")
        store.apply(write)
        store.apply(write)
    elsewhere = replace(table.settings, table="no-such-table")
    with closing(DynamoStore(elsewhere, observer=reports.append)) as missing, pytest.raises(TableMissing):
        missing.get("t")

    results = [(report.operation, report.result) for report in reports]
    layout_read = ("GetItem", "ok")
    assert results[:3] == [layout_read, ("PutItem", "ok"), ("PutItem", "condition_failed")]
    assert results[-1] == ("GetItem", "TableMissing")
    assert reports[1].units > 0


def test_a_failed_condition_costs_no_second_call_where_the_reply_shows_the_item(table: Table) -> None:
    table.needs(ALL_OLD)
    reports: list[CallReport] = []
    with closing(DynamoStore(table.settings, observer=reports.append)) as store:
        write = transitions.enqueue(table.task_id, {}, now=1, token="E1")
        store.apply(write)
        assert store.apply(write).repeated

    assert [report.operation for report in reports if report.operation != "GetItem"] == ["PutItem", "PutItem"]
    assert [report.operation for report in reports].count("GetItem") == 1, "the layout is read once"


def test_a_store_for_renewals_knows_the_time_that_the_other_has_learnt(table: Table) -> None:
    table.needs(TABLES)
    assert isinstance(table.store, DynamoStore)
    table.store.now()
    reports: list[CallReport] = []
    with closing(table.store.for_renewals()) as renewals:
        assert renewals.now() >= table.store.clock.now()
        assert renewals.settings.read_timeout < table.settings.read_timeout
        assert reports == []
