"""Trials of one promise: an agent that was paused for longer than its lease, and comes back, changes nothing.

In each trial one agent claims a task and is paused; its lease ends; another one takes the task over; and the first one writes
as if nothing had happened, at a moment and in a way drawn at random. The claims, the renewals and the writes are those of real
agents, through boto3 and HTTP; whether a stale one was accepted is read from the table. No seconds need pass: the fault proxy
makes the Date header by which agents tell the time, so an hour is over when a trial says so.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from time import perf_counter
from typing import Any, Final

from prometheus_client import CollectorRegistry

from tests.faults.plan import Delay, Gate, Rule
from tests.faults.proxy import FaultProxy
from tests.integration.calls import task_id, written
from tests.standins.aws import REGION, client_for, create_task_table
from thunderagent import AgentSettings, Status, Task, TaskQueue
from thunderagent.agent.claims import Claims
from thunderagent.agent.events import Events
from thunderagent.agent.held import Held
from thunderagent.agent.runner import RunEnd
from thunderagent.agent.table import Contact, Table
from thunderagent.agent.threads import CallThreads
from thunderagent.metrics import AgentMetrics
from thunderagent.settings import TableSettings
from thunderagent.store.clock import TableClock, monotonic
from thunderagent.store.dynamo import DynamoStore
from thunderagent.task import Attr, Outcome, OutcomeKind, TaskError
from thunderagent.transitions import Lease

SETTINGS: Final = AgentSettings()
PAUSE: Final = SETTINGS.lease + 5.0
"""Seconds for which an agent is paused: its lease has certainly ended, by the most cautious clock."""

BATCH: Final = 40
"""Trials under way at once in one process. They share a clock, so they are paused together."""

THREADS: Final = BATCH + 1
"""Calls under way at once: those that the network holds must leave room for the others."""


class Moment(StrEnum):
    """When the agent that was paused writes."""

    RUNNING = "while the other one runs the task"
    ENDED = "after the other one has ended it"
    REDRIVEN = "after it failed, was redriven, and was claimed once more"
    RACE = "at the same moment as the other one takes it over"
    LATE = "before its pause, and the network delivers it after"


RENEWS: Final = "renews"
WRITES: Final[Mapping[str, Outcome | None]] = {
    RENEWS: None,
    **{
        kind.value: Outcome(kind, {"by": "first"} if kind is OutcomeKind.SUCCESS else None, error, 0.0)
        for kind, error in (
            (OutcomeKind.SUCCESS, None),
            (OutcomeKind.DONE, None),
            (OutcomeKind.RETRY, TaskError("ValueError", "late")),
            (OutcomeKind.FAILED, TaskError("ValueError", "late")),
            (OutcomeKind.RELEASED, None),
            (OutcomeKind.SNOOZED, None),
        )
    },
}
"""What it writes: a renewal with progress, or the end of its run."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of some trials. ``stale``: the tasks in which a stale write was accepted, with what was tried."""

    moments: Counter[str] = field(default_factory=Counter)
    first_won: int = 0
    """Races in which the agent's write arrived before the take-over, which was refused then. No write of these was stale."""
    stale: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def trials(self) -> int:
        return self.moments.total()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.moments + other.moments,
            self.first_won + other.first_won,
            self.stale + other.stale,
            max(self.seconds, other.seconds),
        )


class Hours:
    """Time as it passes for the agents and for DynamoDB alike: as it does for everybody, but for what is skipped."""

    def __init__(self) -> None:
        self._skipped = 0.0
        self._offset = datetime.now(UTC).timestamp() - monotonic()

    def skip(self, seconds: float) -> None:
        self._skipped += seconds

    def monotonic(self) -> float:
        return monotonic() + self._skipped

    def date(self) -> datetime:
        return datetime.fromtimestamp(self._offset + self.monotonic(), UTC)


class Party:
    """The parts of one agent that write to the table, behind a network of its own."""

    def __init__(self, name: str, proxy: FaultProxy, table: str, hours: Hours, calls: CallThreads, seed: int) -> None:
        settings = TableSettings(table=table, endpoint=proxy.endpoint, region=REGION, connections=THREADS)
        self.proxy = proxy
        self.store = DynamoStore(settings, clock=TableClock(hours.monotonic), refresh_time=False)
        renewals = self.store.for_renewals()
        self.table = Table(self.store, renewals, calls, calls, Contact(hours.monotonic, SETTINGS.renew))
        self.events = Events(AgentMetrics(CollectorRegistry(), ""), f"-/{name}/1")
        self.rng = random.Random(f"{seed} {name}")
        self.claims = Claims(SETTINGS, self.table, self.events, self.rng)

    def hold(self, lease: Lease) -> Held:
        return Held(lease, self.table, SETTINGS, self.rng, self.events)


@dataclass
class Trial:
    """One task and what happens to it. ``by_itself``: the agent that takes it over is the paused one, under a new token."""

    task_id: str
    moment: Moment
    write: str
    by_itself: bool
    held: Held | None = None
    taken: Lease | None = None
    first_wrote: bool = False

    def verdict(self, task: Task | None) -> bool:
        """Whether the table shows that no stale write was accepted: whoever took the task over last has written its end."""
        if self.taken is None:
            return self.moment is Moment.RACE and self.first_wrote
        if task is None or self.first_wrote:
            return False
        return task.status is Status.SUCCESS and task.result == {"by": "second"} and task.last_token == self.taken.token


# --- one round ----------------------------------------------------------------------------------------------------------


class Round:
    """Some trials together, step by step."""

    def __init__(self, first: Party, second: Party, hours: Hours, trials: Sequence[Trial]) -> None:
        self._first = first
        self._second = second
        self._hours = hours
        self._trials = trials
        self._gate = Gate()
        self._at_gate = 0

    async def run(self) -> None:
        await self._each(self._claim)
        late = [asyncio.create_task(self._write(trial)) for trial in self._of(Moment.LATE)]
        await self._until_held(len(late))
        self._hours.skip(PAUSE)
        await self._each(self._take_over)
        self._gate.release()
        await asyncio.gather(*late)
        await self._each(self._redrive, Moment.REDRIVEN)
        await self._each(self._write, Moment.RUNNING, Moment.REDRIVEN)
        await self._each(self._end)
        await self._each(self._write, Moment.ENDED)
        await self._each(self._close)

    async def _claim(self, trial: Trial) -> None:
        lease = await self._first.claims.claim(await self._read(self._first, trial))
        assert lease is not None, "nobody else is there"
        trial.held = self._first.hold(lease)

    async def _take_over(self, trial: Trial) -> None:
        party = self._taker(trial)
        expired = await self._read(party, trial)
        assert expired.is_due(party.store.now()), "the lease has ended"
        if trial.moment is not Moment.RACE:
            trial.taken = await party.claims.claim(expired)
            return
        both: list[Awaitable[Any]] = [party.claims.claim(expired), self._write(trial)]
        turn = party.rng.choice((1, -1))
        done = await asyncio.gather(*both[::turn])
        trial.taken = done[::turn][0]

    async def _redrive(self, trial: Trial) -> None:
        """The second run fails for good; somebody redrives the task; and it is claimed once more."""
        party = self._taker(trial)
        assert trial.taken is not None
        await self._written(party, trial.taken, Outcome(OutcomeKind.FAILED, error=TaskError("ValueError", "broken")))
        queue = TaskQueue(store=party.store)
        redriven = await party.table.do(queue.redrive, trial.task_id)
        trial.taken = await party.claims.claim(redriven)

    async def _write(self, trial: Trial) -> None:
        """What the paused agent does when it goes on."""
        assert trial.held is not None
        outcome = WRITES[trial.write]
        if outcome is None:
            trial.held.on_save(_NobodyRuns(), {"by": "first"}, False)
            trial.held.renew_soon()
            trial.first_wrote = await self._renewed(trial.held)
        else:
            trial.first_wrote = await trial.held.write_outcome(outcome, None) is not None

    async def _renewed(self, held: Held) -> bool:
        """Whether the renewal that is under way goes through: the table says one or the other."""
        confirmed = held.confirmed_at
        while not held.gone and held.confirmed_at == confirmed:  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0.001)
        return not held.gone

    async def _end(self, trial: Trial) -> None:
        if trial.taken is not None:
            await self._written(self._taker(trial), trial.taken, Outcome(OutcomeKind.SUCCESS, {"by": "second"}))

    async def _close(self, trial: Trial) -> None:
        assert trial.held is not None
        await trial.held.close()

    async def _written(self, party: Party, lease: Lease, outcome: Outcome) -> None:
        held = party.hold(lease)
        await held.write_outcome(outcome, None)
        await held.close()

    async def _read(self, party: Party, trial: Trial) -> Task:
        task = await party.table.do(party.store.get, trial.task_id)
        assert task is not None
        return task

    def _taker(self, trial: Trial) -> Party:
        return self._first if trial.by_itself else self._second

    def _of(self, *moments: Moment) -> list[Trial]:
        return [trial for trial in self._trials if trial.moment in (moments or Moment)]

    async def _each(self, step: Any, *moments: Moment) -> None:
        await asyncio.gather(*(step(trial) for trial in self._of(*moments)))

    async def _until_held(self, count: int) -> None:
        while self._at_gate < count:  # noqa: ASYNC110 - counted in the threads of the proxy
            await asyncio.sleep(0.001)

    def rule(self) -> Rule:
        """Hold what the first agent of a late trial writes under its first lease."""
        late = {trial.task_id for trial in self._of(Moment.LATE)}

        def is_late(body: Mapping[str, Any]) -> bool:
            held = task_id(body) in late and Attr.LOCK_TOKEN.value not in written(body) and not self._gate.is_open
            self._at_gate += held
            return held

        return Rule("UpdateItem", Delay(self._gate), where=is_late)


class _NobodyRuns:
    """In place of a run: nobody is to be told anything."""

    def __init__(self) -> None:
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()

    async def stop(self, grace: float) -> None: ...

    def tell_lost(self, lost: bool) -> None: ...

    def tell_saved(self, ok: bool) -> None: ...


# --- many rounds --------------------------------------------------------------------------------------------------------


def run_trials(endpoint: str, count: int, *, seed: int, processes: int = 1) -> Tally:
    """So many trials against the DynamoDB at ``endpoint``, spread over processes with a table each."""
    shares = [len(range(number, count, processes)) for number in range(processes)]
    if processes == 1:
        return _run_share(endpoint, count, seed)
    with ProcessPoolExecutor(processes) as pool:
        tallies = pool.map(partial(_run_share, endpoint), shares, range(seed, seed + processes))
        return sum(tallies, Tally())


def _run_share(endpoint: str, count: int, seed: int) -> Tally:
    return asyncio.run(_rounds(endpoint, count, seed))


async def _rounds(endpoint: str, count: int, seed: int) -> Tally:
    rng, began, tally = random.Random(seed), perf_counter(), Tally()
    with _stage(endpoint, seed) as (first, second, hours, table):
        for start in range(0, count, BATCH):
            trials = [_drawn(rng, f"t-{number}") for number in range(start, min(count, start + BATCH))]
            with closing(client_for(endpoint)) as client:
                _put(client, table, trials, hours)
            this = Round(first, second, hours, trials)
            first.proxy.script(this.rule())
            await this.run()
            tally = tally + _judged(trials, second.store)
    return tally + Tally(seconds=perf_counter() - began)


@contextmanager
def _stage(endpoint: str, seed: int) -> Iterator[tuple[Party, Party, Hours, str]]:
    with ExitStack() as stack:
        with closing(client_for(endpoint)) as client:
            table = create_task_table(client)
        hours = Hours()
        proxies = [stack.enter_context(FaultProxy(endpoint, keeps_calls=False)) for _ in range(2)]
        for proxy in proxies:
            proxy.date = hours.date
        calls = [stack.enter_context(CallThreads(THREADS, f"trial-{name}")) for name in "AB"]
        first, second = (
            Party(name, proxy, table, hours, threads, seed) for name, proxy, threads in zip("AB", proxies, calls, strict=True)
        )
        for party in (first, second):
            stack.callback(party.store.close)
            stack.callback(party.table.renewals.close)  # type: ignore[attr-defined]
            party.store.now()
        yield first, second, hours, table


def _drawn(rng: random.Random, task_id: str) -> Trial:
    return Trial(task_id, rng.choice(list(Moment)), rng.choice(list(WRITES)), rng.random() < 0.2)


def _put(client: Any, table: str, trials: Sequence[Trial], hours: Hours) -> None:
    now = str(int(hours.date().timestamp()) - 10)
    for start in range(0, len(trials), 25):
        puts = [
            {
                "PutRequest": {
                    "Item": {
                        "taskId": {"S": trial.task_id},
                        "status": {"S": Status.PENDING.value},
                        "payload": {"M": {}},
                        "retryCount": {"N": "0"},
                        "maxRetry": {"N": "3"},
                        **{name: {"N": now} for name in ("lockTime", "createdAt", "updatedAt")},
                    }
                }
            }
            for trial in trials[start : start + 25]
        ]
        client.batch_write_item(RequestItems={table: puts})


def _judged(trials: Sequence[Trial], store: DynamoStore) -> Tally:
    found = store.get_many([trial.task_id for trial in trials]).found
    stale = [trial for trial in trials if not trial.verdict(found.get(trial.task_id))]
    told = tuple(f"{trial.task_id}: {trial.write} {trial.moment}: {found.get(trial.task_id)}" for trial in stale)
    first_won = sum(trial.taken is None for trial in trials) - sum(trial.taken is None for trial in stale)
    return Tally(Counter(trial.moment.value for trial in trials), first_won, told)
