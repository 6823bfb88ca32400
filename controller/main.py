"""The operator's process: its parts put together, its signals, and its way out."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from controller.cluster import Cluster, Object
from controller.cycle import PoolCycle, Surroundings
from controller.deployments import Deployments
from controller.election import Candidacy, Election
from controller.kube import Api, KubernetesCluster, KubernetesLeases, connect
from controller.reading import Readings
from controller.registry import Limits, Registry
from controller.settings import OperatorSettings
from controller.tell import tell
from controller.watch import Watch
from controller.watchdog import Watchdog
from thunderagent import __version__
from thunderagent.agent.health import HealthServer
from thunderagent.errors import ThunderAgentError
from thunderagent.log import say, set_up
from thunderagent.metrics import ControllerMetrics
from thunderagent.settings import TableSettings, from_environment
from thunderagent.store.clock import monotonic
from thunderagent.store.dynamo import DynamoStore

log = logging.getLogger("thunderagent.operator")

ELECTION = "the election"
ELECTION_STALL = 60.0
"""Seconds without a turn of the election's loop, of a replica that does not lead, after which it is unhealthy."""


def main() -> int:
    """Run the operator until a signal ends it. 0: it was asked to end; 1: it no longer leads; 2: it cannot begin."""
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)  # that it runs in no main thread is meant
    try:
        set_up()
        settings = from_environment(OperatorSettings, os.environ)
        operator = Operator(settings)
    except ThunderAgentError as error:
        print(error, file=sys.stderr)
        return 2
    return asyncio.run(operator.run())


class Operator:
    """All parts of the process. Raises InvalidSettings and ClusterError where it cannot begin."""

    def __init__(self, settings: OperatorSettings) -> None:
        self._settings = settings
        self._rng = random.Random()
        self._metrics = ControllerMetrics(CollectorRegistry())
        self._metrics.build.info({"version": __version__})
        self._watchdog = Watchdog(monotonic)
        self._api = Api(connect(settings.api_threads + 2))
        self._threads = ThreadPoolExecutor(settings.api_threads, thread_name_prefix="thunderagent-api")
        self._lease_threads = ThreadPoolExecutor(1, thread_name_prefix="thunderagent-lease")
        self._election = self._make_election() if settings.election else None
        self._stopping = asyncio.Event()
        self._lost = asyncio.Event()

    async def run(self) -> int:
        """The exit code, once it has ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        health = HealthServer(self._settings.host, self._settings.port, self._metrics.registry, self._watchdog.problem)
        say(log, logging.INFO, "listening", host=self._settings.host, port=health.port)
        try:
            if self._election is None or await self._first(self._stand(self._election)):
                await self._lead()
        finally:
            health.close()
        return 0

    async def _stand(self, election: Election) -> None:
        """Wait to lead, and stay alive meanwhile."""
        beating = asyncio.create_task(self._beat())
        try:
            await election.acquire()
        finally:
            beating.cancel()
            self._watchdog.forget(ELECTION)

    async def _beat(self) -> None:
        while True:
            self._watchdog.expect(ELECTION, within=ELECTION_STALL)
            await asyncio.sleep(1)

    async def _lead(self) -> None:
        """Scale pools until asked to end, or until leadership is lost."""
        say(log, logging.INFO, "leading", namespaces=self._settings.namespaces or "all")
        self._metrics.leader.set(1)
        read_threads = ThreadPoolExecutor(self._settings.read_threads, thread_name_prefix="thunderagent-read")
        registry = self._make_registry(read_threads)
        watch = self._make_watch(registry)
        beside = [asyncio.create_task(self._keep()), asyncio.create_task(_start_when_known(watch, registry))]
        try:
            await self._first(registry.list_forever())
        finally:
            self._leave_if_lost()
            watch.stop()
            await registry.stop()
            for task in beside:
                task.cancel()
            read_threads.shutdown(wait=False, cancel_futures=True)
            await self._hand_over()

    async def _keep(self) -> None:
        if self._election is not None:
            await self._election.keep()
            self._lost.set()

    async def _hand_over(self) -> None:
        """Release the Lease, once the last write has ended: what it does must be over before another replica decides."""
        self._metrics.leader.set(0)
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        if self._election is not None:
            await self._election.release()

    def _leave_if_lost(self) -> None:
        """End at once: no part of this process may act any more, whatever it waits for."""
        if self._lost.is_set():
            say(log, logging.ERROR, "ending, since this replica no longer leads")
            logging.shutdown()
            os._exit(1)

    async def _first(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do ``work`` until it is done, the process is to end, or leadership is lost; whether it was done."""
        working = asyncio.create_task(work)
        others = [asyncio.create_task(event.wait()) for event in (self._stopping, self._lost)]
        await asyncio.wait({working, *others}, return_when=asyncio.FIRST_COMPLETED)
        is_done = working.done()
        for task in (working, *others):
            task.cancel()
        await asyncio.gather(working, *others, return_exceptions=True)
        if is_done and not working.cancelled():
            working.result()
        return is_done

    # --- its parts -------------------------------------------------------------------------------------------------------

    def _make_election(self) -> Election:
        host = self._settings.identity or socket.gethostname()
        candidacy = Candidacy(self._settings.own_namespace, self._settings.lease_name, f"{host}_{secrets.token_hex(4)}")
        leases = KubernetesLeases(self._api, self._lease_threads)
        return Election(leases, candidacy, monotonic, time.time, self._rng)

    def _make_registry(self, read_threads: ThreadPoolExecutor) -> Registry:
        fence = self._election.check if self._election is not None else lambda: None
        cluster = KubernetesCluster(self._api, self._threads, self._settings.served_namespaces(), fence)
        around = self._surroundings(cluster, read_threads)
        limits = Limits(self._settings.cycle_limit, self._settings.stall, self._settings.list_seconds)
        return Registry(
            cluster,
            partial(PoolCycle, around=around),
            self._watchdog,
            limits,
            self._rng,
            tell=partial(tell, self._metrics),
            gone=self._forget,
            lost=self._lost.set,
            counted=self._metrics.pools.set,
        )

    def _surroundings(self, cluster: Cluster, read_threads: ThreadPoolExecutor) -> Surroundings:
        return Surroundings(
            cluster=cluster,
            readings=Readings(self._open_store, _caller(read_threads), monotonic, self._rng),
            deployments=Deployments(cluster, __version__),
            allowed=self._settings.allowances(),
            now=monotonic,
            wall=time.time,
            cycle_limit=self._settings.cycle_limit,
        )

    def _make_watch(self, registry: Registry) -> Watch:
        loop = asyncio.get_running_loop()

        def on_event(kind: str | None, resource: Mapping[str, Any]) -> None:
            loop.call_soon_threadsafe(registry.on_event, kind, resource)

        return Watch(on_event, self._settings.served_namespaces(), self._rng)

    def _open_store(self, settings: TableSettings) -> DynamoStore:
        return DynamoStore(settings, observer=self._metrics.called)

    def _forget(self, resource: Object) -> None:
        self._metrics.forget(resource["metadata"]["namespace"], resource["metadata"]["name"])


async def _start_when_known(watch: Watch, registry: Registry) -> None:
    """kopf never looks again for a kind that it did not find when it began."""
    await registry.listed.wait()
    watch.start()


def _caller(threads: ThreadPoolExecutor) -> Callable[[Callable[[], Any]], Any]:
    def call(function: Callable[[], Any]) -> Any:
        return asyncio.get_running_loop().run_in_executor(threads, function)

    return call
