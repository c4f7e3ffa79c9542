"""Studies and results in Python: ``ep_bench.run`` and ``ep_bench.load_results``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench import adapters
from ep_bench.errors import UserError
from ep_bench.experiments import SUMMARY
from ep_bench.results import store
from ep_bench.runner.plan import make_plan
from ep_bench.runner.progress import is_interactive
from ep_bench.runner.run import RunOptions, run_plan
from ep_bench.spec import read_mapping, read_study
from ep_bench.types import COLUMNS, COUNT_COLUMNS, TEXT_COLUMNS

_TYPES = {
    **dict.fromkeys(COLUMNS, "float64"),
    **dict.fromkeys(TEXT_COLUMNS, "string"),
    **dict.fromkeys(COUNT_COLUMNS, "Int64"),
    "converged": "boolean",
}


def run(
    study: str | Path | Mapping[str, Any],
    results: str | Path = "results",
    jobs: int = 1,
    *,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Run the missing cells of a study and return all its finished cells; of an experiment, return its summary.

    Parameters
    ----------
    study : str, Path or mapping
        A study file, the name of a study that is shipped with the package, or a mapping with the keys of a study file.
        In a mapping, a method can be a class, also one of a notebook, or ``{"use": Class, ...}`` with its options.
    results : str or Path
        Folder that contains the folder of the study. Finished cells in it are not run again.
    jobs : int
        Number of cells that run at a time.
    progress : bool, optional
        Whether to show progress: a bar in a terminal, else lines. By default only in a terminal or notebook. Cells that
        fail are always printed.

    Returns
    -------
    DataFrame
        One row per cell, as `load_results` returns it. Cells that failed have their ``status`` and ``reason``.

    Raises
    ------
    UserError
        The study is wrong or lacks data; ``jobs`` is not a positive integer; or the results folder is not writable or
        has the results of another kind of study; or a part without which an experiment has no results failed.
    """
    _check_jobs(jobs)
    read = read_mapping(adapters.named(study, Path(results))) if isinstance(study, Mapping) else read_study(study)
    plan = make_plan(read, Path(results))
    for line in plan.warnings():
        warnings.warn(line.removeprefix("warning: "), UserWarning, stacklevel=2)
    outcome = run_plan(plan, RunOptions(jobs=jobs, quiet=not (is_interactive() if progress is None else progress)))
    if read.experiment is None:
        return load_results(plan.folder)
    if not (plan.folder / SUMMARY).exists():
        counts = ", ".join(f"{n} {status}" for status, n in outcome.statuses.items())
        raise UserError(f"the experiment has no results; its parts: {counts}", where=str(plan.folder))
    return pd.read_csv(plan.folder / SUMMARY)


def _check_jobs(jobs: object) -> None:
    """Raise UserError if this is no number of jobs."""
    if not isinstance(jobs, Integral) or jobs < 1:
        raise UserError("wrong number of jobs", where="run", found=jobs, allowed="an integer of at least 1")


def load_results(*folders: str | Path) -> pd.DataFrame:
    """Return the finished cells of results folders, one row per cell, with the columns of ``results.csv``.

    Parameters
    ----------
    *folders : str or Path
        Results folders.

    Returns
    -------
    DataFrame
        Scores are in the original units of the target, ``ll`` in nats per test point. Columns have the types of pandas
        ``string``, ``Int64`` and ``boolean`` (``converged``), and scores and times are ``float64``. Empty values are
        missing: ``converged`` is if the method has no criterion. A cell that several folders have under one label is a
        single row. Cells of a folder whose study has changed since are left out.

    Raises
    ------
    UserError
        A folder has no results, or a row was altered after it was written.
    """
    if not folders:
        raise UserError("no results folder given", where="load_results")
    if any(isinstance(folder, list | tuple) for folder in folders):
        raise UserError("folders are separate arguments", where="load_results", allowed="load_results(*folders)")
    studies = [store.read_intact(Path(folder)) for folder in folders]
    rows = [row for study in studies for row in study.all_rows]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame = frame.drop_duplicates(["method", "dataset", "split", "cell"], ignore_index=True)
    frame["converged"] = frame["converged"].map({"true": True, "false": False})
    return frame.astype(_TYPES)
