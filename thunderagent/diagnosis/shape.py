"""Rules about the table itself: keys, index, projection, TTL, billing."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.store.layout import DISPATCH_INDEX
from thunderagent.task import Attr

KEYS = ((Attr.TASK_ID.value, "HASH"),)
INDEX_KEYS = ((Attr.STATUS.value, "HASH"), (Attr.CREATED_AT.value, "RANGE"))
KEY_TYPES = {Attr.TASK_ID.value: "S", Attr.STATUS.value: "S", Attr.CREATED_AT.value: "N"}

USABLE = frozenset({"ACTIVE", "UPDATING"})
_NEW_TABLE = "A key cannot be changed. Create a table by another name with `thunderagent table create` and move the items over."
_NEW_INDEX = (
    "An index cannot be changed. Delete it, then add it again: status (S) as HASH, createdAt (N) as RANGE, "
    "projection ALL. Tasks do not run in between."
)


def is_readable(observation: Observation) -> bool:
    """Whether open tasks can be listed."""
    usable = observation.shape is not None and observation.shape.status in USABLE
    if not observation.layout.classic_index:
        index = observation.index_named(DISPATCH_INDEX)
        return usable and index is not None and index.status in USABLE
    index = observation.the_index
    return usable and index is not None and index.status in USABLE and index.keys == INDEX_KEYS and index.projection == "ALL"


def table_state(observation: Observation, _: Patience) -> Iterator[Finding]:
    """The table is there and ACTIVE."""
    if observation.shape is None:
        yield Finding(
            Severity.ERROR,
            "table-missing",
            observation.table,
            "There is no such table in this account and region.",
            "Check --table, --region and --endpoint, or create it with `thunderagent table create`.",
        )
    elif observation.shape.status not in USABLE:
        yield Finding(
            Severity.ERROR,
            "table-not-active",
            observation.table,
            f"The table is {observation.shape.status}.",
            "Wait until it is ACTIVE; one that is DELETING, ARCHIVED or without access to its encryption key needs its owner.",
        )


def keys(observation: Observation, _: Patience) -> Iterator[Finding]:
    """The table's key is taskId, a string."""
    if observation.shape is None:
        return
    if observation.shape.keys != KEYS:
        what = f"The key is {_words(observation.shape.keys)}; it must be {_words(KEYS)} alone."
        yield Finding(Severity.ERROR, "key-wrong", observation.table, what, _NEW_TABLE)
    kind = observation.shape.attribute_types.get(Attr.TASK_ID)
    if kind not in (None, "S"):
        what = f"taskId is of type {kind}; it must be S, a string."
        yield Finding(Severity.ERROR, "key-type-wrong", observation.table, what, _NEW_TABLE)


def index_there(observation: Observation, _: Patience) -> Iterator[Finding]:
    """The index is there, and built."""
    if observation.shape is None or not observation.layout.classic_index:
        return
    index = observation.the_index
    if index is None:
        yield _missing_index(observation)
    elif index.status == "CREATING":
        yield Finding(
            Severity.ERROR,
            "index-building",
            index.name,
            "The index is still being built; until then no task is found.",
            "Wait: DynamoDB fills it from the items that are there, which takes minutes to hours on a large table.",
        )
    elif index.status not in USABLE:
        what = f"The index is {index.status}; no task is found by it."
        yield Finding(Severity.ERROR, "index-not-active", index.name, what, "Wait until it is gone, then add it again.")


def index_keys(observation: Observation, _: Patience) -> Iterator[Finding]:
    """The index is over status and createdAt, a string and a number."""
    index = observation.the_index
    if observation.shape is None or index is None:
        return
    if index.keys != INDEX_KEYS:
        what = f"The index is over {_words(index.keys)}; it must be over {_words(INDEX_KEYS)}."
        yield Finding(Severity.ERROR, "index-keys-wrong", index.name, what, _NEW_INDEX)
    for attr in (Attr.STATUS.value, Attr.CREATED_AT.value):
        kind = observation.shape.attribute_types.get(attr)
        if kind not in (None, KEY_TYPES[attr]):
            what = f"{attr} is of type {kind}; it must be {KEY_TYPES[attr]}. Tasks of the published format are refused."
            yield Finding(Severity.ERROR, "index-key-type-wrong", index.name, what, _NEW_INDEX)


def projection(observation: Observation, _: Patience) -> Iterator[Finding]:
    """The index projects every attribute."""
    index = observation.the_index
    if index is not None and index.projection != "ALL":
        what = f"The index projects {index.projection}; agents read whole tasks from it, so it must be ALL."
        yield Finding(Severity.ERROR, "index-projection-wrong", index.name, what, _NEW_INDEX)


def ttl(observation: Observation, _: Patience) -> Iterator[Finding]:
    """TTL works on expiresAt."""
    if observation.shape is None or observation.shape.ttl == Attr.EXPIRES_AT:
        return
    switch_on = (
        f"aws dynamodb update-time-to-live --table-name {observation.table} --time-to-live-specification "
        "Enabled=true,AttributeName=expiresAt"
    )
    if observation.shape.ttl == "?":
        what = "Whether TTL is on could not be learnt: this DynamoDB has none, or the role may not look."
        remedy = "If it is DynamoDB itself, allow dynamodb:DescribeTimeToLive to see it."
        yield Finding(Severity.INFO, "ttl-unknown", observation.table, what, remedy)
    elif observation.shape.ttl is None:
        what = "TTL is off: tasks that have ended stay in the table for ever."
        yield Finding(Severity.WARNING, "ttl-off", observation.table, what, f"Switch it on: {switch_on}")
    else:
        what = f"TTL works on {observation.shape.ttl}, not on expiresAt: tasks that have ended stay, or open ones go."
        yield Finding(Severity.WARNING, "ttl-other-attribute", observation.table, what, f"Switch it off, then: {switch_on}")


def billing(observation: Observation, _: Patience) -> Iterator[Finding]:
    """Provisioned capacity throttles where on-demand would not."""
    if observation.shape is not None and observation.shape.billing != "PAY_PER_REQUEST":
        what = "The table has provisioned capacity: a burst of tasks may be throttled."
        remedy = "Give table and index capacity for the busiest minute, or switch to on-demand (PAY_PER_REQUEST)."
        yield Finding(Severity.INFO, "billing-provisioned", observation.table, what, remedy)


def _missing_index(observation: Observation) -> Finding:
    others = [] if observation.shape is None else [each.name for each in observation.shape.indexes if each.keys == INDEX_KEYS]
    remedy = (
        f"The index {others[0]} has the right keys: use --index {others[0]}."
        if others
        else ("Add a global secondary index of this name: status (S) as HASH, createdAt (N) as RANGE, projection ALL.")
    )
    what = "The table has no such index; no task is found without it."
    return Finding(Severity.ERROR, "index-missing", observation.index, what, remedy)


def _words(schema: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in schema)
