"""Reference posteriors and the distances from them, from the study to the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ep_bench
from ep_bench.errors import UserError
from ep_bench.experiments import figures, problems
from ep_bench.experiments.posteriors.fidelity import pairs
from ep_bench.experiments.posteriors.fidelity.compute import Approximation
from ep_bench.experiments.record import ExperimentResults
from ep_bench.results import store
from tests.experiments.support import run_experiment

KNOWN = {"use": "hmc", "dataset": "cubic", "noise_variance": 0.05, "prior_variance": 0.5}
SHORT = {"warmup": 60, "samples": 80, "steps": 20}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with short reference posteriors of the cubic toy data, and the distances of two methods from them."""
    folder = tmp_path_factory.mktemp("results")
    entries = [{**KNOWN, **SHORT, "label": "relu", "hidden": [5]},
               {**KNOWN, **SHORT, "label": "probit", "hidden": [3], "activation": "probit"}]  # fmt: skip
    options = {"posteriors": entries, "chains": 2, "draws": 100}
    run_experiment("reference", options, 0, folder / "reference-cubic", "reference-cubic")
    methods = [
        {"use": "pbp", "label": "PBP", "hidden": [5], "epochs": 3},
        {"use": "laplace", "label": "LA, full", "network": "probit", "activation": "probit", "hidden": [3]},
        {"use": "dropout", "label": "dropout", "hidden": [5], "epochs": 2, "passes": 20},
    ]  # fmt: skip
    fidelity = {"datasets": ["cubic"], "methods": methods, "results": str(folder)}
    run_experiment("fidelity", fidelity, 0, folder / "fidelity", "fidelity")
    return folder


def test_a_reference_is_loaded_with_its_diagnostics(results: Path) -> None:
    found = ep_bench.load_reference("cubic", results=results)
    assert found.draws.shape == (2, 50, 2)
    assert found.pooled.shape == (100, 2)
    assert found.r_hat.shape == found.ess_bulk.shape == (2,)
    assert (found.noise_variance, found.prior_variance) == (0.05, 0.5)
    y = ep_bench.load_dataset("cubic").y
    assert found.noise_deviation == pytest.approx(0.05**0.5 * y[ep_bench.standard_split(len(y), 0)[0]].std())
    assert np.abs(found.pooled.mean(axis=0)).max() < 1.5 * np.abs(y).max()
    assert found.provenance["environment"]


def test_a_missing_reference_is_reported_with_those_that_exist(results: Path) -> None:
    with pytest.raises(UserError, match=r"no such reference posterior.*relu/cubic/1.*probit/cubic/0"):
        ep_bench.load_reference("cubic", 1, results=results)


def test_the_summary_has_every_method_and_the_floor(results: Path) -> None:
    section = figures.section(store.read_study(results / "fidelity"))
    assert len(section.pictures) == 1
    assert [len(table.rows) for table in section.tables[:2]] == [2, 3]
    assert section.tables[1].rows[0][0] == pairs.FLOOR
    assert any(row[0] == "dropout*" for row in section.tables[1].rows)
    rows = figures.read(store.read_study(results / "fidelity")).summary
    assert {row["method"] for row in rows} == {"PBP", "LA, full", "dropout", pairs.FLOOR}
    assert all(float(row["wasserstein_2"]) > 0.0 for row in rows)
    assert figures.section(store.read_study(results / "reference-cubic")).pictures


def test_known_variances_have_the_names_of_each_method() -> None:
    entry = {name: Approximation.model_validate({"use": name}) for name in ("pbp", "dropout", "ep_nn", "sgld")}
    assert entry["pbp"].options(0.1, 0.4) == {"noise_variance": 0.1, "prior_variance": 0.4}
    assert entry["dropout"].options(0.1, 0.4) == {}
    assert not entry["dropout"].knows_variances
    assert entry["ep_nn"].options(0.1, 0.4)["output_scale"] == pytest.approx(0.4**0.5)


def test_a_reference_needs_known_variances() -> None:
    (problem,) = problems("reference", {"posteriors": [{**KNOWN, "prior_variance": None}]})
    assert "needs noise_variance and prior_variance" in str(problem.error())


@pytest.mark.parametrize(("splits", "verdict", "words"), [(3, True, "too few"), (8, True, "p = "), (8, False, "p = ")])
def test_claims_are_paired_over_splits(splits: int, verdict: bool, words: str) -> None:
    closer, other = ("1.0", "2.0") if verdict else ("2.0", "1.0")
    rows = [
        {"network": "relu", "dataset": "boston", "split": str(split), "method": method, "wasserstein_2": value}
        for split in range(splits)
        for method, value in (("PBP", f"{closer}{split % 2}"), ("VI", other))
    ]
    (claim,) = pairs.claims(ExperimentResults("s", {}, {}, rows))
    assert claim.holds is verdict
    assert words in claim.found
