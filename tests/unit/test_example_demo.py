"""The demo's parts that need no agents: its folder, its environment, its last words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from examples.reports.demo import own_environment
from examples.reports.index import Failure
from examples.reports.summary import Made, Result, summary, waits
from examples.reports.workdir import LIST, open_workdir
from tests.builders import NOW
from tests.unit.cli_world import World
from thunderagent import Status, Task
from thunderagent.cli import demo as command
from thunderagent.errors import InvalidInput
from thunderagent.task import Run

# --- its folder ---------------------------------------------------------------------------------------------------------


def make(folder: Path, *names: str) -> None:
    """A demo that makes these files."""
    with open_workdir(folder) as workdir:
        files = [workdir.path / name for name in names]
        workdir.own(files)
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("made")


def found(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {LIST, ".gitignore"}


def test_the_next_demo_removes_what_the_last_one_made_and_nothing_else(tmp_path: Path) -> None:
    make(tmp_path / "out", "pages/a/1.html", "pages/b/2.html", "data/a.sqlite")
    (tmp_path / "out" / "pages" / "b" / "mine.html").write_text("mine")
    (tmp_path / "out" / "data" / ".a.sqlite.0f.partial-journal").write_text("begun when it was killed")
    make(tmp_path / "out", "pages/c/3.html")
    assert found(tmp_path / "out") == {"pages/b/mine.html", "pages/c/3.html"}
    assert not (tmp_path / "out" / "pages" / "a").exists()


def test_a_list_that_points_out_of_the_folder_removes_nothing_there(tmp_path: Path) -> None:
    make(tmp_path / "out", "pages/1.html")
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out" / LIST).write_text(f"../precious\n{tmp_path / 'precious'}\npages/../../precious\npages/1.html\n")
    make(tmp_path / "out")
    assert (tmp_path / "precious").read_text() == "mine"
    assert found(tmp_path / "out") == set()


def test_a_file_of_somebody_else_is_never_written_over(tmp_path: Path) -> None:
    make(tmp_path / "out")
    (tmp_path / "out" / "pages").mkdir()
    (tmp_path / "out" / "pages" / "index.html").write_text("mine")
    with pytest.raises(InvalidInput, match=r"pages/index\.html is there already"):
        make(tmp_path / "out", "pages/index.html")
    make(tmp_path / "out")
    assert (tmp_path / "out" / "pages" / "index.html").read_text() == "mine"


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="is not empty and not the folder of an earlier demo"):
        make(tmp_path)
    assert found(tmp_path) == {"thesis.txt"}


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    with open_workdir(tmp_path / "out") as first:
        first.own([first.path / "a"])
        (first.path / "a").write_text("made")
        with pytest.raises(InvalidInput, match="Another demo runs in"), open_workdir(tmp_path / "out"):
            pass
        assert found(tmp_path / "out") == {"a"}


# --- its environment ----------------------------------------------------------------------------------------------------


def test_nothing_of_the_users_aws_and_thunderagent_settings_reaches_the_demo() -> None:
    given = {
        "AWS_PROFILE": "production",
        "AWS_SESSION_TOKEN": "secret",
        "THUNDERAGENT_TABLE": "TaskTable",
        "HTTP_PROXY": "http://proxy:3128",
        "PYTHONPATH": "/mine",
        "HOME": "/home/me",
    }
    own = own_environment(given)
    assert own["HOME"] == "/home/me"
    assert own["PYTHONPATH"].endswith(f"{os.pathsep}/mine")
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "THUNDERAGENT_TABLE"} & own.keys()
    assert own["AWS_ACCESS_KEY_ID"] == "local"
    assert own["NO_PROXY"] == own["no_proxy"] == "127.0.0.1"


# --- its last words -----------------------------------------------------------------------------------------------------


def task(task_id: str, began: int, ended: int, *, depends_on: str = "", releases: int = 0) -> Task:
    """A task enqueued at NOW that ran once."""
    runs = (Run("pool/vm/1-a", NOW + began, NOW + ended, "success"),)
    return Task(task_id, Status.SUCCESS, {"dependsOn": depends_on}, created_at=NOW, history=runs, release_count=releases)


def test_a_task_waits_from_the_end_of_its_last_dependency() -> None:
    tasks = [task("import", 4, 9), task("report", 11, 12, depends_on="import"), task("index", 50, 51, releases=3)]
    assert waits({each.task_id: each for each in tasks}) == [4, 2]


def result(tmp_path: Path, *failures: Failure, expected: str = "") -> Result:
    tasks = {each.task_id: each for each in (task("import", 4, 9), Task("bad", Status.FAILED))}
    made = Made(tmp_path / "pages" / "index.html", tmp_path / "pool.html", tmp_path / "agents.log")
    return Result(tasks, failures, 75, 4, made, expected)


def test_the_summary_says_what_was_done_how_the_pool_went_and_where_the_pages_are(tmp_path: Path) -> None:
    assert summary(result(tmp_path)) == [
        "All 2 tasks have ended after 1 min 15 s: 1 SUCCESS, 1 FAILED.",
        "The pool went from 0 to 4 agents and back to 0.",
        "From ready to running, half of the tasks waited 4 s or less, the longest 4 s.",
        "",
        f"Pages:  {tmp_path}/pages/index.html",
        f"        file://{tmp_path}/pages/index.html",
        f"Pool:   {tmp_path}/pool.html",
        f"Log:    {tmp_path}/agents.log",
    ]


@pytest.mark.parametrize(
    ("expected", "heading"),
    [
        pytest.param("x.csv is broken on purpose", "FAILED, as they should: x.csv is broken on purpose", id="on purpose"),
        pytest.param("", "FAILED", id="not on purpose"),
    ],
)
def test_the_summary_names_each_failure_once_and_what_failed_with_it(tmp_path: Path, expected: str, heading: str) -> None:
    failure = Failure("x.csv", "import/x", "x.csv, line 3: no table", tuple(f"report/{number}" for number in range(5)))
    lines = summary(result(tmp_path, failure, expected=expected))
    start = lines.index(heading)
    assert lines[start + 1 : start + 4] == [
        "  import/x",
        "    x.csv, line 3: no table",
        "    and because of it: report/0, report/1, report/2 and 2 more",
    ]


# --- where it cannot run ------------------------------------------------------------------------------------------------


def test_without_the_source_tree_the_command_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    result = World().run("demo")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: The demo is in the source tree, not in the package. Clone the repository and run `make demo` there.\n"
    )


def test_without_the_packages_of_the_extra_the_command_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "NEEDED", ("jinja2", "no_such_package"))
    result = World().run("demo")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: The demo needs no_such_package. `make demo` installs all it needs, or: pip install -e '.[demo]'\n"
    )
