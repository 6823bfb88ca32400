"""docs/aws.md names exactly the actions that are used."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from thunderagent.local.dynamodb import EmbeddedDynamoDB
from thunderagent.settings import TableSettings
from thunderagent.store.admin import create_table
from thunderagent.store.backlog import BacklogReader
from thunderagent.store.base import CallReport, Store
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import dispatch_layout
from thunderagent.task import Status, Task
from thunderagent.transitions import Transition, claim, enqueue

PAGE = Path(__file__).parents[2] / "docs" / "aws.md"
READY = 50


def actions(policy: str) -> set[str]:
    """The actions of DynamoDB that a policy of the page allows; its title stands in a comment before it."""
    found = re.search(rf"^<!-- policy: {policy} -->\n```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, policy
    statements = json.loads(found[1])["Statement"]
    return {action.removeprefix("dynamodb:") for statement in statements for action in statement["Action"]}


@pytest.fixture
def called() -> set[str]:
    """Operations that the store of the test has called."""
    return set()


@pytest.fixture
def store(called: set[str]) -> Iterator[DynamoStore]:
    """A table with more ready tasks than a page of a small pool holds, so that its reading has to go on."""

    def note(report: CallReport) -> None:
        called.add(report.operation)

    with EmbeddedDynamoDB() as server:
        settings = TableSettings(endpoint=server.endpoint)
        with closing(DynamoStore(settings)) as made:
            create_table(made, layout=replace(dispatch_layout(), classic_index=True))
            for number in range(READY):
                made.apply(enqueue(f"ready-{number}", {}, now=made.now(), token="t"))
        with closing(DynamoStore(settings, observer=note)) as found:
            yield found


def test_the_operator_needs_what_a_reading_of_the_backlog_calls(store: DynamoStore, called: set[str]) -> None:
    reader = BacklogReader(store, random.Random(1))
    for needed in (1, 2, READY, 10 * READY):
        reader.read(needed)
    assert called == actions("operator")


def test_an_agent_needs_what_the_store_calls(store: DynamoStore, called: set[str]) -> None:
    """An agent has its table as a Store. Each of that one's methods is called here."""
    uses: dict[str, Callable[[], object]] = {
        "now": store.now,
        "lease_end": lambda: store.lease_end(300),
        "page": lambda: store.page(Status.PENDING, limit=1),
        "layout": store.layout,
        "entries": lambda: store.entries("default#0", limit=1),
        "get": lambda: store.get("ready-0"),
        "get_many": lambda: store.get_many(["ready-0", "ready-1"]),
        "apply": lambda: [store.apply(enqueue("more", {}, now=store.now(), token="t")), store.apply(_claimed(store))],
    }
    assert set(uses) == {name for name in vars(Store) if not name.startswith("_")}
    for use in uses.values():
        use()
    assert called == actions("agent")


def _claimed(store: DynamoStore) -> Transition:
    task = store.get("ready-0")
    assert isinstance(task, Task)
    return claim(task, now=store.now(), lease_end=store.lease_end(300), owner="o", token="t")
