"""The committed results are those of the present methods: no cell and no experiment is stale.

A change of numbers, such as a new version of a method, makes its stored cells stale. They are then computed again, or
the study lists them with a reason in `left_out`.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from ep_bench.experiments.figures import read
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.experiments.study_folder import relative_to
from ep_bench.results.references import load_reference
from ep_bench.results.store import read_intact
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from ep_bench.spec.models import Study
from tests.test_committed_results import FOLDERS, RESULTS

CONFIGS = RESULTS.with_name("configs")


@cache
def studies() -> dict[str, Study]:
    found = [read_study(path) for path in CONFIGS.rglob("*.yaml")]
    return {study.name: study for study in found}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_committed_result_is_stale(folder: Path) -> None:
    study = studies()[folder.name]
    if study.experiment is not None:
        with relative_to(study.path.parent):
            assert ExperimentSetup(study.experiment, study.options, study.seed).is_computed(folder)
        return
    cells = make_plan(study, RESULTS).cells
    stale = [planned for planned in cells if planned.state == "stale"]
    assert not Counter((planned.job.cell.method, planned.job.cell.dataset, planned.why) for planned in stale)
    # A cell that another folder has computed again is not stale, but the old row is still in this one.
    current = {planned.job.cell.key for planned in cells}
    old = [row for row in read_intact(folder).rows if row["cell"] not in current]
    assert not Counter((row["method"], row["dataset"]) for row in old)


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder.name.startswith("fidelity")])
def test_distances_are_from_the_committed_references(folder: Path) -> None:
    rows = read(read_intact(folder)).summary
    assert rows
    for dataset, split, network in {(row["dataset"], row["split"], row["network"]) for row in rows}:
        part = [row for row in rows if (row["dataset"], row["split"], row["network"]) == (dataset, split, network)]
        reference = load_reference(dataset, int(split), network, RESULTS)
        assert {row["reference"] for row in part} == {reference.checksum}
