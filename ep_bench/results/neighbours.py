"""Finished cells of other studies below the same results folder."""

from __future__ import annotations

import contextlib
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ep_bench.errors import UserError
from ep_bench.results import store


@dataclass(frozen=True)
class Neighbour:
    """The folder of another study, its finished cells as in its lock file, and its intact finished rows."""

    folder: Path
    cells: list[dict[str, Any]]
    finished: store.FinishedRows


def neighbours(results: Path, own: Path, keys: AbstractSet[str]) -> list[Neighbour]:
    """Return the folders below ``results`` other than ``own`` whose plan has cells with these hashes.

    Cell files are not read, because every run writes its rows to ``results.csv``. Folders that cannot be read, or whose
    lock file has no checksums of rows, are omitted.
    """
    found = []
    for path in sorted(results.glob(f"*/{store.LOCK}")) if keys else ():
        folder = path.parent
        with contextlib.suppress(UserError):
            lock = store.read_lock(folder) or {}
            cells = store.lock_cells(lock) if folder.name != own.name and "provenance" in lock else []
            if any(cell["cell"] in keys for cell in cells):
                finished = store.finished_rows(folder, with_cell_files=False)
                found.append(Neighbour(folder, [cell for cell in cells if cell["cell"] in finished.rows], finished))
    return found
