"""``python -m tests.simulation``: many histories, or one to be read. ``make sim`` calls this."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator

from tests.simulation.history import History, simulate
from tests.simulation.known import known
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.plan import Plan, plan
from tests.simulation.shrink import shrink

CHUNK = 20


def main() -> int:
    """0: no violation. 1: there is one; the first is shown, made small."""
    options = _options()
    if options.mutants:
        return _hunt_mutants(range(options.first, options.first + options.seeds))
    if options.seed is not None:
        return _replay(plan(options.seed).without(options.without, options.without_tasks), options.lines)
    return _run(range(options.first, options.first + options.seeds), options.processes, options.lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=None, help="processes to share the work; default: one a core")
    parser.add_argument("--seed", type=int, help="replay this one and print what happened")
    parser.add_argument("--without", nargs="*", default=[], help="kinds of faults to leave out of the replay")
    parser.add_argument("--without-tasks", nargs="*", default=[], help="tasks to leave out of the replay")
    parser.add_argument("--lines", type=int, default=60, help="lines of a trace to print; 0: all")
    parser.add_argument("--mutants", action="store_true", help="for each mutant, the first seed that notices it")
    return parser.parse_args()


def _replay(planned: Plan, lines: int) -> int:
    history = simulate(planned)
    print(f"seed {planned.seed}, faults: {' '.join(sorted(planned.faults))}")
    print(f"lease {planned.settings.lease:g} s, {'a pool' if planned.pool else f'{planned.agents} agents'}")
    print(history.story(lines or len(history.lines)))
    print(f"{history.writes} writes in {history.seconds:.0f} s, digest {history.digest}")
    return 1 if history.violations else 0


def _run(seeds: range, processes: int | None, lines: int) -> int:
    began = time.perf_counter()
    writes, seconds, failed, noted = 0, 0.0, [], 0
    for history in _histories(seeds, processes):
        writes, seconds = writes + history.writes, seconds + history.seconds
        if history.violations and known(history.violations[0]) is None:
            failed.append(history)
            print(f"seed {history.plan.seed}: {history.violations[0]}", file=sys.stderr)
        noted += bool(history.violations) and known(history.violations[0]) is not None
    took = time.perf_counter() - began
    print(f"{len(seeds)} histories in {took:.0f} s ({len(seeds) / took:.1f} a second): {writes} writes, {seconds / 3600:.0f} h")
    print(f"{len(failed)} with a violation, {noted} that ended in a known fault (tests/simulation/known.py)")
    if failed:
        _explain(min(failed, key=lambda history: history.plan.seed), lines)
    return 1 if failed else 0


def _explain(history: History, lines: int) -> None:
    small = shrink(history)
    tasks = {task.task_id for task in history.plan.tasks} - {task.task_id for task in small.plan.tasks}
    faults = history.plan.faults - small.plan.faults
    print(small.story(lines), file=sys.stderr)
    command = f"python -m tests.simulation --seed {history.plan.seed}"
    command += f" --without {' '.join(sorted(faults))}" if faults else ""
    command += f" --without-tasks {' '.join(sorted(tasks))}" if tasks else ""
    print(f"\nTo replay it: {command}", file=sys.stderr)


def _histories(seeds: range, processes: int | None) -> Iterator[History]:
    if processes == 1:
        yield from map(_history, seeds)
        return
    with multiprocessing.Pool(processes) as pool:
        yield from pool.imap_unordered(_history, seeds, chunksize=CHUNK)


def _history(seed: int) -> History:
    history = simulate(plan(seed))
    return history if history.violations else history.in_short()


def _hunt_mutants(seeds: range) -> int:
    missed = [mutant for mutant in MUTANTS if not _hunt(mutant, seeds)]
    return 1 if missed else 0


def _hunt(mutant: Mutant, seeds: Iterable[int]) -> bool:
    for seed in seeds:
        history = simulate(plan(seed), mutant.mutation)
        if history.violations and known(history.violations[0]) is None and not simulate(plan(seed)).violations:
            print(f"{mutant.rule:8} {mutant.name:58} seed {seed:5}: {history.violations[0].rule}", flush=True)
            return True
    print(f"{mutant.rule:8} {mutant.name:58} NOT NOTICED", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
