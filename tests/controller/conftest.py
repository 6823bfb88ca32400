"""Tests that import kubernetes or kopf are left out, and said to be, where those are not installed. In CI that is a failure."""

from __future__ import annotations

import importlib.util
import os

import pytest

_NEEDED = {"kubernetes": ("test_kube.py",), "kopf": ("test_main.py",)}
_MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None and os.environ.get("CI") != "true"]

collect_ignore = [file for name in _MISSING for file in _NEEDED[name]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in _MISSING:
        files = " and ".join(_NEEDED[name])
        terminalreporter.write_line(f"Left out: {files}, since {name} is not installed (dependency group operator).")
