"""What the pages say exists and works: links, names of tests, commands, make targets, examples.

An example that is to be run is marked in the page's source, by a comment on the line before its block: ``<!-- run -->`` runs
it by itself; ``<!-- file: NAME -->`` makes it a file, and all files of a page are then in one folder, where pools are parsed
and tests are run.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest

from thunderagent.cli.main import main
from thunderagent.pool import load_pool

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
TEST = re.compile(r"(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)")
SPAN = re.compile(r"`(?P<text>[^`\n]+)`")
SEPARATORS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "(", ")"}


@dataclass(frozen=True)
class Block:
    """A fenced block; ``mark`` is the comment before it, empty where there is none."""

    mark: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(found["mark"] or "", found["language"], found["text"]) for found in BLOCK.finditer(page.read_text())]


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def typed_lines(page: Path) -> Iterator[str]:
    """The lines that a reader types: after a ``$`` in a console block, all of a shell block; continued lines joined."""
    for block in blocks(page):
        lines = block.text.replace("\\\n", " ").splitlines()
        if block.language == "console":
            yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        elif block.language in {"sh", "bash"}:
            yield from lines


def commands(page: Path, program: str) -> Iterator[list[str]]:
    """Arguments of each use of a program, in what is typed and in the code spans of the text."""
    for line in [*typed_lines(page), *(found["text"] for found in SPAN.finditer(prose(page)))]:
        if program in line:
            for words in simple_commands(line):
                if words[0].rpartition("/")[2] == program:
                    yield words[1:]


def simple_commands(line: str) -> Iterator[list[str]]:
    """The commands of a line of shell, without redirections and assignments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.whitespace_split = True  # else a colon, as in module:name, would end a word
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in SEPARATORS:
            words.append(word)
            continue
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        if words:
            yield words
        words = []


def check_command(arguments: list[str]) -> None:
    """Raises a click.UsageError where the command line would."""
    context = click.Context(main, info_name="thunderagent")
    command: click.Command = main
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"there is no command {name}")
        command = found
    if rest and rest != ["--help"] and rest != ["--version"]:
        command.make_context("thunderagent", rest)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Names of the test functions of a file, and of classes that tests are made from."""
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds)) | assigned


@pytest.fixture(params=PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def page(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for found in LINK.finditer(SPAN.sub("", prose(page))):
        target, _, anchor = found["target"].partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(found["target"])
    assert broken == []


def test_every_test_that_is_named_exists(page: Path) -> None:
    named = [(found["path"], found["name"]) for found in TEST.finditer(page.read_text())]
    absent = [f"{path}::{name}" for path, name in named if not _is_test(ROOT / path, name)]
    assert absent == []


def _promises() -> dict[str, str]:
    """What the guarantees promise, each with its text: paragraphs that begin in bold, and what happens when."""
    text = (ROOT / "docs" / "guarantees.md").read_text()
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    promised, happens = sections["What is promised"], sections["What happens when"]
    parts = [*re.split(r"^(?=\*\*)", promised, flags=re.M)[1:], *re.split(r"^### ", happens, flags=re.M)[1:]]
    return {part.partition("\n")[0]: part for part in parts}


@pytest.mark.parametrize("promise", _promises())
def test_each_promise_names_a_test_that_shows_it(promise: str) -> None:
    assert TEST.search(_promises()[promise])


def _is_test(path: Path, name: str) -> bool:
    return path.is_file() and name in functions_of(path)


def test_every_command_is_one_that_the_command_line_takes(page: Path) -> None:
    refused = []
    for arguments in commands(page, "thunderagent"):
        try:
            check_command(arguments)
        except click.UsageError as error:
            refused.append(f"thunderagent {shlex.join(arguments)}: {error.format_message()}")
    assert refused == []


def test_every_part_of_the_code_that_the_code_map_names_exists() -> None:
    spans = [found["text"] for found in SPAN.finditer(prose(ROOT / "docs" / "code-map.md"))]
    named = {name for text in spans if re.fullmatch(r"[A-Z]\w+\.\w+|_\w+|[a-z]+(_[a-z]+)+", text) for name in text.split(".")}
    defined = set().union(*(functions_of(path) for path in (ROOT / "thunderagent").rglob("*.py")))
    assert named - defined == set()


def test_every_finding_of_a_check_is_one_that_there_is() -> None:
    table = re.findall(r"^\|[^|]*\|(.*)\|$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    named = {code for row in table for code in re.findall("`([a-z]+(?:-[a-z]+)+)`", row)}
    source = "".join(path.read_text() for path in (ROOT / "thunderagent" / "diagnosis").glob("*.py"))
    assert {code for code in named if f'"{code}"' not in source} == set()


def test_every_make_target_exists(page: Path) -> None:
    makefiles = (ROOT / "Makefile", ROOT / "tests" / "cluster" / "cluster.mk")
    targets = {target for file in makefiles for target in re.findall(r"^([a-z0-9-]+):", file.read_text(), re.MULTILINE)}
    used = {word for words in commands(page, "make") for word in words if re.fullmatch("[a-z0-9-]+", word)}
    assert used <= targets


def test_every_example_that_stands_alone_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if block.mark == "run":
            exec(compile(block.text, page.name, "exec"), {"__name__": "example"})


def test_the_files_that_a_page_has_its_reader_write_work_together(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.mark.startswith("file: "):
            (tmp_path / block.mark.removeprefix("file: ")).write_text(block.text)
    for pool in tmp_path.glob("*.yaml"):
        load_pool(pool)
    for module in tmp_path.glob("*.py"):
        ast.parse(module.read_text(), module.name)
    if any(tmp_path.glob("test_*.py")):
        _pytest_in(tmp_path)


def _pytest_in(folder: Path) -> None:
    """In a process of its own, since a page's modules are not this project's."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
