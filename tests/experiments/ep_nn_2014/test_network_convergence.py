"""Networks sweep by sweep: shorter fits are the beginning of longer ones, and scores at convergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import data
from ep_bench.experiments.ep_nn_2014.network_convergence import compute as network_convergence
from ep_bench.experiments.ep_nn_2014.network_fits import fitted
from ep_bench.experiments.record import ExperimentResults
from ep_bench.methods.ep_nn.schedule import LAST
from ep_bench.types import SplitScheme

EASY: dict[str, Any] = {"use": "ep_nn", "label": "LA", "hidden": [1], "tolerance": 1e-12}
CHAINS = {"use": "hmc", "label": "MC", "hidden": [2], "steps": 5}
OPTIONS: dict[str, Any] = {
    "dataset": "friedman1", "folds": 2, "shown": 1, "sweeps": [10, 60, 150], "samples": [2, 4], "methods": [EASY],
    "chains": CHAINS,
}  # fmt: skip


RUN = "network_convergence", OPTIONS, "way"


def test_a_fit_is_the_beginning_of_a_longer_one(arrays: dict[str, Any]) -> None:
    whole = data.load_dataset("friedman1")
    split = data.make_split(data.resolve_scheme(SplitScheme("kfold", folds=2), whole.card), whole, 0)
    for sweeps in (80, 60):
        entry = network_convergence.ExperimentMethod.model_validate({**EASY, "sweeps": sweeps})
        fit = fitted(entry, whole.X[split.train], whole.y[split.train], standardize=True, seed=0)
        steps = np.array([fit.model.trace_[f"step_{group}"] for group in arrays["groups"].tolist()])
        same = sweeps - LAST
        np.testing.assert_array_equal(steps[:, :same], arrays["steps_0_0"][:, :same])
        np.testing.assert_array_equal(fit.model.trace_["log_evidence"][:same], arrays["log_evidence_0_0"][:same])
    ll = fit.model.predict_dist(whole.X[split.test]).logpdf(whole.y[split.test]).mean()
    assert arrays["scores_0_0"][1, 1] == pytest.approx(ll)


def test_sweeps_continue_after_convergence_with_the_same_scores(arrays: dict[str, Any]) -> None:
    close, largest = int(arrays["close_0_0"]), arrays["steps_0_0"].max(axis=0)
    assert 50 < close < 150
    assert largest[close - 1] < 1e-4 <= largest[: close - 1].min()
    assert largest[-1] < 1e-9
    _, ll, mse = arrays["usual_0_0"]
    assert arrays["scores_0_0"][1, -1] == pytest.approx(ll, abs=1e-3)
    assert arrays["scores_0_0"][2, -1] == pytest.approx(mse, rel=1e-3)


def test_arrays_and_summary_agree(results: ExperimentResults, arrays: dict[str, Any]) -> None:
    ours, chains = results.summary
    assert int(ours["converged_after"]) == arrays["close_0_0"]
    assert float(ours["ll_at_convergence"]) == pytest.approx(arrays["usual_0_0"][1], rel=1e-3)
    assert float(ours["ll_best"]) == pytest.approx(arrays["scores_0_0"][1].max(), rel=1e-3)
    assert float(chains["ll"]) == pytest.approx(arrays["sampled_0"][1, -1], rel=1e-3)
    assert (chains["method"], chains["converged_after"], arrays["sampled_0"].shape) == ("MC", "", (3, 2))
