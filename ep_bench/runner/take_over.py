"""Cells that another study below the same results folder has finished: they are copied, not computed again."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError
from ep_bench.results import curves, row_scores, store
from ep_bench.results.integrity import checksum
from ep_bench.results.neighbours import Neighbour
from ep_bench.results.writers import sole_writer
from ep_bench.runner.earlier_results import PlannedCell
from ep_bench.runner.jobs import Job
from ep_bench.types import Record


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
            rows = store.current_rows(folder, lock, finished.rows)
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
