"""One cycle of one pool: read the backlog, look at the cluster, decide, act, and write down what came of it.

Nothing is raised out of a cycle: what goes wrong becomes the pool's condition, and the next cycle begins anew. Nothing here
survives the process but what windows and cooldowns look back to, and losing that only delays a scale-down.

How a running task stays safe when replicas are taken away, each rule for what the one before cannot see:

1. the decision never goes below the replicas that hold a task, by a reading of this cycle, and needs two low readings;
2. only when the Deployment's controller has seen its latest spec and one ReplicaSet has pods: its victim order is then known;
3. idle pods are its first victims, by deletion costs that have had time to be known to it;
4. the scale write says which version of the Deployment it was decided on;
5. a pod that takes a task all the same finishes it: its grace is longer than its drain, and that than any task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controller.allowed import Allowance, objection
from controller.cluster import Cluster, Object
from controller.conditions import Outcome
from controller.deployments import Deployments
from controller.errors import ClusterError, NotLeading, NotPermitted, ObjectChanged, ObjectMissing, Refused
from controller.faults import Fault, cluster_fault, pod_faults, read_fault, rival_fault
from controller.marks import Mark, MarkState, cautious, has_settled, marks_due
from controller.names import pool_identity
from controller.pods import Pod, Workload, leases_by_pod, pods_of, selector_text, sets_with_pods, workload_of
from controller.reading import Ask, Reading, Readings, table_settings
from controller.rivals import Rivalry, saw, tries, wrote
from controller.status import Notice, Status, new_status, notices, worth_writing
from thunderagent.errors import InvalidPool, ThunderAgentError
from thunderagent.log import say
from thunderagent.pool import Pool, parse_pool
from thunderagent.poolcycle import counts_of, tasks_needed
from thunderagent.scaling import (
    Candidate,
    Decision,
    FailedRead,
    Observation,
    Pause,
    ScalingRules,
    ScalingState,
    decide,
    initial_state,
    observe,
    replicas_now,
)

log = logging.getLogger("thunderagent.operator")

MARKS_A_CYCLE = 100
"""Pods that one cycle writes annotations on; the rest have their turn in the next ones."""

SCALE_TRIES = 3
"""Writes of a number of replicas in one cycle, while only the Deployment's status changes under it."""

RETRY_SECONDS = 5
"""Seconds to the next cycle of a pool whose spec cannot be read, and so names no poll."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every pool's cycles share. ``now`` is in monotonic seconds, ``wall`` in epoch seconds."""

    cluster: Cluster
    readings: Readings
    deployments: Deployments
    allowed: Sequence[Allowance]
    now: Callable[[], float]
    wall: Callable[[], float]
    cycle_limit: float = 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a cycle, for metrics and for who plans the next one.

    ``pause``: seconds until it. ``scaled``: from and to how many replicas, where they were written. ``marked``: pods whose
    annotations were written.
    """

    outcome: Outcome
    status: Status
    pool: Pool | None
    pause: float
    scaled: tuple[int, int] | None = None
    marked: int = 0


@dataclass(slots=True)
class _Step:
    """What one cycle has learned and done so far. It outlives an error in the middle, so that the status tells both."""

    outcome: Outcome
    pool: Pool | None = None
    pause: float = RETRY_SECONDS
    scaled: tuple[int, int] | None = None
    marked: int = 0

    def learn(self, **changes: Any) -> None:
        self.outcome = replace(self.outcome, **changes)

    def blame(self, *faults: Fault | None) -> None:
        present = tuple(fault for fault in faults if fault is not None)
        self.outcome = replace(self.outcome, faults=(*self.outcome.faults, *present))


class PoolCycle:
    """The cycles of one pool, told apart from others by its uid. One at a time."""

    def __init__(self, uid: str, around: Surroundings) -> None:
        self._uid = uid
        self._around = around
        self._state: ScalingState | None = None
        self._marks = MarkState(started=around.now())
        self._rivalry = Rivalry()
        self._deployment_uid = ""
        self._parsed: tuple[Any, Pool] | None = None
        self._mistake: Fault | None = None
        self._unwritten = ""
        self._written: Status | None = None
        self._written_at = around.now()

    def forget(self) -> None:
        """The pool is gone: keep nothing of it."""
        self._around.readings.forget(self._uid)

    async def run(self, resource: Object) -> Report:
        """One cycle for the pool as it is in ``resource``. Raises NotLeading and cancellation, nothing else."""
        step = _Step(Outcome(resource["metadata"].get("generation", 0)))
        try:
            async with asyncio.timeout(self._around.cycle_limit):
                await self._cycle(resource, step)
        except NotLeading:
            raise
        except TimeoutError:
            step.blame(Fault("CycleTimedOut", f"A cycle took more than {self._around.cycle_limit:g} s and was given up."))
        except ThunderAgentError as error:
            step.blame(cluster_fault(error))
        except Exception as error:
            step.blame(self._internal(resource, error))
        status = await self._publish(resource, step)
        return Report(step.outcome, status, step.pool, step.pause, step.scaled, step.marked)

    async def _cycle(self, resource: Object, step: _Step) -> None:
        pool = step.pool = self._parse(resource)
        step.pause = pool.spec.scaling.poll_seconds
        rules = _rules(resource, pool, step)
        refused = objection(pool, resource["metadata"]["namespace"], self._around.allowed)
        if refused is not None:
            step.blame(Fault("NotAllowed", refused))
            return
        reading = await self._read(resource, pool, rules, step)
        found = await self._around.deployments.find(resource, pool)
        step.blame(found.fault)
        if found.deployment is not None:
            await self._scale(resource, workload_of(found.deployment), rules, reading, step)

    def _internal(self, resource: Object, error: Exception) -> Fault:
        """A mistake of ours. Its traceback is logged once, not with every cycle that it spoils."""
        fault = Fault("InternalError", f"{type(error).__name__}: {error}")
        if fault != self._mistake:
            log.error("a cycle of %s failed", _identity(resource), exc_info=error)
        self._mistake = fault
        return fault

    def _parse(self, resource: Object) -> Pool:
        """The pool, parsed once for as long as nobody edits it: that takes longer than all the rest of an idle cycle."""
        metadata = resource["metadata"]
        key = (metadata.get("generation"), metadata.get("annotations"), metadata.get("labels"))
        if self._parsed is None or self._parsed[0] != key:
            self._parsed = (key, parse_pool(resource, on_kubernetes=True))
        return self._parsed[1]

    # --- observe --------------------------------------------------------------------------------------------------------

    async def _read(self, resource: Object, pool: Pool, rules: ScalingRules, step: _Step) -> Reading | Fault:
        ask = Ask(
            settings=table_settings(pool),
            needed=tasks_needed(rules),
            task_types=frozenset(pool.spec.queue.task_types),
            queue=pool.spec.queue.name,
            identity=_identity(resource),
            poll=pool.spec.scaling.poll_seconds,
        )
        try:
            reading = await self._around.readings.read(self._uid, ask)
        except ThunderAgentError as error:
            fault = read_fault(error, pool.spec.queue.region)
            step.blame(fault)
            return fault
        age = self._around.now() - reading.began
        step.pause = max(0.0, pool.spec.scaling.poll_seconds - age)
        step.learn(read_at=self._around.wall() - age)
        return reading

    async def _scale(
        self, resource: Object, workload: Workload, rules: ScalingRules, reading: Reading | Fault, step: _Step
    ) -> None:
        step.learn(workload=workload)
        self._recognise(workload)
        pods = await self._pods(resource, workload, reading)
        step.blame(*pod_faults(workload, pods))
        seen = self._observed(resource, workload, pods, reading)
        decision = decide(rules, self._state or initial_state(workload.replicas, self._now()), seen, self._now())
        self._state = decision.state
        step.learn(decision=decision, observation=seen if isinstance(seen, Observation) else None)
        candidates = await self._mark(resource, pods, seen, decision, step) if isinstance(seen, Observation) else []
        await self._go_to(resource, workload, replicas_now(decision, candidates), pods, decision, step)

    def _recognise(self, workload: Workload) -> None:
        """Another Deployment than before, be it of the same name, has a history of its own."""
        if workload.uid != self._deployment_uid:
            self._deployment_uid = workload.uid
            self._rivalry = Rivalry()
        self._rivalry = saw(self._rivalry, workload.replicas, self._now())

    async def _pods(self, resource: Object, workload: Workload, reading: Reading | Fault) -> tuple[Pod, ...]:
        """The pods, read after the table: what held a lease then is still here, or gone. None are asked for of an idle pool."""
        leases = {} if isinstance(reading, Fault) else reading.backlog.running
        is_target = resource["spec"].get("targetRef") is not None
        if not (workload.replicas or workload.existing or _may_hold(_identity(resource), leases, is_target)):
            return ()
        namespace, selector = resource["metadata"]["namespace"], selector_text(workload.selector)
        sets = await self._around.cluster.replica_sets(namespace, selector)
        pods = await self._around.cluster.pods(namespace, selector)
        return pods_of(workload.uid, sets, pods, _identity(resource), self._around.wall())

    def _observed(
        self, resource: Object, workload: Workload, pods: Sequence[Pod], reading: Reading | Fault
    ) -> Observation | FailedRead:
        if isinstance(reading, Fault):
            return FailedRead(workload.replicas, reading.reason, reading.message)
        counts = counts_of(reading.backlog)
        counts = replace(counts, leases=leases_by_pod(counts.leases, pods))
        replicas = [pod.as_replica() for pod in pods]
        return observe(pool=_identity(resource), counts=counts, replicas=replicas, desired=workload.replicas)

    # --- act ------------------------------------------------------------------------------------------------------------

    async def _mark(
        self, resource: Object, pods: Sequence[Pod], seen: Observation, decision: Decision, step: _Step
    ) -> list[Candidate]:
        """Mark pods as busy or idle, and give the candidates of a scale-down, with costs as the worst may have it."""
        owners = {replica.owner: replica.running for replica in seen.replicas}
        running = {pod.uid: owners.get(pod.owner, 0) for pod in pods if pod.is_active}
        shrinking = decision.target < decision.current
        self._marks = self._marks.observed(running, self._now())
        due = marks_due(pods, running, self._marks, shrinking=shrinking, now=self._now())
        by_uid = {pod.uid: pod for pod in pods}
        due = sorted(due, key=lambda mark: -running[mark.uid])[:MARKS_A_CYCLE]
        for mark in due:
            self._marks = self._marks.wrote(by_uid[mark.uid], mark, self._now())
        results = await asyncio.gather(*(self._annotate(resource, mark) for mark in due))
        step.blame(*dict.fromkeys(fault for fault in results if isinstance(fault, Fault)))
        step.marked = sum(result is True for result in results)
        candidates = [pod.as_candidate(running[pod.uid]) for pod in pods if pod.is_active]
        return cautious(candidates, self._marks, self._now())

    async def _annotate(self, resource: Object, mark: Mark) -> bool | Fault:
        """Whether it was written. A pod that has gone or changed is looked at again in the next cycle."""
        try:
            namespace = resource["metadata"]["namespace"]
            await self._around.cluster.annotate_pod(namespace, mark.pod, mark.uid, mark.annotations)
        except (ObjectMissing, ObjectChanged):
            return False
        except (Refused, NotPermitted) as error:
            return Fault("PodNotMarked", str(error))
        return True

    async def _go_to(
        self, resource: Object, workload: Workload, replicas: int, pods: Sequence[Pod], decision: Decision, step: _Step
    ) -> None:
        step.learn(replicas=workload.replicas)
        if replicas == workload.replicas:
            return
        if self._rivalry.is_held(self._now()):
            step.blame(rival_fault(workload, replicas, self._rivalry.theirs))
            return
        reason = self._wait_reason(workload, pods) if replicas < workload.replicas else None
        if reason is not None:
            step.learn(notes=(reason,))
            return
        await self._write_replicas(resource, workload, replicas, decision, step)

    def _wait_reason(self, workload: Workload, pods: Sequence[Pod]) -> str | None:
        """What of the cluster makes the ReplicaSet's next victims uncertain."""
        if not workload.is_observed:
            return "A scale-down waits until the Deployment's controller has seen its latest spec"
        if sets_with_pods(pods) > 1:
            return "A scale-down waits until the rollout under way has ended"
        if not has_settled(self._marks, self._now()):
            return "A scale-down waits until earlier deletion costs have settled"
        return None

    async def _write_replicas(
        self, resource: Object, workload: Workload, replicas: int, decision: Decision, step: _Step
    ) -> None:
        self._rivalry = tries(self._rivalry, replicas)
        try:
            if not await self._scale_deployment(resource["metadata"]["namespace"], workload, replicas):
                return
        except Refused as error:
            step.blame(Fault("ScaleRefused", str(error)))
            return
        self._rivalry = wrote(self._rivalry, replicas)
        step.scaled = (workload.replicas, replicas)
        step.learn(replicas=replicas)
        say(log, logging.INFO, "scaled", pool=_identity(resource), replicas=replicas, why=decision.sentence)

    async def _scale_deployment(self, namespace: str, workload: Workload, replicas: int) -> bool:
        """Whether it was done. A Deployment whose spec has changed is for the next cycle to decide on; where only its status
        has, as it does while pods start, growing goes on."""
        for _ in range(SCALE_TRIES):
            try:
                await self._around.cluster.scale_deployment(namespace, workload.name, replicas, workload.version)
            except ObjectMissing:
                return False
            except ObjectChanged:
                fresh = await self._around.cluster.deployment(namespace, workload.name)
                if fresh is None or replicas < workload.replicas or not _same_spec(workload, fresh):
                    return False
                workload = workload_of(fresh)
            else:
                return True
        return False

    # --- tell -----------------------------------------------------------------------------------------------------------

    async def _publish(self, resource: Object, step: _Step) -> Status:
        """Write the status where it is worth it, and events for what has changed. A failure waits for the next cycle."""
        written = self._written if self._written is not None else dict(resource.get("status") or {})
        status = new_status(step.outcome, written, self._around.wall())
        try:
            async with asyncio.timeout(self._around.cycle_limit):
                news = await self._write_status(resource, status, written)
                if step.scaled is not None and step.outcome.decision is not None:
                    news.append(Notice("Normal", "Scaled", step.outcome.decision.sentence))
                for notice in news:
                    await self._around.cluster.emit(resource, notice)
        except (ClusterError, TimeoutError) as error:
            self._say_unwritten(resource, str(error))
        else:
            self._unwritten = ""
        return status

    async def _write_status(self, resource: Object, status: Status, written: Mapping[str, Any]) -> list[Notice]:
        """Write the status if it is worth it; what is new in it is then worth events, too."""
        if not worth_writing(status, written, self._now() - self._written_at):
            return []
        metadata = resource["metadata"]
        await self._around.cluster.write_status(metadata["namespace"], metadata["name"], self._uid, status)
        self._written, self._written_at = status, self._now()
        return notices(status, written)

    def _say_unwritten(self, resource: Object, why: str) -> None:
        if why != self._unwritten:
            self._unwritten = why
            say(log, logging.WARNING, "status or event not written", pool=_identity(resource), why=why)

    def _now(self) -> float:
        return self._around.now()


def _identity(resource: Object) -> str:
    return pool_identity(resource["metadata"]["namespace"], resource["metadata"]["name"])


def _rules(resource: Object, pool: Pool, step: _Step) -> ScalingRules:
    """The pool's rules. A pause annotation that cannot be understood holds everything: a person wanted something held."""
    step.learn(has_fallback=pool.spec.scaling.fallback is not None)
    try:
        rules = pool.scaling_rules()
    except InvalidPool as error:
        step.blame(Fault("InvalidAnnotation", f"{error} Until it is mended, scaling is paused."))
        bare = {**resource, "metadata": {**resource["metadata"], "annotations": {}}}
        rules = replace(parse_pool(bare, on_kubernetes=True).scaling_rules(), pause=Pause.everything())
    step.learn(pause=rules.pause)
    return rules


def _may_hold(identity: str, leases: Mapping[str, int], is_target: bool) -> bool:
    """Whether a lease may be of this pool's pods. Agents of somebody else's Deployment may call themselves anything."""
    return bool(leases) if is_target else any(owner.startswith(f"{identity}/") for owner in leases)


def _same_spec(workload: Workload, fresh: Object) -> bool:
    metadata = fresh["metadata"]
    return (workload.uid, workload.generation) == (metadata["uid"], metadata.get("generation", 0))
