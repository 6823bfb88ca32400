"""The demo's folder: made by it, emptied by the next demo of what this one made, and of nothing else.

A list in the folder names the files. Whatever is not on it belongs to somebody else and is neither removed nor written over.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from thunderagent.errors import InvalidInput

LIST = ".thunderagent-demo"
IGNORE = ".gitignore"
HEADER = "# Files that `thunderagent demo` made here. The next demo in this folder removes them, and nothing else."


class WorkDir:
    """An open work folder, locked against a second demo. Use :func:`open_workdir`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._list = path / LIST

    @property
    def log(self) -> Path:
        return self.path / "agents.log"

    @property
    def samples(self) -> Path:
        """What each cycle of the pool has shown."""
        return self.path / "samples.jsonl"

    @property
    def pool_page(self) -> Path:
        return self.path / "pool.html"

    def remove_earlier(self) -> None:
        """Remove what an earlier demo has made, also what it had begun to write when it was killed."""
        for name in self._listed():
            path = self.path / name
            begun = path.parent.glob(f".{path.name}.*.partial*")
            for each in (path, *begun):
                if each.is_file() or each.is_symlink():
                    each.unlink()
            self._remove_empty_folders(path.parent)
        self._list.write_text(HEADER + "\n")

    def own(self, files: Iterable[Path]) -> None:
        """Put files that are about to be made on the list. Raises InvalidInput for one that is there already."""
        names = [path.relative_to(self.path).as_posix() for path in files]
        for name in names:
            if (self.path / name).exists():
                raise InvalidInput(
                    f"{self.path / name} is there already and was not made by a demo. Name another folder with --work."
                )
        with self._list.open("a") as listed:
            listed.writelines(f"{name}\n" for name in names)

    def _listed(self) -> list[str]:
        """The names on the list, as far as they point into the folder: it could have been edited."""
        with suppress(FileNotFoundError):
            names = (line.strip() for line in self._list.read_text().splitlines())
            return [
                name for name in names if name and not name.startswith(("#", "/")) and ".." not in PurePosixPath(name).parts
            ]
        return []

    def _remove_empty_folders(self, folder: Path) -> None:
        with suppress(OSError):  # it is not empty, or gone
            while folder != self.path:
                folder.rmdir()
                folder = folder.parent


@contextmanager
def open_workdir(path: Path) -> Iterator[WorkDir]:
    """Make the folder or take over that of an earlier demo, emptied; git leaves it alone.

    Raises InvalidInput for a folder that holds other files, and for one in which a demo runs.
    """
    path = path.absolute()
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} is not a folder. Name another one with --work.")
    if path.is_dir() and any(path.iterdir()) and not (path / LIST).is_file():
        raise InvalidInput(f"{path} is not empty and not the folder of an earlier demo. Name another one with --work.")
    path.mkdir(parents=True, exist_ok=True)
    with (path / LIST).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(f"Another demo runs in {path}. Wait for its end, or name another folder with --work.") from None
        workdir = WorkDir(path)
        workdir.remove_earlier()
        (path / IGNORE).write_text("*\n")
        yield workdir
