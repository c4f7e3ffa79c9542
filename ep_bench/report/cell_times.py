"""Times of cells in seconds: tuning, fit and prediction. Rows of older versions have wall times, but no CPU times."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

CPU_TIMES = ("tune_cpu_seconds", "fit_cpu_seconds", "predict_cpu_seconds")
WALL_TIMES = ("tune_seconds", "fit_seconds", "predict_seconds")


def total(rows: pd.DataFrame, columns: Sequence[str] = CPU_TIMES) -> pd.Series[float]:
    """Return the sum of the times of each row, NaN without any."""
    return rows.reindex(columns=list(columns)).sum(axis=1, min_count=1)


def on_common_splits(parts: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, bool]:
    """Return the times (J, M) of the cells of M methods on their common splits, and whether they are wall times.

    Each part has the cells of one method that ended ok, indexed by split. If a row of any part has no CPU times, wall
    times of all are used.
    """
    wall = any(bool(rows["wall_times"].any()) for rows in parts)
    columns = WALL_TIMES if wall else CPU_TIMES
    return pd.concat([total(rows, columns).dropna() for rows in parts], axis=1, join="inner"), wall
