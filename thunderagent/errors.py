"""Every error that ThunderAgent raises, in one tree with one root.

A caller who wants to catch whatever this library raises catches :class:`ThunderAgentError`. The branches say whose turn it
is: the caller's (:class:`InvalidInput`), the table's (:class:`StoreError`) or the task's (:class:`TaskStateError`).
"""

from __future__ import annotations


class ThunderAgentError(Exception):
    """The root of the tree. Never raised itself."""


# --- the caller's turn: nothing was written ---------------------------------------------------------------------------


class InvalidInput(ThunderAgentError, ValueError):
    """An argument, a setting or a file is not what it has to be. The message names it and says what would be accepted."""


class InvalidSettings(InvalidInput):
    """A setting is out of its bounds or contradicts another. Correct the flag or the environment variable it names."""


class InvalidPool(InvalidInput):
    """A pool file or resource breaks a rule of its schema. The message starts with the field's path."""


class InvalidHandler(InvalidInput):
    """A handler cannot be imported or is not callable. Check the ``module:name`` that was given and the Python path."""


class InvalidValue(InvalidInput):
    """A payload, result or progress holds something DynamoDB cannot keep without loss. The message names the field."""


class ValueTooLarge(InvalidValue):
    """A payload, result or progress does not fit the item. Put large data elsewhere and enqueue a reference to it."""


# --- the task's turn: the table was reached and said no ----------------------------------------------------------------


class TaskStateError(ThunderAgentError):
    """The task is not in a state in which the request makes sense."""


class NotATask(TaskStateError):
    """An item of the table has a status that no task has: another program keeps something else there. It is left alone."""


class TaskExists(TaskStateError):
    """A task with this taskId was enqueued before. Use another id, or ask ``enqueue`` for the existing task."""


class TaskNotFound(TaskStateError):
    """There is no task with this taskId. It was never enqueued, or DynamoDB's TTL has removed it since it ended."""


class TaskNotCancellable(TaskStateError):
    """The task has already ended; there is nothing left to cancel."""


class TaskNotRedrivable(TaskStateError):
    """Only a FAILED task can be redriven."""


class TaskChanged(TaskStateError):
    """The task kept changing while a cancel or redrive was tried. Read it again and decide anew."""


class DependencyUnknown(TaskStateError):
    """A task of ``depends_on`` is not in the table. Enqueue it first, or pass ``check_dependencies=False``."""


class NoReport(ThunderAgentError):
    """There is nothing to make a report of: the source cannot be asked, or knows nothing of the pool in that time.

    The message says which, and what to do.
    """


class WaitTimeout(ThunderAgentError, TimeoutError):
    """The task had not ended when the time given to ``wait`` was over. It goes on; wait again or look at it."""


class EnqueueIncomplete(ThunderAgentError):
    """Some tasks of an ``enqueue_many`` are not in the table.

    ``enqueued`` and ``existing`` hold the ids that are in it; ``failed`` maps each other id to its error. Calling again
    with the same tasks enqueues only what is missing.
    """

    def __init__(self, enqueued: list[str], existing: list[str], failed: dict[str, ThunderAgentError]) -> None:
        self.enqueued = enqueued
        self.existing = existing
        self.failed = failed
        first_id, first_error = next(iter(failed.items()))
        super().__init__(
            f"{len(failed)} of {len(enqueued) + len(existing) + len(failed)} tasks are not in the table; "
            f"the first, {first_id}: {first_error}. Enqueue the same tasks again to add what is missing."
        )


# --- the table's turn: whether a write went through may be unknown -----------------------------------------------------


class StoreError(ThunderAgentError):
    """The task table did not do what was asked. ``operation`` is DynamoDB's name of the call."""

    def __init__(self, message: str, *, operation: str = "") -> None:
        self.operation = operation
        super().__init__(message)


class StoreUnavailable(StoreError):
    """The table could not be reached or answered with a server error. Retry with back-off; a write may have gone through."""


class StoreThrottled(StoreUnavailable):
    """DynamoDB refused the call for its rate. Retry with back-off; nothing was written."""


class StoreAccessDenied(StoreError):
    """The credentials are missing, expired or not allowed to do this. The message names the call."""


class TableMissing(StoreError):
    """There is no such table in this account and region. ``thunderagent table create`` makes one."""


class TableExists(StoreError):
    """A table of this name is there already, so it was not created. Nothing was changed."""


class LayoutChanged(StoreError):
    """Somebody else is changing the layout of the table. Nothing was changed."""


class IndexMissing(StoreError):
    """The table has no such index, or it is still being built. ``thunderagent table check`` says which."""


class StoreRejected(StoreError):
    """DynamoDB calls the request invalid. Repeating it cannot help."""


class ClockUnknown(StoreError):
    """No reply with a Date header has been seen yet, so the table's time is not known and nothing may be written."""


# --- inside a handler ---------------------------------------------------------------------------------------------------


class LeaseLost(ThunderAgentError):
    """Another agent may have this task now. A handler should stop; what it returns will not be written."""
