"""A process that must not outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that the kernel sends this process when the thread that started it ends."""

ORPHANED = signal.SIGUSR1
"""The signal by which an agent hears that its supervisor is dead. Not SIGTERM, of which a second one hurries a drain: the
kernel sends one each time that a dying process hands its children on, from thread to thread and at last to init."""


def end_with_parent(parent: int, number: signal.Signals) -> None:
    """Have the kernel send this process a signal when ``parent`` dies, whatever this process is doing then. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before the call above
            os.kill(os.getpid(), number)
