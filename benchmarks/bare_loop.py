"""What an agent is compared with: threads that make the same two conditional writes a task, and do nothing else.

Run as ``python -m benchmarks.bare_loop <table> <endpoint> <threads>`` with taskIds on stdin; prints a JSON object of seconds.
It finds no work, holds no lease, runs no handler, and does not look at what it gets: nobody could make do with less.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LEASE = 300
KEEP = 14 * 86400
OWNER = "-/bare-loop/1-000000"

CLAIM_NAMES = (
    "status",
    "lockTime",
    "lockOwner",
    "lockToken",
    "waitingFor",
    "updatedAt",
    "waitingSince",
    "expiresAt",
)
COMPLETE_NAMES = (
    "status",
    "updatedAt",
    "expiresAt",
    "history",
    "lastToken",
    "lockTime",
    "lockOwner",
    "lockToken",
    "error",
    "progress",
)


def claim_arguments(table: str, task_id: str, token: str, now: int) -> dict[str, Any]:
    """The claim as an agent writes it."""
    return {
        "TableName": table,
        "Key": {"taskId": {"S": task_id}},
        "UpdateExpression": "SET #status = :running, #lockTime = :lease, #lockOwner = :owner, #lockToken = :token, "
        "#waitingFor = :none, #updatedAt = :now REMOVE #waitingSince, #expiresAt",
        "ConditionExpression": "(#status = :pending) AND ((attribute_not_exists(#lockTime)) OR (#lockTime <= :now))",
        "ExpressionAttributeNames": _names(CLAIM_NAMES),
        "ExpressionAttributeValues": {
            ":running": {"S": "RUNNING"},
            ":pending": {"S": "PENDING"},
            ":lease": {"N": str(now + LEASE)},
            ":owner": {"S": OWNER},
            ":token": {"S": token},
            ":none": {"L": []},
            ":now": {"N": str(now)},
        },
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def complete_arguments(table: str, task_id: str, token: str, claimed_at: int, now: int) -> dict[str, Any]:
    """The completion as an agent writes it."""
    run = {
        "owner": {"S": OWNER},
        "began": {"N": str(claimed_at)},
        "ended": {"N": str(now)},
        "outcome": {"S": "success"},
    }
    return {
        "TableName": table,
        "Key": {"taskId": {"S": task_id}},
        "UpdateExpression": "SET #status = :success, #updatedAt = :now, #expiresAt = :expires, #history = :history, "
        "#lastToken = :token REMOVE #error, #lockOwner, #lockTime, #lockToken, #progress",
        "ConditionExpression": "(#status = :running) AND (#lockToken = :token) AND (#lockTime IN (:lease))",
        "ExpressionAttributeNames": _names(COMPLETE_NAMES),
        "ExpressionAttributeValues": {
            ":success": {"S": "SUCCESS"},
            ":running": {"S": "RUNNING"},
            ":now": {"N": str(now)},
            ":expires": {"N": str(now + KEEP)},
            ":history": {"L": [{"M": run}]},
            ":token": {"S": token},
            ":lease": {"N": str(claimed_at + LEASE)},
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _names(attributes: Sequence[str]) -> dict[str, str]:
    return {f"#{attribute}": attribute for attribute in attributes}


class Loop:
    """Threads that share one client and one list of ids."""

    def __init__(self, client: DynamoDBClient, table: str, task_ids: Sequence[str]) -> None:
        self._client = client
        self._table = table
        self._left = iter(task_ids)
        self._lock = threading.Lock()
        self.claimed_at: list[float] = []
        self.completed_at: list[float] = []

    def run(self, threads: int) -> None:
        """Return once all tasks are completed. A write that fails ends its thread, and the tasks are then not all ended."""
        running = [threading.Thread(target=self._work) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def _work(self) -> None:
        while (task_id := self._next()) is not None:
            token, now = uuid.uuid4().hex, int(time.time())
            self._client.update_item(**claim_arguments(self._table, task_id, token, now))
            self.claimed_at.append(time.monotonic())
            self._client.update_item(**complete_arguments(self._table, task_id, token, now, int(time.time())))
            self.completed_at.append(time.monotonic())

    def _next(self) -> str | None:
        with self._lock:
            return next(self._left, None)


def main(arguments: list[str]) -> None:
    """Entry of the process."""
    table, endpoint, threads = arguments
    task_ids = sys.stdin.read().split()
    client = boto3.client("dynamodb", endpoint_url=endpoint, config=Config(max_pool_connections=int(threads)))
    client.get_item(TableName=table, Key={"taskId": {"S": "no-such-task"}})  # an agent has made its first call before, too
    loop = Loop(client, table, task_ids)
    before = time.process_time()
    loop.run(int(threads))
    used = time.process_time() - before
    print(json.dumps({"seconds": loop.completed_at[-1] - loop.claimed_at[0], "cpu_seconds": used}))


if __name__ == "__main__":
    main(sys.argv[1:])
