"""How many leases one agent can renew: the part of an agent that does so, with more to renew than it can.

It is run as it is in an agent: the same held tasks, in an event loop, with the same threads and connections for renewals.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry

from benchmarks.backlog import Backlog, make_backlog
from benchmarks.report import Figure
from benchmarks.servers import Server
from thunderagent import AgentSettings, transitions
from thunderagent.agent.events import Events
from thunderagent.agent.held import Held
from thunderagent.agent.process import RENEWAL_THREADS
from thunderagent.agent.table import Contact, Table
from thunderagent.agent.threads import CallThreads
from thunderagent.metrics import AgentMetrics
from thunderagent.store.base import CallReport
from thunderagent.store.dynamo import DynamoStore
from thunderagent.transitions import Lease

OWNER = "-/benchmark/1-000000"
HELD = 200
OVERLOAD = replace(AgentSettings(), renew=0.25)
"""Renewals are due far more often than they can be made."""

WARM_UP = 1.0
INTERVAL = AgentSettings().renew * 0.95
"""Mean seconds between two renewals of a lease: the setting, less up to a tenth."""


@dataclass
class Count:
    """Renewals that the table has acknowledged."""

    renewed: int = 0

    def called(self, report: CallReport) -> None:
        self.renewed += report.result == "ok"


def claim_all(backlog: Backlog) -> list[Lease]:
    """Claim every task of a backlog."""
    store = DynamoStore(backlog.table)
    leases = []
    for task in store.get_many(backlog.task_ids).found.values():
        token, now, end = f"token-{task.task_id}", store.now(), store.lease_end(OVERLOAD.lease)
        claim = transitions.claim(task, now=now, lease_end=end, owner=OWNER, token=token)
        claimed = store.apply(claim, want_task=True).task
        assert claimed is not None
        leases.append(Lease(claimed, token, OWNER, now, (end,)))
    store.close()
    return leases


async def renew_for(backlog: Backlog, leases: Sequence[Lease], seconds: float) -> tuple[float, float]:
    """Hold the leases for so long. Renewals a second, and processor seconds of each."""
    count = Count()
    store = DynamoStore(backlog.table, observer=count.called)
    await asyncio.get_running_loop().run_in_executor(None, store.now)
    events = Events(AgentMetrics(CollectorRegistry(), ""), OWNER)
    with ExitStack() as threads:
        calls = threads.enter_context(CallThreads(RENEWAL_THREADS, "renewal"))
        contact = Contact(time.monotonic, OVERLOAD.renew)
        table = Table(store, store.for_renewals(), calls, calls, contact)
        held = [Held(lease, table, OVERLOAD, random.Random(lease.token), events) for lease in leases]
        await asyncio.sleep(WARM_UP)
        began, used, before = time.perf_counter(), time.process_time(), count.renewed
        await asyncio.sleep(seconds)
        renewed = count.renewed - before
        rate, each = renewed / (time.perf_counter() - began), (time.process_time() - used) / max(1, renewed)
        await asyncio.gather(*(each_held.close() for each_held in held))
    return rate, each


def measure(server: Server, seconds: float) -> list[Figure]:
    """Renewals a second, and the slots whose leases that is enough for."""
    backlog = make_backlog(server, HELD)
    rate, each = asyncio.run(renew_for(backlog, claim_all(backlog), seconds))
    how = f"{HELD} leases, always due, {RENEWAL_THREADS} threads, {seconds:g} s; the server may be what is too slow"
    slots = rate * INTERVAL
    return [
        Figure(f"renewals of one agent ({server.name})", rate, "renewals/s", "", how),
        Figure(f"processor time of a renewal ({server.name})", 1000 * each, "ms", "", how),
        Figure(f"slots from which renewals fall behind ({server.name})", slots, "slots", "", f"renewed every {INTERVAL:g} s"),
    ]
