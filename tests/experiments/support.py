"""Experiments run as a study runs them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ep_bench.experiments.study_folder import study_folder
from ep_bench.runner.experiment_plan import plan_of_experiment
from ep_bench.runner.run import RunOptions, run_plan
from ep_bench.spec import Study
from tests.commands import cells_in_this_process


def run_experiment(
    name: str,
    options: Mapping[str, Any],
    seed: int,
    folder: Path,
    study: str = "s",
    *,
    jobs: int = 1,
    accept: Sequence[Mapping[str, str]] = (),
    retry_failed: bool = False,
) -> Path:
    """Run an experiment and return its folder; the parts run in this process unless there are several jobs."""
    path = study_folder().absolute() / f"{study}.yaml"
    read = Study(name=study, path=path, experiment=name, options=dict(options), seed=seed, accept=tuple(accept))
    here = contextlib.nullcontext() if jobs > 1 else cells_in_this_process()
    with here:
        run_plan(plan_of_experiment(read, folder), RunOptions(jobs=jobs, retry_failed=retry_failed, quiet=True))
    return folder
