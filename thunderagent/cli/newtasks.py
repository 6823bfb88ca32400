"""Tasks to enqueue, as they are written: a payload on the command line, or a file with one task a line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import thunderagent
from thunderagent.cli.jsonvalues import read_json
from thunderagent.errors import EnqueueIncomplete, InvalidInput, StoreError, ThunderAgentError
from thunderagent.task import DEPENDS_ON, dependency_ids
from thunderagent.times import parse_moment, parse_span

if TYPE_CHECKING:
    from thunderagent.queue import NewTask, TaskQueue
    from thunderagent.store.base import Store

CHUNK = 200
"""Lines enqueued at once. Memory is bounded by it, and a dependency may stand at most this far behind the task it holds up."""


# --- one payload --------------------------------------------------------------------------------------------------------


def open_source(source: str) -> AbstractContextManager[BinaryIO]:
    """The bytes of ``@file``, or of stdin for ``-``. Raises InvalidInput for a file that cannot be read."""
    if source == "-":
        return nullcontext(sys.stdin.buffer)
    path = Path(source.removeprefix("@"))
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None


def read_payload(source: str) -> Mapping[str, Any]:
    """The payload that JSON text, ``@file`` or ``-`` gives. Raises InvalidInput."""
    if source != "-" and not source.startswith("@"):
        return _payload(read_json(source))
    with open_source(source) as stream:
        return _payload(read_json(_text(stream.read())))


def _payload(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"the payload is {_kind(value)}; it must be a JSON object")
    return value


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text: byte {error.start + 1} is 0x{raw[error.start]:02x}") from None


# --- one line of many ---------------------------------------------------------------------------------------------------


def read_line(raw: bytes) -> NewTask:
    """The task that a line of JSON describes. Raises InvalidInput, naming the key that is wrong."""
    value = read_json(_text(raw))
    if not isinstance(value, dict):
        raise InvalidInput(f"the line is {_kind(value)}; it must be a JSON object")
    unknown = sorted(value.keys() - KEYS.keys())
    if unknown:
        raise InvalidInput(f"there is no key {unknown[0]!r}; the keys are {', '.join(KEYS)}")
    if "payload" not in value:
        raise InvalidInput("the key 'payload' is missing")
    return thunderagent.NewTask(_payload(value["payload"]), **dict(_given(value)))


def _given(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a NewTask that a line gives, each checked."""
    for key, (field, read) in _READERS.items():
        if value.get(key) is not None:
            try:
                yield field, read(value[key])
            except InvalidInput as error:
                raise InvalidInput(f"{key}: {error}") from None


def _string(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"it is {_kind(value)}; it must be text that is not empty")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"it is {_kind(value)}; it must be a whole number")
    return value


def _time_by(parse: Callable[[str], float]) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InvalidInput(f"it is {_kind(value)}; it must be a number or text")
        return parse(str(value))

    return read


def _ids(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(_string(item) for item in items)


_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "taskId": ("task_id", _string),
    "taskType": ("task_type", _string),
    "queue": ("queue", _string),
    "maxRetry": ("max_retry", _whole),
    "delay": ("delay", _time_by(parse_span)),
    "notBefore": ("not_before", _time_by(parse_moment)),
    "dependsOn": ("depends_on", _ids),
}
"""By key: the field of a NewTask, and what reads it."""

KEYS: Mapping[str, str] = {"payload": "payload", **{key: field for key, (field, _) in _READERS.items()}}
"""The keys that a line may have, and the fields of a NewTask that they give."""


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return "empty text" if value == "" else kinds.get(type(value), "a number")


# --- any number of lines ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineResult:
    """What became of a line: ``enqueued``, ``existing`` (the taskId was in the table) or ``failed`` with an error."""

    line: int
    task_id: str | None
    state: str
    error: str = ""


class EnqueueStopped(ThunderAgentError):
    """The table refused every task of a chunk; nothing after it was tried."""


def enqueue_lines(queue: TaskQueue, lines: Iterable[bytes], *, check_dependencies: bool) -> Iterator[LineResult]:
    """Enqueue a task a line, in chunks, and yield what became of each line. Blank lines are passed over.

    Raises EnqueueStopped when the table cannot be written at all; lines before that are enqueued and were yielded.
    """
    numbered = ((number, raw) for number, raw in enumerate(lines, 1) if raw.strip())
    while chunk := list(islice(numbered, CHUNK)):
        yield from _enqueue_chunk(queue, chunk, check_dependencies)


def _enqueue_chunk(queue: TaskQueue, chunk: list[tuple[int, bytes]], check_dependencies: bool) -> list[LineResult]:
    read: list[tuple[int, NewTask | InvalidInput]] = [(number, _try_line(raw)) for number, raw in chunk]
    tasks = {new.task_id: new for _, new in reversed(read) if not isinstance(new, InvalidInput)}
    refused = _dangling(queue.store, tasks) if check_dependencies else {}
    sent = [new for task_id, new in tasks.items() if task_id not in refused]
    states = dict.fromkeys(refused, "failed") | _enqueue(queue, sent, refused, chunk[0][0])
    results = []
    for number, new in read:
        if isinstance(new, InvalidInput):
            results.append(LineResult(number, None, "failed", str(new)))
            continue
        results.append(LineResult(number, new.task_id, states[new.task_id], refused.get(new.task_id, "")))
        if states[new.task_id] == "enqueued":
            states[new.task_id] = "existing"  # for a later line with the same taskId
    return results


def _try_line(raw: bytes) -> NewTask | InvalidInput:
    try:
        return read_line(raw)
    except InvalidInput as error:
        return error


def _enqueue(queue: TaskQueue, tasks: list[NewTask], refused: dict[str, str], first_line: int) -> dict[str, str]:
    """States by taskId; what fails is added to ``refused`` with its reason."""
    try:
        report = queue.enqueue_many(tasks, check_dependencies=False)
    except InvalidInput as error:  # nothing was written; halves show which task it is
        if len(tasks) == 1:
            refused[tasks[0].task_id] = str(error)
            return _states((), (), refused)
        half = len(tasks) // 2
        return _enqueue(queue, tasks[:half], refused, first_line) | _enqueue(queue, tasks[half:], refused, first_line)
    except EnqueueIncomplete as incomplete:
        if len(incomplete.failed) == len(tasks) and all(isinstance(e, StoreError) for e in incomplete.failed.values()):
            raise _stopped(first_line, next(iter(incomplete.failed.values()))) from incomplete
        refused.update({task_id: str(error) for task_id, error in incomplete.failed.items()})
        return _states(incomplete.enqueued, incomplete.existing, incomplete.failed)
    return _states(report.enqueued, report.existing, ())


def _states(enqueued: Iterable[str], existing: Iterable[str], failed: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(existing, "existing") | dict.fromkeys(failed, "failed") | dict.fromkeys(enqueued, "enqueued")


def _stopped(line: int, error: ThunderAgentError) -> EnqueueStopped:
    return EnqueueStopped(
        f"Stopped at line {line}: {error} Lines before it are done. Running the file again is safe where lines have a taskId."
    )


def _dangling(store: Store, tasks: Mapping[str, NewTask]) -> dict[str, str]:
    """Why tasks are refused that name a dependency which is neither in the table nor among ``tasks``."""
    needs = {task_id: _dependencies(new) for task_id, new in tasks.items()}
    elsewhere = {need for each in needs.values() for need in each} - tasks.keys()
    if not elsewhere:
        return {}
    read = store.get_many(elsewhere)
    return refuse_dangling(needs, elsewhere - read.found.keys() - read.unknown)


def refuse_dangling(needs: Mapping[str, tuple[str, ...]], missing: set[str]) -> dict[str, str]:
    """Reasons by taskId for those that need something ``missing``, or something that is itself refused."""
    refused: dict[str, str] = {}
    while True:
        out = missing | refused.keys()
        more = {task_id: need for task_id, ids in needs.items() if task_id not in refused for need in ids if need in out}
        if not more:
            return refused
        refused |= {
            task_id: f"dependsOn names {need}, which is not in the table. Write it into an earlier line, or pass "
            "--no-check-dependencies."
            for task_id, need in more.items()
        }


def _dependencies(new: NewTask) -> tuple[str, ...]:
    return dependency_ids(new.depends_on) or dependency_ids(new.payload.get(DEPENDS_ON))
