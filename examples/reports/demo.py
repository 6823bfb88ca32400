"""How an application embeds all of ThunderAgent in one process: DynamoDB, the tasks, a pool of agents, and a view of them.

``thunderagent demo`` calls :func:`run_demo`. Only the agents are processes of their own; they end with this one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rich.console import Console

from examples.reports.index import make_index
from examples.reports.plan import Plan, make_plan
from examples.reports.samples import CORRUPT_NAME, NoInput, input_files, sample_files, write_corrupt
from examples.reports.summary import Made, Result, summary
from examples.reports.workdir import WorkDir, open_workdir
from thunderagent import TaskQueue, __version__
from thunderagent.cli.dynamodb import settings_for
from thunderagent.cli.live.collect import Look, PoolHistory, TaskFollower, replicas_in
from thunderagent.cli.live.screen import Screen
from thunderagent.cli.live.snapshot import PoolState, Replicas, Snapshot, TaskCounts
from thunderagent.errors import StoreError, ThunderAgentError
from thunderagent.local.dynamodb import EmbeddedDynamoDB
from thunderagent.local.pool import LocalPool, PoolView
from thunderagent.local.samples import Sampler
from thunderagent.pool import Pool, load_pool
from thunderagent.report.make import Wanted, record_from_file
from thunderagent.report.page import report_page
from thunderagent.report.samplefile import SampleFile
from thunderagent.settings import TableSettings, from_environment
from thunderagent.store import admin
from thunderagent.store.dynamo import DynamoStore

__all__ = ["NoInput", "Options", "Unfinished", "run_demo"]

POOL_FILE = Path(__file__).with_name("pool.yaml")
ROOT = Path(__file__).parents[2]

LOOK_SECONDS = 1.0
"""Between two looks at the table. The embedded DynamoDB answers one call at a time, and the agents need it too."""

STALLED_SECONDS = 180.0
"""Without any task beginning or ending, after which the demo gives up. A run may take 60 s by the pool's file."""

FAILED_STARTS = 8
"""Agents in a row that end before they are ready, after which the demo gives up."""

SIGNALLED = 128
"""Exit code of a program that a signal has ended: this and the signal's number, as shells have it."""


class Unfinished(ThunderAgentError):
    """The demo could not go to its end. The message says what was seen and where to look."""


@dataclass(frozen=True, slots=True)
class Options:
    """``input``: a folder of CSV files, None for the samples. ``keep_open``: keep the table when all is done."""

    work: Path
    input: Path | None = None
    keep_open: bool = False


class Ending(Enum):
    """Why the pool was told to stop."""

    DONE = auto()
    STALLED = auto()
    NO_AGENTS = auto()
    SIGNAL = auto()


# --- the whole of it ----------------------------------------------------------------------------------------------------


def run_demo(options: Options, environ: Mapping[str, str]) -> int:
    """Run the demo to its end, told and drawn on stdout, and return the exit code: 0, or 128 and a signal's number.

    Raises NoInput, InvalidInput for a work folder that is not ours, Unfinished, StoreError.
    """
    screen = Screen(Console())
    own = own_environment(environ)
    with ExitStack() as stack:
        stack.enter_context(_environment(own))
        workdir = stack.enter_context(open_workdir(options.work))
        plan = _plan(options, workdir, screen)
        log = stack.enter_context(workdir.log.open("ab"))
        stack.enter_context(_logging_to(log))
        embedded = stack.enter_context(EmbeddedDynamoDB())
        screen.say(f"DynamoDB  embedded, at {embedded.endpoint}; it keeps nothing")
        pool = load_pool(POOL_FILE)
        settings = from_environment(TableSettings, own, **pool.table_settings(), endpoint=embedded.endpoint)
        store = DynamoStore(settings)
        stack.callback(store.close)
        _enqueue(store, plan, screen)
        sampler = Sampler(pool, stack.enter_context(SampleFile(workdir.samples)), time.time)
        agents = {**own, "THUNDERAGENT_ENDPOINT": embedded.endpoint}
        demo = Demo(pool, store, agents, plan, screen, log, sampler)
        screen.say(f"pool      {_relative(POOL_FILE)}; it grows once it sees the work")
        screen.say(f"log       {_relative(workdir.log)}; what the agents write goes there\n")
        code = _conclude(options, asyncio.run(demo.run()), demo, workdir, plan, screen)
        if options.keep_open and code == 0:
            _keep_open(settings, screen)
        return code


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without the user's AWS and ThunderAgent settings: nothing of theirs is to be touched.

    A client needs some credentials and a region, and must not look for others; calls to this machine take no proxy.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(("AWS_", "THUNDERAGENT_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), environ.get("PYTHONPATH", ""))))
    return {
        **kept,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "PYTHONPATH": path,
        "PYTHONSAFEPATH": "1",  # an `examples` of the folder the user stands in is not this one
    }


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """boto3 takes credentials and proxies from nowhere but the process's environment."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _logging_to(log: BinaryIO) -> Iterator[None]:
    """What this process logs goes where its agents write, not over the view."""
    root, level = logging.getLogger(), logging.getLogger().level
    stream = open(os.dup(log.fileno()), "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - closed below
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        stream.close()


# --- before the pool ----------------------------------------------------------------------------------------------------


def _plan(options: Options, workdir: WorkDir, screen: Screen) -> Plan:
    screen.say("demo      reports from CSV files, by a pool of 0 to 4 agents on this machine\n")
    files = _input(options, workdir, screen)
    plan = make_plan(files, workdir.path)
    made = [Path(task.payload[name]) for task in plan.tasks for name in ("database", "page") if name in task.payload]
    workdir.own([*dict.fromkeys(made), workdir.log, workdir.samples, workdir.pool_page])
    reports = len(plan.tasks) - len(files) - 1
    screen.say(f"tasks     {len(files)} imports, {reports} reports that need their imports, 1 index page")
    return plan


def _input(options: Options, workdir: WorkDir, screen: Screen) -> list[Path]:
    if options.input is not None:
        files = input_files(options.input)
        screen.say(f"input     {len(files)} CSV file{'' if len(files) == 1 else 's'} in {options.input}")
        return files
    corrupt = workdir.path / "input" / CORRUPT_NAME
    workdir.own([corrupt])
    screen.say(f"input     CSV files of vega_datasets, and {CORRUPT_NAME}, broken on purpose")
    return [*sample_files(), write_corrupt(corrupt.parent)]


def _enqueue(store: DynamoStore, plan: Plan, screen: Screen) -> None:
    admin.create_table(store)
    admin.wait_until_active(store, time.sleep)
    admin.enable_ttl(store)
    began = time.monotonic()
    TaskQueue(store=store).enqueue_many(plan.tasks)
    seconds = time.monotonic() - began
    screen.say(f"table     {store.settings.table}, with {len(plan.tasks)} tasks enqueued in {seconds:.1f} s, and no agent yet")


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


# --- while the pool runs ------------------------------------------------------------------------------------------------


class Demo:
    """The pool, watched until its tasks have ended and it is back at zero."""

    def __init__(
        self,
        pool: Pool,
        store: DynamoStore,
        environ: Mapping[str, str],
        plan: Plan,
        screen: Screen,
        log: BinaryIO,
        sampler: Sampler,
    ) -> None:
        # SIGKILL: the table dies with this process, so an agent that drained could not write what it had done.
        self._pool = LocalPool(pool, store, environ, on_cycle=self._on_cycle, agent_output=log, orphaned=signal.SIGKILL)
        self._sampler = sampler
        self._history = PoolHistory(pool.spec.scaling.max_replicas)
        self._state = PoolState(pool.name, Replicas(), pool.spec.scaling.max_replicas)
        self._follower = TaskFollower(store, [task.task_id for task in plan.tasks])
        self._look = Look(TaskCounts(is_whole=True), (), ())
        self._screen = screen
        self._failed_starts = 0
        self._seen: object = None
        self._seen_at = self._began = time.monotonic()
        self._ending: Ending | None = None
        self.signal: signal.Signals | None = None
        self.seconds = 0.0
        self.tasks = self._follower.ended

    @property
    def most_agents(self) -> int:
        return self._history.peak

    @property
    def failed_starts(self) -> int:
        return self._failed_starts

    async def run(self) -> Ending:
        """Run the pool until there is nothing left to do, nothing goes on any more, or a signal; then until it has drained."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, partial(self._on_signal, number))
        running = asyncio.create_task(self._pool.run())
        with self._screen:
            while not running.done():
                await self._show()
                self._stop_if_over()
                await asyncio.wait({running}, timeout=LOOK_SECONDS)
            await running
            await self._show()
        self.seconds = time.monotonic() - self._began
        return self._ending or Ending.SIGNAL

    async def _show(self) -> None:
        with suppress(StoreError):  # it is busy; what was known is shown, and the next look comes in a second
            self._look = await asyncio.to_thread(self._follower.look)
        state = replace(self._state, replicas=replicas_in(self._pool.states()))
        elapsed = time.monotonic() - self._began
        note = "Stopping: agents finish what they run. Ctrl-C again hurries them." if self.signal else ""
        look = self._look
        self._screen.show(Snapshot("thunderagent demo", elapsed, (state,), look.counts, look.running, look.ended, note))

    def _on_cycle(self, view: PoolView) -> None:
        self._state = self._history.add(view, time.monotonic() - self._began)
        self._failed_starts = view.failures
        self._sampler.tell(view)

    def _on_signal(self, number: signal.Signals) -> None:
        self.signal = self.signal or number
        self._ending = Ending.SIGNAL
        self._pool.stop()

    def _stop_if_over(self) -> None:
        if self._ending is None and (ending := self._judge()) is not None:
            self._ending = ending
            self._pool.stop()

    def _judge(self) -> Ending | None:
        if self._follower.all_ended and self._state.target == 0 and not sum(self._pool.states().values()):
            return Ending.DONE
        if self._failed_starts >= FAILED_STARTS:
            return Ending.NO_AGENTS
        seen = (len(self._follower.ended), [(each.task_id, each.agent, each.retry) for each in self._look.running])
        if seen != self._seen or self._follower.all_ended:
            self._seen, self._seen_at = seen, time.monotonic()
        return Ending.STALLED if time.monotonic() - self._seen_at > STALLED_SECONDS else None


# --- after the pool -----------------------------------------------------------------------------------------------------


def _conclude(options: Options, ending: Ending, demo: Demo, workdir: WorkDir, plan: Plan, screen: Screen) -> int:
    match ending:
        case Ending.DONE:
            expected = "" if options.input else f"{CORRUPT_NAME} is broken on purpose"
            _write_pool_page(workdir)
            result = _result(demo, workdir, plan, expected)
            screen.say("\n" + "\n".join(summary(result)))
            return 0
        case Ending.SIGNAL:
            ended = f"{len(demo.tasks)} of {len(plan.tasks)} tasks had ended"
            screen.say(f"\nStopped: {ended}, no agent is left. What was made is in {workdir.path}")
            return SIGNALLED + (demo.signal or signal.SIGINT)
        case Ending.NO_AGENTS:
            raise Unfinished(f"Agents end before they are ready. {workdir.log} says why; its last line:\n{_last_line(workdir)}")
        case Ending.STALLED:
            raise Unfinished(f"For {STALLED_SECONDS:g} s no task began or ended. See what the agents wrote to {workdir.log}")


def _result(demo: Demo, workdir: WorkDir, plan: Plan, expected: str) -> Result:
    in_order = {task.task_id: demo.tasks[task.task_id] for task in plan.tasks}
    failures = make_index(in_order, plan.index_page, datetime.now(UTC)).failures
    pages = Made(plan.index_page, workdir.pool_page, workdir.log)
    return Result(in_order, failures, demo.seconds, demo.most_agents, pages, expected)


def _write_pool_page(workdir: WorkDir) -> None:
    """What `thunderagent report` makes of the pool's samples."""
    now = time.time()
    page = report_page(record_from_file(workdir.samples, Wanted(), now), now, __version__)
    workdir.pool_page.write_text(page, encoding="utf-8")


def _last_line(workdir: WorkDir) -> str:
    lines = [
        line for line in workdir.log.read_text(errors="replace").splitlines() if "InvalidHandler" in line or "rror" in line
    ]
    return lines[-1] if lines else "nothing"


def _keep_open(settings: TableSettings, screen: Screen) -> None:
    """Leave the table to other shells until Ctrl-C."""
    screen.say("\nThe table stays until Ctrl-C. To look at it from another shell:\n")
    screen.say(f"{settings_for(str(settings.endpoint))}\nexport THUNDERAGENT_TABLE={settings.table}")
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
