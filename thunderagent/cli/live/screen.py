"""Puts snapshots where the user looks: drawn in place on a terminal, told in lines anywhere else."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live

from thunderagent.cli.live.lines import news
from thunderagent.cli.live.snapshot import Snapshot
from thunderagent.cli.live.view import view


def can_draw(console: Console) -> bool:
    """Whether the terminal moves its cursor and shows the characters that a view is made of."""
    return console.is_terminal and not console.is_dumb_terminal and not console.options.ascii_only


class Screen:
    """Shows snapshots while it is open. The last one stays on the screen."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._last: Snapshot | None = None
        # Refreshed by `show` alone: a thread that draws all the time would take the interpreter from others in this process.
        self._live = Live(console=console, auto_refresh=False) if can_draw(console) else None

    def say(self, text: str) -> None:
        """A line of text, as it is; on a terminal it stands above the view."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, snapshot: Snapshot) -> None:
        """Draw the snapshot, or tell what is new in it."""
        if self._live is not None:
            width, height = self.console.size
            self._live.update(view(snapshot, width, height - 1), refresh=True)
        else:
            for line in news(self._last, snapshot):
                self.say(line)
        self._last = snapshot

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
