"""The task table: the one room that talks to DynamoDB, and an in-memory adapter that keeps the same contract."""

from thunderagent.store.base import Applied, BatchRead, Cursor, Page, Store

__all__ = ["Applied", "BatchRead", "Cursor", "Page", "Store"]
