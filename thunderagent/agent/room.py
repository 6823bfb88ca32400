"""How much a run may add to its task's item. Worked out where the handler runs, and only for what is not small anyway."""

from __future__ import annotations

from typing import Any, Final

from thunderagent.errors import InvalidValue
from thunderagent.task import Task
from thunderagent.values import ITEM_BYTES, as_stored, encode, record_size

ROOM_KEPT: Final = 12 * 1024
"""Bytes of an item kept free of result and progress: the error (4 KB), the history (5 runs) and the lease."""

LEAST_ROOM: Final = 1024
"""Bytes of result let through in any case: where another program's task fills its item, the table itself refuses clearly."""

_REPLACED: Final = frozenset({"result", "progress", "error", "history"})


def room_for_result(task: Task) -> int:
    """Bytes of result or progress that the item of a task has room for."""
    kept = {str(name): _stored(value) for name, value in task.record.items() if name not in _REPLACED}
    return max(LEAST_ROOM, ITEM_BYTES - ROOM_KEPT - record_size(kept))


def _stored(value: object) -> Any:
    try:
        return encode(value)
    except InvalidValue:
        return as_stored(value)  # another program's, deeper than a caller of ours may nest
