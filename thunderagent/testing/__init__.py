"""For users' tests: the real agent over an in-memory table, on a clock of its own, without network, processes or sleeping."""

from thunderagent.testing.harness import Clock, Harness, NotIdle

__all__ = ["Clock", "Harness", "NotIdle"]
