"""The demo as a newcomer runs it: one command, watched through the lines that it prints where there is no terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from examples.reports.plan import Plan, make_plan
from examples.reports.samples import input_files, sample_files, write_corrupt
from tests.integration.agents import eventually, is_alive

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

PATIENCE = 500.0
"""Seconds for a whole demo on a busy machine. A quiet one needs a tenth to a fifth."""

CLEAN = """city,visitors,area
Aberdeen,120,12
Bath,90,7
Cork,75,9
Derby,60,11
"""
BROKEN = CLEAN.replace("Cork,75,9", "Cork,75")


class Demo:
    """One ``thunderagent demo`` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.work = folder / "demo-output"
        self._stdout, self._stderr = folder / "stdout", folder / "stderr"
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "thunderagent", "demo", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "AWS_PROFILE": "nobody"},
            )
        self.pid = self._process.pid

    @property
    def stdout(self) -> str:
        return self._stdout.read_text()

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    def says(self, pattern: str) -> re.Match[str]:
        """Wait for a line on stdout; fails at once where the demo ends without it."""

        def look() -> re.Match[str] | None:
            ended = self._process.poll() is not None
            found = re.search(pattern, self.stdout, re.MULTILINE)
            assert found or not ended, self.told()
            return found

        return eventually(look, lambda: f"{pattern!r}\n{self.told()}", PATIENCE)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def exit_code(self) -> int:
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"The demo does not end.\n{self.told()}") from None

    def replicas(self) -> list[int]:
        """The sizes that the pool was said to have, one after the other."""
        return [int(count) for count in re.findall(r"^ *[\d.]+s  pool +(\d+) agents?\b", self.stdout, re.MULTILINE)]

    def agents(self) -> set[int]:
        """The agents and their children, found by the supervisor that their environment names."""
        return {int(path.name) for path in Path("/proc").glob("[0-9]*") if self._is_ours(path)}

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _is_ours(self, process: Path) -> bool:
        try:
            environ = (process / "environ").read_bytes()
        except OSError:
            return False
        return f"THUNDERAGENT_SUPERVISOR={self.pid}:".encode() in environ

    def told(self) -> str:
        """All that it has said, for a failure."""
        log = self.work / "agents.log"
        return f"{self.stdout[-3000:]}\n{self.stderr[-3000:]}\n{log.read_text()[-2000:] if log.exists() else ''}"


class Demos:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Demo] = []

    def start(self, *arguments: str) -> Demo:
        self._started.append(Demo(self._folder, *arguments))
        return self._started[-1]

    def end(self) -> None:
        for demo in self._started:
            demo.end()


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Demos]:
    demos = Demos(tmp_path)
    yield demos
    demos.end()


class Links(HTMLParser):
    """The links of a page, and whether it is a whole one."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ends = False
        self.feed(page.read_text())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]

    def handle_endtag(self, tag: str) -> None:
        self.ends = self.ends or tag == "html"


def planned_pages(plan: Plan) -> dict[str, Path]:
    """The page that each task of a plan makes, by taskId."""
    return {task.task_id: Path(task.payload["page"]) for task in plan.tasks if "page" in task.payload}


def check_pages(plan: Plan, failed: set[str]) -> None:
    """Every page of a task that did not fail is there and whole, and the index links to all of them and to nothing else."""
    pages = planned_pages(plan)
    made = {page for task_id, page in pages.items() if task_id not in failed}
    assert {page for page in pages.values() if page.exists()} == made
    assert all(Links(page).ends for page in made)
    links = [link for link in Links(plan.index_page).links if not link.startswith("#")]
    assert {(plan.index_page.parent / unquote(link)).resolve() for link in links} == made - {plan.index_page}
    index = plan.index_page.read_text()
    assert all(task_id in index for task_id in failed)


# --- to its end ---------------------------------------------------------------------------------------------------------


def test_the_demo_makes_all_reports_of_the_real_files_while_its_pool_grows_to_four_and_returns_to_zero(
    demos: Demos, tmp_path: Path
) -> None:
    demo = demos.start()
    assert demo.exit_code() == 0, demo.told()

    work = demo.work
    plan = make_plan([*sample_files(), write_corrupt(tmp_path / "input")], work)
    failed = {task.task_id for task in plan.tasks if "/harbour-tides" in task.task_id}
    assert len(failed) > 1
    check_pages(plan, failed)
    sizes = demo.replicas()
    growth = sizes[: sizes.index(4)]  # the first line may come after the first step
    assert growth, sizes
    assert growth == sorted(growth)
    assert (max(sizes), sizes[-1]) == (4, 0)
    counts = f"{len(plan.tasks) - len(failed) - 1} SUCCESS, 1 DONE, {len(failed)} FAILED"
    told = demo.stdout
    assert re.search(rf"^All {len(plan.tasks)} tasks have ended after .*: {counts}\.$", told, re.MULTILINE)
    assert "The pool went from 0 to 4 agents and back to 0." in told
    assert "FAILED, as they should: harbour-tides.csv is broken on purpose\n  reports/import/harbour-tides\n" in told
    assert "harbour-tides.csv, line 248: byte" in told
    assert f"Pages:  {plan.index_page}\n        {plan.index_page.as_uri()}\n" in told
    assert demo.stderr == ""
    assert not demo.agents()


def test_files_of_ones_own_are_reported_on_and_what_is_wrong_with_them_is_told(demos: Demos, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "good.csv").write_text(CLEAN)
    (own / "bad.csv").write_text(BROKEN)
    (own / "notes.txt").write_text("not a table")
    demo = demos.start("--input", "own", "--work", "out")
    demo.work = tmp_path / "out"
    assert demo.exit_code() == 0, demo.told()

    plan = make_plan(input_files(own), demo.work)
    failed = {task.task_id for task in plan.tasks if "/bad" in task.task_id}
    check_pages(plan, failed)
    assert "bad.csv, line 4: 2 fields, but the header has 3" in demo.stdout
    assert "as they should" not in demo.stdout
    assert demo.replicas()[-1] == 0  # the first line may come after the first step
    assert re.search(r"^The pool went from 0 to [1-4] agents? and back to 0\.$", demo.stdout, re.MULTILINE)
    assert (demo.work / ".gitignore").read_text() == "*\n"
    figures = re.findall(r'class="label">([^<]*)</span><span class="figure">([^<]*)<', (demo.work / "pool.html").read_text())
    assert dict(figures)["tasks ended"] == f"{len(plan.tasks)}"
    assert dict(figures)["of these FAILED"] == f"{len(failed)}"


# --- stopped ------------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_demo_and_leaves_nothing_behind(demos: Demos) -> None:
    demo = demos.start()
    demo.says(r"tasks .* RUNNING")
    demo.send(signal.SIGINT)
    assert demo.exit_code() == 130, demo.told()
    assert re.search(r"^Stopped: \d+ of \d+ tasks had ended, no agent is left\.", demo.stdout, re.MULTILINE)
    assert demo.replicas()[-1] == 0
    assert not demo.agents()


def test_agents_of_a_demo_that_is_killed_end_by_themselves(demos: Demos) -> None:
    demo = demos.start()
    demo.says(r"tasks .* RUNNING")
    agents = demo.agents()
    assert agents
    demo.send(signal.SIGKILL)
    demo.exit_code()
    eventually(lambda: not any(is_alive(pid) for pid in agents), lambda: f"the end of {agents}")


# --- not begun ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["--input", "gone"], 2, "gone is not a directory", id="a folder that is not there"),
        pytest.param(["--input", "empty"], 2, "empty holds no file whose name ends in .csv", id="a folder without CSV files"),
        pytest.param(["--work", "mine"], 1, "is not empty and not the folder of an earlier demo", id="somebody's own folder"),
        pytest.param(["--work", "file"], 1, "is not a folder", id="a file in place of the work folder"),
    ],
)
def test_a_demo_that_cannot_begin_says_why(demos: Demos, tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    demo = demos.start(*arguments)
    assert demo.exit_code() == code
    assert demo.stderr.startswith("error: ")
    assert message in demo.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text() == (tmp_path / "file").read_text() == "keep"
