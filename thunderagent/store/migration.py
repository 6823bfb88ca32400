"""Changing the layout of a table while agents work on it.

Every step leaves a table that each program handles rightly, whether it has heard of the step or not, and between two steps it
is waited until all of them have. Towards dispatch:

1. the index is added; DynamoDB fills it while the table is used;
2. writes begin to keep it, while work is still looked for in the published index;
3. what was written before is filed, page by page, until one whole scan finds nothing to file: that is also the proof;
4. work is looked for in the dispatch index.

Back: the published index, where it was dropped, is added; work is looked for there; and only then do writes leave the other
alone. Whoever stops in between, at whatever moment, types the same command again: what is done is not done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from thunderagent import transitions
from thunderagent.errors import StoreRejected
from thunderagent.store import admin
from thunderagent.store.admin import IndexPlan, ScanPlace
from thunderagent.store.base import LAYOUT_READ, task_or_none
from thunderagent.store.dynamo import DynamoStore
from thunderagent.store.layout import (
    DEFAULT_SHARDS,
    DISPATCH_INDEX,
    RESERVED_IDS,
    Layout,
    Way,
    check_shards,
    checked_queues,
)
from thunderagent.task import Attr, Record, Task

SETTLE, STEP = int(LAYOUT_READ) + 15, 5
"""Seconds until every program has read a change: those between two reads of it, and a call of theirs that was slow."""

SCAN_LIMIT = 500
INDEX_TRIES = 7 * 24 * 3600
"""Seconds that an index may take to be filled."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a table is to have. ``shards``: None leaves them. ``queues`` are added. ``drop``: remove the index left unused."""

    way: Way
    shards: int | None = None
    queues: tuple[str, ...] = ()
    drop: bool = False


class Migration:
    """One run of a migration. ``report`` is told what is being done; ``sleep`` is given seconds to wait."""

    def __init__(self, store: DynamoStore, sleep: Callable[[float], None], report: Callable[[str], None]) -> None:
        self._store = store
        self._sleep = sleep
        self._report = report
        self.refused: dict[str, str] = {}
        """Ids of open tasks whose items took no write, with what DynamoDB said: no agent finds them on dispatch."""

    def run(self, goal: Goal) -> Layout:
        """Bring the table to the goal. Raises a StoreError, LayoutChanged, InvalidInput; then it is safe to run it again."""
        check_shards(1 if goal.shards is None else goal.shards)
        self._store.forget_layout()
        layout = self._store.layout()
        queues = checked_queues((*layout.queues, *goal.queues))
        return (self._to_dispatch if goal.way is Way.DISPATCH else self._to_classic)(layout, goal, queues)

    def _to_dispatch(self, layout: Layout, goal: Goal, queues: tuple[str, ...]) -> Layout:
        shards = goal.shards or (layout.shards if layout.keyed else DEFAULT_SHARDS)
        is_there = layout.way is Way.DISPATCH and layout.shards == layout.read_shards == shards
        self._index(admin.DISPATCH)
        read_shards = max(shards, layout.read_shards)
        layout = self._change(layout, keyed=True, shards=shards, read_shards=read_shards, queues=queues)
        if not is_there or not goal.queues:
            self._file_all(shards)
        layout = self._change(layout, way=Way.DISPATCH, read_shards=shards)
        if goal.drop:
            layout = self._change(layout, classic_index=False)
            self._drop(self._store.settings.index)
        return layout

    def _to_classic(self, layout: Layout, goal: Goal, queues: tuple[str, ...]) -> Layout:
        self._index(admin.CLASSIC_INDEX)
        layout = self._change(layout, classic_index=True, queues=queues, way=Way.CLASSIC)
        layout = self._change(layout, keyed=False, shards=1, read_shards=1)
        if goal.drop:
            self._drop(DISPATCH_INDEX)
        return layout

    def _change(self, layout: Layout, **changes: object) -> Layout:
        """Write a changed layout and wait until all programs have read it. Nothing where it is so already."""
        changed = replace(layout, **changes)  # type: ignore[arg-type]
        if changed == layout:
            return layout
        written = admin.write_layout(self._store, changed)
        for left in range(SETTLE, 0, -STEP):
            self._report(f"Waiting until all agents have read the change ({left} s left)")
            self._sleep(STEP)
        return written

    def _index(self, plan: IndexPlan) -> None:
        admin.add_index(self._store, plan)
        admin.wait_until_active(self._store, self._sleep, tries=INDEX_TRIES, report=self._report)

    def _drop(self, name: str) -> None:
        self._report(f"Removing the index {name}")
        admin.drop_index(self._store, name)

    # --- filing ---------------------------------------------------------------------------------------------------------

    def _file_all(self, shards: int) -> None:
        """File every item, in scans of the whole table, until one of them has found nothing to file."""
        while self._scan_once(shards):
            pass

    def _scan_once(self, shards: int) -> int:
        """One scan; it goes on where one that was stopped had got to. Returns how many items it filed."""
        place = admin.read_place(self._store, shards)
        while True:
            page = admin.scan_page(self._store, SCAN_LIMIT, place.cursor)
            filed = place.filed + self._file(page.records)
            place = replace(place, cursor=page.cursor, seen=place.seen + len(page.records), filed=filed)
            self._report(f"Filing what was there before: {place.seen} items looked at, {place.filed} filed")
            if page.cursor is None:
                admin.write_place(self._store, ScanPlace(shards))
                return place.filed
            admin.write_place(self._store, place)

    def _file(self, records: Iterable[Record]) -> int:
        """File what is not filed. Where a task has changed meanwhile, whoever changed it has filed it."""
        layout = self._store.layout()
        tasks = (task_or_none(record) for record in records if record[Attr.TASK_ID] not in RESERVED_IDS)
        return sum(self._filed(task) for task in tasks if task is not None and not layout.is_filed(task))

    def _filed(self, task: Task) -> bool:
        try:
            self._store.apply(transitions.refile(task))
        except StoreRejected as error:  # another program has filled its item
            self.refused[task.task_id] = str(error)
            return False
        return True
