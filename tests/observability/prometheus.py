"""A real Prometheus that a test starts: what it scrapes, which rules it evaluates, and what it answers."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.integration.agents import PATIENCE, eventually
from tests.observability.localpool import free_ports
from tests.observability.tools import RULES, prometheus_tool

Series = Mapping[str, Any]

Job = Mapping[str, Any]
"""An entry of scrape_configs."""

MINUTE = "1s"
"""What takes a minute in the rules takes a second in the test."""

_SECONDS = {"m": 1, "h": 60, "d": 1440}


def hurried(text: str) -> str:
    """Rules whose times, ranges and ages are a sixtieth of what they were: an hour of theirs is a minute of the test's."""
    text = re.sub(r"(?<=\[)(\d+)([mhd])(?=\])", _shorter, text)
    text = re.sub(r"(?<=for: )(\d+)([mhd])$", _shorter, text, flags=re.MULTILINE)
    text = re.sub(
        r"((?<!clock_offset)_seconds(?:\[\d+s\])?\)? > )(\d+)\b", lambda found: f"{found[1]}{int(found[2]) / 60:g}", text
    )
    return text.replace('le="60.0"', 'le="1.0"')


def _shorter(found: re.Match[str]) -> str:
    return f"{int(found[1]) * _SECONDS[found[2]]}s"


class Prometheus:
    """One that scrapes and evaluates every second, on 127.0.0.1."""

    def __init__(self, folder: Path, scraped: Sequence[Job]) -> None:
        self._port = free_ports(1)
        self._log_file = folder / "prometheus.log"
        (folder / "rules.yaml").write_text(hurried(RULES.read_text()))
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump(_config(folder / "rules.yaml", scraped)))
        with self._log_file.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    prometheus_tool("prometheus"),
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    "--log.level=warn",
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        eventually(self._is_ready, lambda: self._log_file.read_text())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def query(self, expr: str) -> list[Series]:
        """The series that the expression has now."""
        return list(self._get("query", query=expr)["result"])

    def query_range(self, expr: str, seconds: float) -> list[Series]:
        """The series that the expression has had in the last seconds."""
        now = float(self._get("query", query="time()")["result"][1])
        return list(self._get("query_range", query=expr, start=now - seconds, end=now, step=1)["result"])

    def value(self, expr: str) -> float | None:
        """Of an expression with one series; None where it has none."""
        found = self.query(expr)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def reaches(self, expr: str, value: float) -> None:
        """Wait until an expression has a value."""
        eventually(lambda: self.value(expr) == value, lambda: f"{expr} is {self.value(expr)}, not {value}")

    def firing(self) -> dict[str, Mapping[str, str]]:
        """The alerts that fire now, by name, with their annotations as Prometheus writes them."""
        alerts = self._get("alerts")["alerts"]
        return {each["labels"]["alertname"]: each["annotations"] for each in alerts if each["state"] == "firing"}

    def fires(self, name: str, patience: float = PATIENCE) -> Mapping[str, str]:
        """Wait until an alert fires, and return its annotations."""
        return eventually(lambda: self.firing().get(name), lambda: f"{name}; firing: {sorted(self.firing())}", patience)

    def have_fired(self, seconds: float) -> set[str]:
        """The alerts that fired at some time in the last seconds."""
        found = self.query(f'max by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{seconds:.0f}s]))')
        return {each["metric"]["alertname"] for each in found}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self._log_file.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=PATIENCE):
                return True
        except OSError:
            return False

    def _get(self, path: str, **parameters: Any) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as refused:
            with refused:
                raise AssertionError(f"{parameters}: {refused.read().decode()}") from None


def _config(rules: Path, scraped: Sequence[Job]) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": MINUTE, "scrape_timeout": MINUTE, "evaluation_interval": MINUTE},
        "rule_files": [str(rules)],
        "scrape_configs": list(scraped),
    }


def fixed(job: str, addresses: Sequence[str]) -> Job:
    """A job that scrapes these addresses."""
    return {"job_name": job, "honor_labels": True, "static_configs": [{"targets": list(addresses)}]}


@contextmanager
def prometheus(folder: Path, *scraped: Job) -> Iterator[Prometheus]:
    """A Prometheus with these jobs."""
    folder.mkdir()
    running = Prometheus(folder, scraped)
    try:
        yield running
    finally:
        running.close()
