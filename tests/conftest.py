"""What every test may use: DynamoDB stand-ins, one of each kind per test process, and fresh tables in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NoReturn

import pytest

from tests.standins.aws import FreshTable, client_for, create_task_table, cut_off_from_aws
from tests.standins.dynalite import Dynalite, StandInUnavailable
from thunderagent.local.dynamodb import EmbeddedDynamoDB

# Now, not in a fixture: test modules are imported before any fixture runs, and processes that tests start inherit it.
cut_off_from_aws(os.environ)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """The endpoint of an embedded DynamoDB that all tests of this process share; take fresh tables from it."""
    with EmbeddedDynamoDB() as embedded:
        yield embedded.endpoint


@pytest.fixture(scope="session")
def dynalite_endpoint() -> Iterator[str]:
    """The endpoint of a dynalite that all tests of this process share. Skips where it cannot run; fails under CI=true."""
    with ExitStack() as stack:
        try:
            dynalite = stack.enter_context(Dynalite())
        except StandInUnavailable as unavailable:
            skip_or_fail(str(unavailable))
        yield dynalite.endpoint


@pytest.fixture(params=["moto", "dynalite"])
def standin_endpoint(request: pytest.FixtureRequest) -> str:
    """The endpoint of each stand-in in turn."""
    endpoint: str = request.getfixturevalue(f"{request.param}_endpoint")
    return endpoint


@pytest.fixture
def fresh_table(standin_endpoint: str) -> Iterator[FreshTable]:
    """A client and the name of a new, empty task table of the published format, on each stand-in in turn."""
    yield from _table_at(standin_endpoint)


@pytest.fixture
def fresh_moto_table(moto_endpoint: str) -> Iterator[FreshTable]:
    """The same on the embedded DynamoDB alone, for tests that are not about what DynamoDB does."""
    yield from _table_at(moto_endpoint)


def _table_at(endpoint: str) -> Iterator[FreshTable]:
    client = client_for(endpoint)
    try:
        yield FreshTable(client, create_task_table(client))
    finally:
        client.close()


def skip_or_fail(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
