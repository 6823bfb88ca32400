"""The handler contract: what a handler is given, what it may return or raise, and how task types find their handler."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sysconfig
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from thunderagent.agent.room import LEAST_ROOM, room_for_result
from thunderagent.errors import InvalidHandler, InvalidSettings, InvalidValue, ValueTooLarge
from thunderagent.settings import setting
from thunderagent.task import ErrorType, Outcome, OutcomeKind, Task, TaskError
from thunderagent.values import decode, encode, size_of

if TYPE_CHECKING:
    from thunderagent.queue import TaskQueue

Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)
R = TypeVar("R")

ONCE = "$once"
"""The key inside ``progress`` under which :meth:`RunningTask.once` keeps what it stored."""


# --- what a handler returns or raises -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """Returned by a handler: the task ends as DONE rather than SUCCESS, with this result."""

    result: Mapping[str, Any] | None = None


class Fail(Exception):
    """Raised (or returned) by a handler: the task ends as FAILED now, without another retry. The message says why."""


class Snooze(Exception):
    """Raised (or returned) by a handler: run the task again in ``seconds``, without charging a retry."""

    def __init__(self, seconds: float) -> None:
        if not 0 <= seconds < 10**9:
            raise InvalidValue(f"Snooze({seconds!r}): give a number of seconds from 0.")
        self.seconds = seconds
        super().__init__(f"again in {seconds:g} s")


class HandlerStopped(BaseException):
    """Raised inside a handler that has to stop now: a time-out, a cancel, the end of a drain. Clean up and let it pass."""


# --- what a handler is given --------------------------------------------------------------------------------------------


class RunLink(Protocol):
    """What a running task asks of the process that holds its lease."""

    def save(self, progress: Mapping[str, Any], *, wait: bool) -> None: ...

    def lease_lost(self) -> bool: ...

    def queue(self) -> TaskQueue: ...


class RunningTask:
    """The task as its handler sees it. ``payload`` comes back as it was enqueued."""

    def __init__(self, task: Task, link: RunLink) -> None:
        self.task_id = task.task_id
        self.task_type = task.task_type
        self.payload: Any = task.payload
        self.retry_count = task.retry_count
        self.max_retry = task.max_retry
        self.created_at = task.created_at
        self._link = link
        self._task = task
        stored = dict(task.progress) if isinstance(task.progress, Mapping) else {}
        self._once: dict[str, Any] = dict(stored.pop(ONCE, {}))
        self._progress: dict[str, Any] | None = stored or None

    @property
    def progress(self) -> dict[str, Any] | None:
        """What the last run of this task saved, or this one so far; None where nothing was."""
        return self._progress

    @property
    def lease_lost(self) -> bool:
        """Whether the lease has ended without a renewal: another agent may have the task, so stop soon and change nothing."""
        return self._link.lease_lost()

    def save(self, progress: Mapping[str, Any], *, wait: bool = False) -> None:
        """Save what a later run should go on from. The table has it within the checkpoint interval, or on return if ``wait``.

        Raises InvalidValue or ValueTooLarge for what the item cannot keep, and LeaseLost (with ``wait``) where it was not saved
        because another agent may have the task.
        """
        self._progress = dict(progress)
        self._store(wait)

    def once(self, function: Callable[..., R], *args: Any, key: str = "once", **kwargs: Any) -> R:
        """Call ``function`` once for this task, however often the task runs: store what it returned, and give that on a repeat.

        The value is in the table before this returns. A crash between the call's own effect and the store of its value repeats
        the call, as with any effect outside the table; where that effect takes an idempotency key, give it ``task_id``. With an
        async function it is to be awaited.
        """
        if inspect.iscoroutinefunction(function):
            return self._once_async(function, args, key, kwargs)  # type: ignore[return-value]
        if key not in self._once:
            self._once[key] = function(*args, **kwargs)
            self._store(wait=True)
        return self._once[key]  # type: ignore[no-any-return]

    async def _once_async(self, function: Callable[..., Any], args: tuple[Any, ...], key: str, kwargs: dict[str, Any]) -> Any:
        if key not in self._once:
            self._once[key] = await function(*args, **kwargs)
            await asyncio.to_thread(self._store, wait=True)  # the other handlers of this process go on meanwhile
        return self._once[key]

    def enqueue(self, payload: Mapping[str, Any] | None = None, **options: Any) -> Task:
        """Enqueue another task on the same table; options as of TaskQueue.enqueue. This agent tries it first."""
        return self.queue.enqueue(payload, **options)

    @property
    def queue(self) -> TaskQueue:
        """The queue that this task came from, to look at other tasks or enqueue many."""
        return self._link.queue()

    def _store(self, wait: bool) -> None:
        progress = dict(self._progress or {})
        if self._once:
            progress[ONCE] = self._once
        self._link.save(plain_map(progress, "progress", self._task), wait=wait)


# --- task types to handlers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeSettings:
    """Settings of one task type; None leaves it to the agent's own."""

    slots: int | None = setting(None, "Tasks of this type at once in one agent.", above=0)
    rate: float | None = setting(None, "Tasks of this type that one agent starts a second.", above=0)
    timeout: float | None = setting(None, "Seconds that one run may take; 0: no limit.", minimum=0)
    retry_base: float | None = setting(None, "First step of the retry delay, in seconds.", above=0)
    retry_cap: float | None = setting(None, "Longest retry delay, in seconds.", above=0)

    def __post_init__(self) -> None:
        for each in fields(self):
            self._check(each.name, getattr(self, each.name))
        if self.retry_base is not None and self.retry_cap is not None and self.retry_base > self.retry_cap:
            raise InvalidSettings("retry_base of a task type must not be above its retry_cap.")

    def _check(self, name: str, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidSettings(f"{name} of a task type is {value!r}; it must be a number.")
        if name == "slots" and not isinstance(value, int):
            raise InvalidSettings(f"slots of a task type is {value!r}; it must be a whole number.")
        if value < 0 or (value == 0 and name != "timeout"):
            raise InvalidSettings(f"{name} of a task type is {value!r}; it must be above 0.")

    def over(self, other: TypeSettings) -> TypeSettings:
        """These settings, and those of ``other`` where these say nothing."""
        return TypeSettings(
            *(b if a is None else a for a, b in ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))
        )


@dataclass(frozen=True, slots=True)
class Route:
    """One handler with the settings of its task type."""

    handler: Handler
    settings: TypeSettings = field(default_factory=TypeSettings)

    @property
    def is_async(self) -> bool:
        call = self.handler if inspect.isfunction(self.handler) else getattr(self.handler, "__call__", self.handler)  # noqa: B004
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(call)


class Router:
    """Handlers by task type::

        router = Router()

        @router.task("report.month", timeout=600, slots=2)
        def month(task): ...

        @router.default
        def anything_else(task): ...

    An agent with a router claims only the types that it knows, or all where there is a default handler.
    """

    def __init__(self) -> None:
        self._routes: dict[str, Route] = {}
        self._default: Route | None = None

    def task(self, *task_types: str, **settings: Any) -> Callable[[H], H]:
        """Register a handler for task types; settings are those of TypeSettings."""
        type_settings = _type_settings(settings)

        def register(handler: H) -> H:
            for task_type in task_types:
                if task_type in self._routes:
                    raise InvalidHandler(f"Two handlers are registered for the task type {task_type!r}.")
                self._routes[task_type] = Route(_callable(handler), type_settings)
            return handler

        if not task_types or not all(task_types):
            raise InvalidHandler("router.task needs the names of one or more task types: @router.task('report').")
        return register

    def default(self, handler: H) -> H:
        """Register the handler of all other tasks, those without a type among them."""
        self._default = Route(_callable(handler))
        return handler

    def route(self, task_type: str | None) -> Route | None:
        return self._routes.get(task_type, self._default) if task_type is not None else self._default

    @property
    def types(self) -> frozenset[str] | None:
        """The types that have a handler; None where a default takes everything."""
        return None if self._default is not None else frozenset(self._routes)

    def table(self) -> RouteTable:
        """What the parent process has to know of the routes: no code, so that it never runs a user's."""
        return RouteTable(
            {name: RouteInfo(route.is_async, route.settings) for name, route in self._routes.items()},
            None if self._default is None else RouteInfo(self._default.is_async, self._default.settings),
        )


@dataclass(frozen=True, slots=True)
class RouteInfo:
    is_async: bool
    settings: TypeSettings


@dataclass(frozen=True, slots=True)
class RouteTable:
    """The routes of a handler without their code."""

    routes: Mapping[str, RouteInfo]
    default: RouteInfo | None

    def info(self, task_type: str | None) -> RouteInfo | None:
        return self.default if task_type is None else self.routes.get(task_type, self.default)

    @property
    def any_async(self) -> bool:
        return any(info.is_async for info in self._infos())

    @property
    def any_sync(self) -> bool:
        return any(not info.is_async for info in self._infos())

    def _infos(self) -> list[RouteInfo]:
        return [*self.routes.values(), *([] if self.default is None else [self.default])]

    def limited_to(self, task_types: Collection[str]) -> RouteTable:
        """Only these task types, where some are named. Raises InvalidHandler for one that has no handler."""
        if not task_types:
            return self
        unknown = sorted(each for each in task_types if self.info(each) is None)
        if unknown:
            raise InvalidHandler(f"The handler takes no tasks of type {', '.join(unknown)}; it knows {', '.join(self.routes)}.")
        return RouteTable({each: info for each in task_types if (info := self.info(each)) is not None}, None)

    def with_settings(self, overrides: Mapping[str, TypeSettings]) -> RouteTable:
        """The table with the settings of some types replaced where the overrides say something."""
        routes = dict(self.routes)
        for name, settings in overrides.items():
            info = self.info(name)
            if info is None:
                raise InvalidSettings(f"types names the task type {name!r}, for which there is no handler.")
            routes[name] = replace(info, settings=settings.over(info.settings))
        return RouteTable(routes, self.default)


def load_handler(name: str) -> Router:
    """The Router that ``module:name`` stands for; a plain callable becomes the default of a new one. Raises InvalidHandler."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InvalidHandler(f"The handler is {name!r}; it must be module:name, such as myapp.tasks:handle.")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise InvalidHandler(
            f"The handler's module {module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InvalidHandler(f"The module {module_name} has no {attribute}.")
        found = getattr(found, part)
    return as_router(found)


def as_router(handler: Handler | Router) -> Router:
    """A router as it is, or a new one with the callable as its default."""
    if isinstance(handler, Router):
        if handler.types is not None and not handler.types:
            raise InvalidHandler("The router has no handlers.")
        return handler
    router = Router()
    router.default(_callable(handler))
    return router


def parse_type_settings(text: str) -> dict[str, TypeSettings]:
    """Settings by task type from JSON text. Raises InvalidSettings for unknown names and for values out of bounds."""
    try:
        value = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidSettings(
            f"types is not valid JSON: {error}. Give an object of task types, each with its settings."
        ) from None
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        raise InvalidSettings('types must be a JSON object of task types, each an object: {"report": {"slots": 2}}.')
    return {name: _type_settings(settings) for name, settings in value.items()}


# --- what a handler did, as an outcome ----------------------------------------------------------------------------------


def outcome_of_return(value: object, task: Task) -> Outcome:
    """The outcome for what a task's handler returned. What cannot be stored fails it without a retry: it would not change."""
    if isinstance(value, Fail | Snooze):
        return outcome_of_exception(value)
    kind, result = (OutcomeKind.DONE, value.result) if isinstance(value, Done) else (OutcomeKind.SUCCESS, value)
    if result is None:
        return Outcome(kind)
    if not isinstance(result, Mapping):
        text = f"The handler returned a {type(result).__name__}; return a dict, None, Done, Fail or Snooze."
        return Outcome(OutcomeKind.FAILED, error=TaskError(ErrorType.RESULT_INVALID, text))
    try:
        return Outcome(kind, plain_map(result, "result", task))
    except InvalidValue as error:
        return Outcome(OutcomeKind.FAILED, error=TaskError(ErrorType.RESULT_INVALID, str(error)))


def outcome_of_exception(error: BaseException) -> Outcome:
    """The outcome for what a handler raised."""
    if isinstance(error, Snooze):
        return Outcome(OutcomeKind.SNOOZED, delay=error.seconds)
    kind = OutcomeKind.FAILED if isinstance(error, Fail) else OutcomeKind.RETRY
    return Outcome(kind, error=describe_error(error))


def describe_error(error: BaseException) -> TaskError:
    """An exception as an error record: its type, its text, and where in the handler's own code it was raised."""
    try:
        text = str.__str__(str(error))  # the handler's own kind of text would run its code in the agent
    except BaseException as broken:  # also SystemExit: a text is nothing to end a process for
        text = f"(its text cannot be made: {type(broken).__name__})"
    where = "" if isinstance(error, Fail) else _where(error)
    return TaskError(type(error).__name__, text + where)


def _where(error: BaseException) -> str:
    """The innermost place in code that is not a library's: that is where its author can look."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)] or frames
    return f" (at {own[-1].filename}:{own[-1].lineno} in {own[-1].name})" if own else ""


_LIBRARIES = (
    "<frozen",
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


def plain_map(value: Mapping[str, Any], name: str, task: Task) -> dict[str, Any]:
    """The map in plain Python types.

    Raises InvalidValue for what DynamoDB cannot keep, ValueTooLarge for more than the task's item has room for.
    """
    encoded = encode(value, name)
    size = size_of(encoded)
    if size > LEAST_ROOM and size > (room := room_for_result(task)):
        raise ValueTooLarge(
            f"{name} is {size:,} bytes and the item has room for {room:,}. Keep large data elsewhere, and a reference here."
        )
    plain: dict[str, Any] = decode(encoded)
    return plain


def _type_settings(settings: Mapping[str, Any]) -> TypeSettings:
    known = {each.name for each in fields(TypeSettings)}
    unknown = sorted(settings.keys() - known)
    if unknown:
        raise InvalidSettings(f"A task type has no setting {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    return TypeSettings(**settings)


def _callable(handler: H) -> H:
    if not callable(handler):
        raise InvalidHandler(f"The handler is a {type(handler).__name__}, which cannot be called.")
    return handler
