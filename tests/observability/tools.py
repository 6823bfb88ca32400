"""Where prometheus and promtool are, and what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = ROOT / "charts" / "thunderagent" / "rules" / "thunderagent.yaml"
DASHBOARDS = ROOT / "charts" / "thunderagent" / "dashboards"
RUNBOOKS = ROOT / "docs" / "runbooks"

BROUGHT = ROOT / ".tools" / "prometheus" / "usr" / "bin"
"""Where scripts/prometheus-bin puts them."""


def prometheus_tool(name: str) -> str:
    """The path of ``prometheus`` or ``promtool``. Skips where it is missing; fails under CI=true."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{BROUGHT}")
    if found is None:
        reason = f"{name} is missing: run scripts/prometheus-bin, or put it on the PATH"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def promtool(*arguments: str | Path, stdin: str = "") -> str:
    """What promtool prints. Fails with it where promtool fails."""
    command = [prometheus_tool("promtool"), *map(str, arguments)]
    ran = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
