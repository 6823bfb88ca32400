"""What the demo reads: files of the vega_datasets package, or those of a directory, and one that is broken on purpose."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

SAMPLES = ("seattle-weather", "seattle-temps", "sf-temps", "stocks", "us-employment", "airports")

CORRUPT_NAME = "harbour-tides.csv"
"""The broken file. It begins well, so that reports of it are planned, and those have to fail with it."""

CORRUPT_LINE = 248
"""The line of the broken file that an error must name."""


class NoInput(ValueError):
    """There is nothing to report on. The message says where it was looked for and what to do."""


def sample_files() -> list[Path]:
    """The CSV files of vega_datasets that the demo uses. Raises NoInput where the package is not installed.

    The package is found but not imported: its own import brings pandas along, which takes seconds and is not needed.
    """
    spec = find_spec("vega_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise NoInput("vega_datasets is not installed: pip install 'thunderagent[demo]', or name a directory of CSV files")
    data = Path(spec.submodule_search_locations[0], "_data")
    return [data / f"{name}.csv" for name in SAMPLES]


def input_files(directory: Path) -> list[Path]:
    """The CSV files right in a directory, by name. Raises NoInput where there are none."""
    if not directory.is_dir():
        raise NoInput(f"{directory} is not a directory; INPUT names a directory that holds CSV files")
    found = sorted(path for path in directory.iterdir() if path.suffix.lower() == ".csv" and path.is_file())
    if not found:
        raise NoInput(f"{directory} holds no file whose name ends in .csv")
    return found


def write_corrupt(directory: Path, seed: int = 2012) -> Path:
    """Write the broken file, the same bytes for the same seed: three months of readings, spoilt in the third."""
    chance = random.Random(seed)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    lines = [b"date,level_cm,wind\n"]
    for number in range(364):
        moment = start + timedelta(hours=6 * number)
        level = 180 + 120 * ((-1) ** number) + chance.gauss(0, 15)
        lines.append(f"{moment:%Y-%m-%d %H:%M},{level:.0f},{abs(chance.gauss(6, 3)):.1f}\n".encode())
    lines[CORRUPT_LINE - 1] = b"2024-03-02 12:00,2" + chance.randbytes(24).replace(b"\n", b"\x00") + b"\x00\n"
    lines[CORRUPT_LINE + 11] = b"2024-03-05 12:00\n"
    path = directory / CORRUPT_NAME
    directory.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path
