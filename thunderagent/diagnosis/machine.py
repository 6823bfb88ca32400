"""Rules about this machine and its way to DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator

from thunderagent.diagnosis.finding import Finding, Severity
from thunderagent.diagnosis.observation import Observation, Patience
from thunderagent.times import span


def throttling(observation: Observation, _: Patience) -> Iterator[Finding]:
    """No call of the check was throttled."""
    if observation.throttled:
        calls = ", ".join(f"{operation} {count} times" for operation, count in sorted(observation.throttled.items()))
        yield Finding(
            Severity.WARNING,
            "throttled",
            observation.table,
            f"DynamoDB throttled calls during this check: {calls}. Agents are throttled then too, and wait.",
            "Use on-demand billing or raise the capacity of table and index. If it is on demand, one partition (a "
            "status of the index) is at its limit of 1,000 writes a second: spread bursts over time.",
        )


def clock(observation: Observation, patience: Patience) -> Iterator[Finding]:
    """This machine's clock agrees with DynamoDB's."""
    if observation.offset is None:
        return
    low, high = observation.offset
    certain = max(low, -high)
    if certain > patience.offset:
        side = "ahead of" if low > 0 else "behind"
        yield Finding(
            Severity.WARNING,
            "clock-offset",
            "this machine",
            f"Its clock is {span(certain)} {side} DynamoDB's. Agents of ThunderAgent go by DynamoDB's time and do not "
            "mind; programs of others that go by the machine's clock take tasks too early or too late.",
            "Synchronise the clock (chrony, systemd-timesyncd), and do so on every machine that runs such programs.",
        )
