"""The adapters that the contract suite runs over, and what each of them cannot show."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from boto3.dynamodb.types import TypeDeserializer

from tests.builders import Time, claim, read
from tests.contract.cases import Item, whole
from tests.standins.aws import REGION, client_for
from thunderagent.settings import TableSettings
from thunderagent.store import Store
from thunderagent.store.admin import create_table, wait_until_active, write_layout
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import CLASSIC, Layout, dispatch_layout
from thunderagent.store.memory import MemoryStore
from thunderagent.task import Record, Task
from thunderagent.transitions import Lease

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MEMORY, MOTO, DYNALITE = "memory", "moto", "dynalite"
BOTH_INDEXES = replace(dispatch_layout(shards=2), classic_index=True)
"""A table that is on its way from one layout to the other: every listing of the classic one, and writes that keep both."""

TABLES = "keeping tables that may be missing or lack an index"
INDEX_KEY_TYPES = "refusing an index key of the wrong type"
READ_UNITS = "counting the read units of a query"
LIMIT_CURSOR = "giving a cursor with a page that the limit ended"
BOOL_EQUALITY = "telling true from 1"
MAP_EQUALITY = "comparing maps"
TTL = "switching TTL on"
ALL_OLD = "sending the item along with a failed condition"
REFUSED_UNCHANGED = "leaving an item as it was when an update would make it too large"
SERVER_TIME = "telling the time in a Date header"

LACKS: Mapping[str, Mapping[str, str]] = {
    MEMORY: {
        TABLES: "the in-memory store is one table, which is always there",
        TTL: "the in-memory store removes nothing",
        ALL_OLD: "the in-memory store makes no calls",
        SERVER_TIME: "the in-memory store's time is its clock",
    },
    MOTO: {
        INDEX_KEY_TYPES: "moto takes an index key of any type, and then fails to sort it",
        READ_UNITS: "moto reports 1.0 for every query",
        BOOL_EQUALITY: "moto finds true equal to 1",
        REFUSED_UNCHANGED: "moto updates the item and then refuses its size",
        LIMIT_CURSOR: "moto ends the last page without a cursor, also where the limit ended it",
    },
    DYNALITE: {
        MAP_EQUALITY: "dynalite finds no two maps equal",
        TTL: "dynalite has no UpdateTimeToLive",
        ALL_OLD: "dynalite sends no item with a failed condition",
    },
}
"""What an adapter lacks, and how it shows: these rows of the suite are skipped with that reason. dynalite has no transactions
either, which no store needs."""


@dataclass(frozen=True)
class Table:
    """An adapter over a table that many tests share, an id in it that is this test's own, and ways around the adapter."""

    adapter: str
    store: Store
    client: DynamoDBClient | None
    settings: TableSettings
    task_id: str

    def put(self, *parts: Item, task_id: str | None = None) -> None:
        """Write this test's task (or another one) whole, in DynamoDB's own notation, as another program would."""
        item = whole(task_id or self.task_id, *parts)
        if self.client is not None:
            self.client.put_item(TableName=self.settings.table, Item=item)
            return
        assert isinstance(self.store, MemoryStore)
        self.store.put_record({name: TypeDeserializer().deserialize(value) for name, value in item.items()})

    def read(self) -> Task:
        return read(self.store, self.task_id)

    @property
    def record(self) -> Record:
        return self.read().record

    def claim(self, **options: Any) -> Lease:
        return claim(self.store, self.task_id, **options)

    def needs(self, ability: str) -> None:
        """Skip the test, saying why, where this adapter lacks an ability."""
        if ability in LACKS[self.adapter]:
            pytest.skip(f"{self.adapter} lacks {ability}: {LACKS[self.adapter][ability]}")

    def other(self, **changes: Any) -> DynamoStore:
        """A DynamoStore with other settings on the same server."""
        return DynamoStore(replace(self.settings, **changes))


@contextmanager
def opened(adapter: str, layout: Layout, request: pytest.FixtureRequest) -> Iterator[Table]:
    """An adapter over a table of this layout that is the caller's own."""
    if adapter == MEMORY:
        yield Table(adapter, MemoryStore(Time(), layout), None, TableSettings(), "t")
        return
    endpoint = request.getfixturevalue(f"{adapter}_endpoint")
    with closing(client_for(endpoint)) as client:
        settings = TableSettings(table=f"table-{uuid.uuid4().hex}", region=REGION, endpoint=endpoint, attempts=1)
        with closing(DynamoStore(settings)) as store:
            create_table(store, layout=layout)
            wait_until_active(store, lambda seconds: None, tries=2000)
            if layout != CLASSIC:
                write_layout(store, layout)
            yield Table(adapter, store, client, settings, "t")


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param((adapter, CLASSIC), id=adapter) for adapter in (MEMORY, MOTO, DYNALITE)),
        *(pytest.param((adapter, BOTH_INDEXES), id=f"{adapter} on dispatch") for adapter in (MEMORY, MOTO, DYNALITE)),
    ],
)
def _shared(request: pytest.FixtureRequest) -> Iterator[Table]:
    adapter, layout = request.param
    with opened(adapter, layout, request) as table:
        yield table


@pytest.fixture
def table(_shared: Table) -> Table:
    """Each adapter in turn. The table is not empty, but nothing else has this test's task id."""
    return replace(_shared, task_id=f"t-{next(_ids)}")


@pytest.fixture(params=[MEMORY, MOTO, DYNALITE])
def empty_table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """Each adapter in turn, over a table that is this test's own."""
    with opened(request.param, CLASSIC, request) as table:
        yield table


_ids = itertools.count(1)
