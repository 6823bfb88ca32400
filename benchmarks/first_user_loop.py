"""What the system's first user ran before: one process that queries, claims, runs and writes, one task at a time.

Run as ``python -m benchmarks.first_user_loop <table> <endpoint> <tasks>``; prints a JSON object of seconds. It reads 10
PENDING tasks, runs them one after the other, and then sleeps: 1 s, or 5 s where it found nothing. It ends after so many tasks.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from benchmarks.handlers import WORK_SECONDS
from thunderagent.settings import TableSettings
from thunderagent.store.dynamo import open_client

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH = 10
BUSY_SLEEP, EMPTY_SLEEP = 1.0, 5.0
LEASE = 300


class Loop:
    """The loop and when it claimed and completed."""

    def __init__(self, client: DynamoDBClient, table: TableSettings) -> None:
        self._client = client
        self._table = table
        self.claimed_at: list[float] = []
        self.completed_at: list[float] = []

    def run(self, tasks: int) -> None:
        """Return once so many tasks are completed."""
        while len(self.completed_at) < tasks:
            found = self._query()
            for item in found:
                self._carry(item["taskId"]["S"])
            if len(self.completed_at) < tasks:
                time.sleep(BUSY_SLEEP if found else EMPTY_SLEEP)

    def _query(self) -> list[dict[str, Any]]:
        return self._client.query(
            TableName=self._table.table,
            IndexName=self._table.index,
            KeyConditionExpression="#status = :pending",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":pending": {"S": "PENDING"}},
            Limit=BATCH,
        )["Items"]

    def _carry(self, task_id: str) -> None:
        if self._claim(task_id):
            self.claimed_at.append(time.monotonic())
            time.sleep(WORK_SECONDS)
            self._complete(task_id)
            self.completed_at.append(time.monotonic())

    def _claim(self, task_id: str) -> bool:
        now = int(time.time())
        try:
            self._client.update_item(
                TableName=self._table.table,
                Key={"taskId": {"S": task_id}},
                UpdateExpression="SET #status = :running, #lockTime = :lease, #updatedAt = :now",
                ConditionExpression="#status = :pending AND (attribute_not_exists(#lockTime) OR #lockTime <= :now)",
                ExpressionAttributeNames={"#status": "status", "#lockTime": "lockTime", "#updatedAt": "updatedAt"},
                ExpressionAttributeValues={
                    ":running": {"S": "RUNNING"},
                    ":pending": {"S": "PENDING"},
                    ":lease": {"N": str(now + LEASE)},
                    ":now": {"N": str(now)},
                },
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def _complete(self, task_id: str) -> None:
        self._client.update_item(
            TableName=self._table.table,
            Key={"taskId": {"S": task_id}},
            UpdateExpression="SET #status = :success, #updatedAt = :now",
            ExpressionAttributeNames={"#status": "status", "#updatedAt": "updatedAt"},
            ExpressionAttributeValues={":success": {"S": "SUCCESS"}, ":now": {"N": str(int(time.time()))}},
        )


def main(arguments: list[str]) -> None:
    """Entry of the process."""
    table, endpoint, tasks = arguments
    settings = TableSettings(table=table, endpoint=endpoint)
    loop = Loop(open_client(settings), settings)
    before = time.process_time()
    loop.run(int(tasks))
    used = time.process_time() - before
    print(json.dumps({"seconds": loop.completed_at[-1] - loop.claimed_at[0], "cpu_seconds": used}))


if __name__ == "__main__":
    main(sys.argv[1:])
