"""The state and the estimated time of cells, from earlier runs and from other studies in the same results folder."""

from __future__ import annotations

import contextlib
import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench import adapters, data, estimator, methods
from ep_bench.errors import UserError
from ep_bench.recalibration import held_out_parts
from ep_bench.results import curves, row_scores, store
from ep_bench.results.files import sole_writer
from ep_bench.results.integrity import checksum
from ep_bench.runner.jobs import INFRASTRUCTURE, Job, PlannedCell
from ep_bench.types import DatasetInfo, DatasetRef, Record, SplitScheme

TimeKey = tuple[str, ...]

_COSTS = Path(__file__).with_name("fit_costs.json")  # written by ``benchmarks.fit_costs``
_SHORTEST_COST = 0.001  # CPU seconds; shorter ones are not resolved


@dataclass(frozen=True)
class Neighbour:
    """The folder of another study, its finished cells as in its lock file, and its intact finished rows."""

    folder: Path
    cells: list[dict[str, Any]]
    finished: store.FinishedRows


class EarlierResults:
    """Rows, times and factors of earlier runs in a results folder."""

    def __init__(self, folder: Path) -> None:
        self.stamps = store.stamps(folder)
        self.lock = store.read_lock(folder) or {}
        self.cells = store.lock_cells(self.lock)  # of the latest plan
        self.finished = store.finished_rows(folder, lock=self.lock)
        self.rows = self.finished.rows
        self._folder = folder
        self._neighbours: list[Neighbour] = []

    def find_neighbours(self, results: Path, keys: AbstractSet[str]) -> None:
        """Find the folders of other studies that have unfinished cells among ``keys``."""
        unfinished = {key for key in keys if key not in self.rows or _is_lost(self.rows[key])}
        self._neighbours = neighbours(results, self._folder, unfinished)

    def describe(self, ref: DatasetRef) -> DatasetInfo:
        """Return the description of a data set; without file and card, the checksum is that of the earlier plan."""
        info = data.describe(ref)
        earlier = self.lock.get("datasets", {}).get(ref.label, {})
        if info.checksum or earlier.get("name") != ref.name:
            return info
        return replace(info, checksum=earlier["checksum"])

    def classify(self, job: Job) -> PlannedCell:
        """Return the state of a job. A cell that failed because of the machine counts as missing."""
        row = self.rows.get(job.cell.key)
        if row is not None and not _is_lost(row):
            return PlannedCell(job, "done") if row["status"] == "ok" else PlannedCell(job, "failed", row["reason"])
        # A class in a file is known by its path and its declared version, and another study may have another such file.
        usable = [] if _names_a_file(job.cell.factors) else self._neighbours
        source = _source(usable, job.cell.key, "ok")
        if source is not None:
            return PlannedCell(job, "elsewhere", source.folder.name, source=source)
        failed = _source(usable, job.cell.key, "failed")
        if row is not None:
            return PlannedCell(job, "missing", row["reason"], source=failed)
        old = self._finished_by_slot.get(slot(vars(job.cell)))
        if old is None:
            return PlannedCell(job, "missing", source=failed)
        why = "; ".join(differences(old["factors"], job.cell.factors))
        return PlannedCell(job, "stale", why, source=failed)

    def estimate(self, factors: Mapping[str, Any], info: DatasetInfo, *, searched: bool = False) -> float | None:
        """Return the estimated time of a cell in seconds, or None.

        It is the median time of the same configuration, else the method's own estimate, else the median of the other
        configurations of the method on this data set. With ``searched``, another cell has the trials of its search.
        """
        exact, similar = _time_keys(factors)
        if exact in self._seconds and not searched:
            return statistics.median(self._seconds[exact])
        points = data.training_points(SplitScheme(**factors["splits"]), info)
        n = int(factors["dataset"].get("train_points") or points)
        fits = _fits({**factors, "tune": None} if searched else factors, n)
        own = _own_estimate(factors, n, info.d)
        times = self._seconds.get(similar) or self._seconds.get((*similar[:-1], ""))
        return own * fits if own is not None else statistics.median(times) * fits if times else None

    @cached_property
    def _finished(self) -> list[dict[str, Any]]:
        """The finished cells of the latest plan."""
        return [cell for cell in self.cells if cell["cell"] in self.rows]

    @cached_property
    def _finished_by_slot(self) -> dict[tuple[str, str, int, int], Mapping[str, Any]]:
        return {slot(cell): cell for cell in self._finished}

    @cached_property
    def _seconds(self) -> dict[TimeKey, list[float]]:
        """The times of finished cells in seconds per configuration, and of one fit per method and data set."""
        known = [(self._finished, self.rows), *((each.cells, each.finished.rows) for each in self._neighbours)]
        times: dict[TimeKey, list[float]] = {}
        for exact, similar, cell, row in (found for cells, rows in known for found in _timed_cells(cells, rows)):
            times.setdefault(exact, []).append(_spent(row))
            times.setdefault(similar, []).append(_spent(row) / _fits(cell["factors"], row.get("n_train", 0)))
        return times


def neighbours(results: Path, own: Path, keys: AbstractSet[str]) -> list[Neighbour]:
    """Return the folders below ``results`` other than ``own`` whose plan has cells with these hashes.

    Cell files are not read, because every run writes its rows to ``results.csv``. Folders that cannot be read, or whose
    lock file has no checksums of rows, are omitted.
    """
    found = []
    for path in sorted(results.glob(f"*/{store.LOCK}")) if keys else ():
        folder = path.parent
        with contextlib.suppress(UserError, OSError):
            if folder.name == own.name or not store.names_any(path, keys):
                continue
            lock = store.read_lock(folder) or {}
            cells = store.lock_cells(lock) if "provenance" in lock else []
            if any(cell["cell"] in keys for cell in cells):
                finished = store.finished_rows(folder, with_cell_files=False, lock=lock)
                found.append(Neighbour(folder, [cell for cell in cells if cell["cell"] in finished.rows], finished))
    return found


def slot(cell: Mapping[str, Any]) -> tuple[str, str, int, int]:
    """Return the place of a cell in a study; a finished cell at the place of another one is stale."""
    return cell["method"], cell["dataset"], cell["split"], cell["factors"].get("seed", 0)


def _source(folders: Sequence[Neighbour], key: str, status: str) -> Neighbour | None:
    """Return the first folder in which a cell has a status that is not due to the machine."""
    rows = ((each, each.finished.rows.get(key)) for each in folders)
    return next((each for each, row in rows if row and row["status"] == status and not _is_lost(row)), None)


def _is_lost(row: store.Row) -> bool:
    """Return whether a cell failed because of the machine."""
    return row["status"] != "ok" and str(row.get("reason", "")).startswith(INFRASTRUCTURE)


def _names_a_file(factors: Mapping[str, Any]) -> bool:
    """Return whether a method, or an object among its options, is a class in a file."""
    return re.search(r'"[^"]*(/|\\|\.py:)[^"]*"', json.dumps([factors["method"], factors["options"]])) is not None


def _timed_cells(
    cells: Iterable[Mapping[str, Any]], rows: Mapping[str, store.Row]
) -> Iterator[tuple[TimeKey, TimeKey, Mapping[str, Any], store.Row]]:
    """Yield the cells of one plan that have times; those of one method on one data set have the same keys."""
    keys: dict[tuple[str, str], tuple[TimeKey, TimeKey]] = {}
    for cell in cells:
        row, place = rows[cell["cell"]], (cell["method"], cell["dataset"])
        if row["status"] == "ok" and {"method", "options", "dataset"} <= cell["factors"].keys():
            if place not in keys:
                keys[place] = _time_keys(cell["factors"])
            yield (*keys[place], cell, row)


def _time_keys(factors: Mapping[str, Any]) -> tuple[TimeKey, TimeKey]:
    """Return two keys of earlier times: the same configuration; the same method and data set, "tuned" or else ""."""
    tune = factors.get("tune")
    decides = {key: factors[key] for key in ("options", "tune", "recalibrate") if factors.get(key)}
    decides.setdefault("options", factors["options"])
    place = (factors["method"], factors["dataset"]["name"])
    return (*place, store.factor_hash(decides)), (*place, "tuned" if tune else "")


def _own_estimate(factors: Mapping[str, Any], n: int, d: int) -> float | None:
    """Return the method's own estimate of a fit to n training points with d inputs in seconds, None without one.

    It is scaled to what was measured with default options at as many points.
    """
    if adapters.is_target(factors["method"]):
        return None
    method = methods.get(factors["method"])
    if method.seconds is None:
        return None
    own, _ = estimator.split_common(estimator.restore(method.name, factors["options"]))
    return method.seconds(estimator.parse_options(method, own), n, d) * cost_ratio(method.name, n)


@cache
def measured_costs() -> dict[str, Any]:
    """Return measured costs of fits with default options: ``environment``, ``inputs``, ``limit`` and ``rows``."""
    return dict(json.loads(_COSTS.read_text(encoding="utf-8")))


def cost_ratio(name: str, n: int) -> float:
    """Return the ratio of measured times and those that a method estimates for n points; 1 if one is not known.

    It is interpolated in log n. Beyond the measured numbers of points, it is that of the nearest one.
    """
    points, logs = _cost_ratios(name)
    return math.exp(np.interp(math.log(n), points, logs)) if points else 1.0


@cache
def _cost_ratios(name: str) -> tuple[list[float], list[float]]:
    """Return the logarithms of the measured numbers of points of a method and of the ratios of times."""
    found = measured_costs()
    points, logs = [], []
    for row in found["rows"]:
        is_measured = row["method"] == name and row.get("fit_cpu_seconds", 0.0) >= _SHORTEST_COST
        if is_measured and (estimate := methods.get(name).seconds):
            own = estimate(methods.get(name).config(), row["n"], found["inputs"])
            points.append(math.log(row["n"]))
            logs.append(math.log(row["fit_cpu_seconds"] / own))
    return points, logs


def _spent(row: store.Row) -> float:
    """Return the CPU seconds of a cell, which do not depend on other processes, or its wall time without them."""
    kind = "cpu_seconds" if "fit_cpu_seconds" in row else "seconds"
    return float(sum(row.get(f"{what}_{kind}", 0.0) for what in ("fit", "predict", "tune")))


def _fits(factors: Mapping[str, Any], n: int) -> float:
    """Return the work of a cell in units of one fit to all n training points.

    A trial of a search and a model that is recalibrated use a part of them.
    """
    tune, recalibrate = factors.get("tune"), factors.get("recalibrate")
    fits = tune["trials"] * (1.0 - tune["fraction"]) + 1.0 if tune else 1.0
    if not recalibrate or n < 2:
        return float(fits)
    parts = held_out_parts(n, recalibrate["fraction"], 0, recalibrate["cross"])
    calibrated = sum(len(fitting) for fitting, _ in parts) / n
    return float(fits + calibrated if recalibrate.get("refit") else fits * calibrated)


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return the differences between two sets of factors, each as ``place: old -> new``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        inner = (differences(old.get(k), new.get(k), f"{place}.{k}" if place else str(k)) for k in keys)
        return [line for lines in inner for line in lines]
    if old == new:
        return []
    if _short(old) == _short(new):  # the difference is in the part that is cut off
        return [f"{place}: {_short(old, 100)} -> {_short(new, 100)}"]
    return [f"{place}: {_short(old)} -> {_short(new)}"]


def _short(value: Any, kept: int = 12) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 2 * kept else text[:kept] + "..."


def take_over(
    folder: Path, cells: Iterable[PlannedCell], finished: store.FinishedRows, lock: Mapping[str, Any]
) -> Counter[str]:
    """Copy finished cells from the folders of other studies; return their number by the name of the folder.

    They are added to the ``finished`` cells of ``folder``. Rows keep their provenance. Their curves and their scores of
    single test points are copied too, if the other folder has them. As for a cell that is run, there is a cell file for
    each.
    """
    found = [(planned.job, planned.source) for planned in cells if planned.source is not None]
    if not found:
        return Counter()
    records = {job.cell.key: record for source in _sources(found) for job, record in _records(found, source)}
    for record in records.values():
        finished.add(record)
    with sole_writer(folder):
        with contextlib.suppress(UserError):  # an unreadable file of another study; its rows are intact
            rows, _ = store.by_seed(lock, store.current_rows(folder, lock, finished.rows))
            curves.update(folder, rows, [source.folder for source in _sources(found)])
        for record in records.values():
            store.write_record(folder, record)
    return Counter(source.folder.name for source in {job.cell.key: source for job, source in found}.values())


def _sources(found: Iterable[tuple[Job, Neighbour]]) -> list[Neighbour]:
    return list({source.folder: source for _, source in found}.values())


def _records(found: Iterable[tuple[Job, Neighbour]], source: Neighbour) -> Iterable[tuple[Job, Record]]:
    """Yield the records of the cells of one folder, from its cell files or else from its tables."""
    scores: dict[str, row_scores.Scores] = {}
    with contextlib.suppress(UserError):
        scores = row_scores.read(source.folder)
    for job in (job for job, of in found if of is source):
        key = job.cell.key
        row = source.finished.rows[key]
        origin = source.finished.origins[key]
        record = store.read_record(source.folder / store.CELLS / f"{key}.json")
        if record is None or checksum(record.row) != checksum(row):
            notes = {row_scores.NOTE: scores[key]} if key in scores else {}
            provenance = {**origin.environment, "source": origin.source}
            record = Record(dict(row), dict(job.cell.factors), provenance, notes=notes)
        record.row |= {"study": job.study, "method": job.cell.method, "dataset": job.cell.dataset}
        yield job, record
