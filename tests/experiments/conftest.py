"""What the tests of a finished experiment read.

A module has ``RUN`` (the experiment, its options and the name of the study) or a fixture ``folder`` of the results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ep_bench.experiments import figures
from ep_bench.experiments.record import ExperimentResults
from ep_bench.results import store
from tests.experiments.support import run_experiment


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name, options, study = request.module.RUN
    return run_experiment(name, options, 0, tmp_path_factory.mktemp("r") / study, study)


@pytest.fixture(scope="module")
def results(folder: Path) -> ExperimentResults:
    """The stored results, which the figure of the experiment can draw."""
    study = store.read_study(folder)
    assert figures.section(study).pictures
    return figures.read(study)


@pytest.fixture(scope="module")
def arrays(results: ExperimentResults) -> dict[str, Any]:
    return results.arrays


@pytest.fixture(scope="module")
def rows(results: ExperimentResults) -> dict[str, dict[str, str]]:
    """The rows of the summary by method."""
    return {row["method"]: row for row in results.summary}
