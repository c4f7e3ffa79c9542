"""How much a fit differs on another processor: stored cells computed again with its instructions and BLAS kernel.

Two random cells of each method and data set are computed again, unless the method is exact, the fit has not converged
or took more than 20 seconds. Differences are in standard deviations of the score over the splits.

    OPENBLAS_CORETYPE=Haswell NUMBA_CPU_NAME=haswell NUMBA_CACHE_DIR=build/kernels \\
        GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F \\
        python -m benchmarks.other_processor docs/figures/other-processor.csv
"""

from __future__ import annotations

import csv
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from ep_bench.results import store
from ep_bench.runner.pool import run_jobs
from ep_bench.runner.recompute import seconds_of, stored_job
from ep_bench.runner.verify import equality
from ep_bench.types import UNCONVERGED

STUDIES = (
    "bnn-optimisation",
    "gap",
    "bnn-sampling",
    "ensemble",
    "gp",
    "dgp",
    "dgp-cosine",
    "ep-nn",
    "controls",
)
SECONDS, SPLITS, CELLS = 20.0, 5, 2  # longest fit; fewest splits of a method on a data set; cells of both
HEAD = ("study", "method", "dataset", "split", "score", "stored", "now", "standard_deviation", "difference")


def converged(row: Any) -> bool:
    """Return whether the fit of a row has converged."""
    return not str(row.get("reason")).startswith(UNCONVERGED)


def compared(study: Any, chance: random.Random) -> list[list[Any]]:
    """Return one row per score of the chosen cells of a study."""
    rows = {row["cell"]: row for row in study.rows if row["status"] == "ok"}
    groups = defaultdict(list)
    for cell in store.lock_cells(study.lock):
        if cell["cell"] in rows and equality(cell["factors"]["method"]) != "exact":
            groups[cell["method"], cell["dataset"]].append(cell)
    found = []
    for cells in (cells for cells in groups.values() if len(cells) >= SPLITS):
        for cell in chance.sample(cells, CELLS):
            row = rows[cell["cell"]]
            if seconds_of(row) > SECONDS or not converged(row):
                continue
            (record,) = run_jobs([stored_job(study, cell, row)], n_jobs=1)
            for score in ("rmse", "ll"):
                spread = statistics.stdev(rows[each["cell"]][score] for each in cells)
                numbers = (row[score], record.row[score], spread, (record.row[score] - row[score]) / spread)
                found.append(
                    [study.lock["study"], *(cell[key] for key in HEAD[1:4]), score, *map("{:.6g}".format, numbers)]
                )
    return found


def main(path: str) -> None:
    """Write the differences to the file ``path``."""
    chance = random.Random(5)
    rows = [row for name in STUDIES for row in compared(store.read_intact(Path("results", name)), chance)]
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
