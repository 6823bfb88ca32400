"""What is built from the repository and what is locked: the wheel, the source archive, the requirements."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import thunderagent

ROOT = Path(thunderagent.__file__).parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built by the back end that an installer would call."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "thunderagent"
    ours = {str(path.relative_to(ROOT)) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == ours
    assert "thunderagent/py.typed" in packed


def test_the_wheel_says_its_version_license_and_command(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    told = Parser().parsestr(wheel.read(metadata).decode())
    assert (told["Name"], told["Version"]) == ("thunderagent", thunderagent.__version__)
    assert (told["License-Expression"], told.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    (commands,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "thunderagent = thunderagent.cli.main:main" in wheel.read(commands).decode()


def test_the_source_archive_builds_the_same_wheel_and_holds_no_tests(dist: Path, wheel: zipfile.ZipFile) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    package = {name for name in wheel.namelist() if name.startswith("thunderagent/")}
    assert names == package | {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_has_hashes_for_all_and_names_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-", re.sub(r"^ +--hash=sha256:[0-9a-f]{64}( \\)?$", "", text, flags=re.MULTILINE), re.MULTILINE)
    assert [each for each in _entries(text) if "==" not in each or "--hash=sha256:" not in each] == []


@pytest.mark.parametrize(
    ("lock", "extras", "groups"),
    [
        ("dev", ("local", "demo"), ("test", "check", "build", "operator")),
        ("agent", (), ()),
        ("operator", (), ("operator",)),
        ("uv", None, ("uv",)),
        ("node", None, ("node",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_lock_meets_what_the_project_asks_for(lock: str, extras: tuple[str, ...] | None, groups: tuple[str, ...]) -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    locked = _locked_versions((ROOT / "requirements" / f"{lock}.txt").read_text())
    unmet = [str(each) for each in _asked_for(pyproject, extras, groups) if not _is_met(each, locked)]
    assert unmet == [], "run `make lock`"


def test_all_locks_agree_on_a_version() -> None:
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        if lock.name == "ministack.txt":  # it pins a botocore of its own, and has an environment of its own for that
            continue
        for name, version in _locked_versions(lock.read_text()).items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def _entries(text: str) -> list[str]:
    """The requirements of a lock, each with its hashes on one line."""
    return [line for line in text.replace("\\\n", " ").splitlines() if re.match(r"[A-Za-z0-9]", line)]


def _locked_versions(text: str) -> dict[str, str]:
    """The versions by name, for the interpreter that runs this: others may have others."""
    versions: dict[str, str] = {}
    for entry in _entries(text):
        requirement = Requirement(entry.partition(" --hash")[0])
        if requirement.marker is None or requirement.marker.evaluate():
            (pin,) = requirement.specifier
            versions[canonicalize_name(requirement.name)] = pin.version
    return versions


def _asked_for(pyproject: dict[str, Any], extras: tuple[str, ...] | None, groups: tuple[str, ...]) -> Iterator[Requirement]:
    project = pyproject["project"]
    texts = [] if extras is None else [*project["dependencies"]]
    texts += [text for extra in extras or () for text in project["optional-dependencies"][extra]]
    texts += [text for group in groups for text in pyproject["dependency-groups"][group]]
    yield from (Requirement(text) for text in texts if not text.startswith("thunderagent["))


def _is_met(requirement: Requirement, locked: dict[str, str]) -> bool:
    version = locked.get(canonicalize_name(requirement.name))
    return version is not None and requirement.specifier.contains(version)
