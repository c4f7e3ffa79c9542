"""Output of ``plan`` and ``status``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ep_bench import convergence
from ep_bench.cli.output.text import Columns, Item, indented, matrix
from ep_bench.experiments.storage import failures
from ep_bench.results import store
from ep_bench.runner.jobs import PARTS
from ep_bench.runner.progress import clock

if TYPE_CHECKING:
    from ep_bench.runner.jobs import BasePlan

_STATES = ("done", "failed", "elsewhere", "stale", "missing")
_MAX_LISTED = 20  # cells that `status` lists if they are not ok


def plan_items(plan: BasePlan, jobs: int, *, cells: bool = False) -> Iterator[Item]:
    """Yield a table of the cells, single or grouped, the reasons of stale cells, and the time left."""
    yield Columns(_single_cells(plan) if cells else _cell_groups(plan), drop=["time per cell", "stale", "elsewhere"])
    yield from _searches(plan)
    reasons = Counter((p.job.cell.method, p.job.cell.dataset, p.why) for p in plan.cells if p.state == "stale")
    for (method, dataset, why), count in reasons.items():
        yield f"stale: {method} on {dataset}, {count} cells: {why}"
    for folder, count in Counter(p.why for p in plan.cells if p.state == "elsewhere").items():
        yield f"elsewhere: {count} cells are finished in {folder}; `run` takes them over"
    yield from left_out_lines(plan.left_out())
    if failed := sum(p.state == "failed" for p in plan.cells):
        yield f"failed: {failed} {plan.unit} are not ok; `run --retry-failed` runs them again"
    to_run = plan.to_run()
    seconds = [job.estimate for job in to_run if job.estimate is not None]
    unknown = len(to_run) - len(seconds)
    longest = max([sum(seconds) / jobs, *seconds])
    about = "less than 1 s" if longest < 1 else f"about {clock(longest)}"
    time = f"{about} with --jobs {jobs}" if seconds else "time unknown"
    more = f", and {unknown} {plan.unit} of unknown time" if unknown and seconds else ""
    yield f"{len(plan.cells)} {plan.unit}, {len(to_run)} to run" + (f"; {time}{more}" if to_run else "")
    if absent := plan.absent():
        names = " ".join(absent)
        yield f"no data file found for {', '.join(absent)}; run `ep-bench data fetch {names}`"


def left_out_lines(left_out: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the combinations of method and data set that a study leaves out, one line per reason and method."""
    datasets: dict[tuple[str, str], list[str]] = {}
    for each in left_out:
        datasets.setdefault((each["reason"], each["method"]), []).append(each["dataset"])
    for (reason, method), names in datasets.items():
        yield f"left out: {method} on {', '.join(names)}: {reason}"


def _cell_groups(plan: BasePlan) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, str], list[Any]] = {}
    for planned in plan.cells:
        groups.setdefault((planned.job.cell.dataset, planned.job.cell.method), []).append(planned)
    # Cells elsewhere are rare, so that they have no column if there are none.
    states = [state for state in _STATES if state != "elsewhere" or any(p.state == state for p in plan.cells)]
    table: list[tuple[str, ...]] = [("data set", "method", "cells", *states, "time per cell")]
    for (dataset, method), members in groups.items():
        found = Counter(planned.state for planned in members)
        counts = (str(found[state]) for state in states)
        table.append((dataset, method, str(len(members)), *counts, _time(members[0].job.estimate)))
    return table


def _single_cells(plan: BasePlan) -> list[tuple[str, ...]]:
    rows = [
        (p.job.cell.dataset, p.job.cell.method, str(p.job.cell.split), p.state, _time(p.job.estimate), p.job.cell.key)
        for p in plan.cells
    ]
    return [("data set", "method", "split", "state", "time", "cell"), *rows]


def _searches(plan: BasePlan) -> list[str]:
    """Return one line per tuned method: its budget, its score, and the search space."""
    tuned = {p.job.cell.method: p.job.tune for p in plan.cells if getattr(p.job, "tune", None)}
    return [
        f"tuned: {method}, {tune['trials']} trial{'s' * (tune['trials'] > 1)}, scored by {tune['score']} on "
        f"{tune['fraction']:g} of the training points: {space_text(tune['space'])}"
        for method, tune in tuned.items()
    ]


def space_text(space: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a canonical search space on one line."""
    return ", ".join(f"{name} {kind} {list(values)}" for name, entry in space.items() for kind, values in entry.items())


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:.2g} s" if seconds < 60 else clock(seconds)


def status_items(folder: Path) -> tuple[list[Item], bool]:
    """Return what to print of the state of a results folder, and whether all planned cells are ok."""
    stored = [] if (folder / store.LOCK).exists() else (record.row for record in store.each_record(folder, []))
    if parts := [row for row in stored if row["dataset"] == PARTS]:  # of an experiment without results
        head, *lines = [*_unfinished_lines(folder.name, parts), *_running_lines(folder)]
        return [head, *map(indented, lines)], False
    study = store.read_study(folder)
    if "experiment" in study.lock:  # the lock of an experiment is written last
        altered = [f"altered or removed after the run: {file}" for file in study.finished.suspect]
        failed = [] if altered else [f"failed: {text}" for text in failures(folder)]
        state = f"done, {len(failed)} parts failed" if failed else "done"
        head = f"{study.name}: experiment {study.lock['experiment']}: {state}"
        return [head, *map(indented, [*altered, *failed])], not altered and not failed
    planned = store.lock_cells(study.lock)
    rows = study.all_rows
    missing = len({cell["cell"] for cell in planned} - {row["cell"] for row in rows})
    not_ok = [row for row in rows if row["status"] != "ok"]
    seeds = {c["cell"]: c["factors"]["seed"] for c in planned} if study.lock.get("seeds", 1) > 1 else {}
    lines = [*_not_ok_lines(not_ok, seeds), *_running_lines(folder)]
    lines += [warning for warning in [store.damage_warning(study.finished.damaged)] if warning]
    lines += [f"altered or removed after the run: {row}" for row in study.finished.suspect]
    lines += left_out_lines(study.lock.get("left_out", []))
    table: list[Item] = ["", _coverage(study, rows, planned)] if planned else []
    head = _counts(study.name, rows, len(planned), missing)
    return [head, *map(indented, lines), *table], not not_ok and not missing


def _unfinished_lines(name: str, parts: Sequence[store.Row]) -> Iterator[str]:
    """Yield the state of an experiment of which some parts are finished."""
    not_ok = [row for row in parts if row["status"] != "ok"]
    more = "; --retry-failed runs those again that are not ok" if not_ok else ""
    counts = f"{len(parts) - len(not_ok)} parts ok, {len(not_ok)} not ok"
    yield f"{name}: experiment, not finished: {counts}; `ep-bench run` continues{more}"
    yield from _not_ok_lines(not_ok)


def _counts(name: str, rows: Sequence[store.Row], planned: int, missing: int) -> str:
    counts = Counter(row["status"] for row in rows)
    statuses = ("ok", "failed", "timeout", "memory", "skipped")
    parts = [f"{counts[status]} {status}" for status in statuses if counts[status]]
    if unconverged := convergence.count(row for row in rows if row["status"] == "ok").unconverged:
        parts[0] += f" ({unconverged} not converged)"
    parts += [f"{missing} missing"] if missing else []
    return f"{name}: {max(planned, len(rows))} cells: {', '.join(parts) or 'none run'}"


def _coverage(study: store.StudyResults, rows: Sequence[store.Row], planned: Sequence[Mapping[str, Any]]) -> Columns:
    """Return the number of cells with status ok per method and data set, with that of all unless it is the same."""
    wanted = Counter((cell["method"], cell["dataset"]) for cell in planned)
    done = Counter((row["method"], row["dataset"]) for row in rows if row["status"] == "ok")
    left_out = {(each["method"], each["dataset"]) for each in study.lock.get("left_out", [])}

    def entry(place: tuple[str, str]) -> str:
        if place not in wanted:
            return "left out" if place in left_out else ""
        count, total = done[place], wanted[place]
        return str(count) if count == total else f"{count}/{total}"

    return matrix("ok cells", wanted, entry)


def _not_ok_lines(rows: list[store.Row], seeds: Mapping[str, int] = {}) -> Iterator[str]:
    """Yield one line per row, with the seed of its cell if ``seeds`` has it."""
    for row in rows[:_MAX_LISTED]:
        place = f"{row['method']} on {row['dataset']}, split {row['split']}"
        place += f", seed {seeds[row['cell']]}" if row["cell"] in seeds else ""
        yield f"{row['status']}: {place}: {row.get('reason', '')}"
    if len(rows) > _MAX_LISTED:
        yield f"... and {len(rows) - _MAX_LISTED} more"


def _running_lines(folder: Path) -> Iterator[str]:
    from ep_bench.runner.cell_locks import running

    for run in running(folder):
        yield f"running: process {run.pid} on {run.host} since {run.started}, {run.cells} cells"
