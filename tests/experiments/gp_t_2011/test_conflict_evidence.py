"""The log evidence of two contradicting observations over a grid of hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import Estimator
from ep_bench.experiments.gp_t_2011 import conflict_examples
from ep_bench.experiments.gp_t_2011.conflict_evidence import compute as evidence


@pytest.fixture(scope="module")
def found() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    options = {"points": [2, 2], "lengthscales": [0.9, 2.0], "magnitudes": [3.0, 9.0], "runs": 300, "temperatures": 60}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "STARTS", 2)
        return evidence.compute(evidence.Config(**options), 0)


@pytest.mark.exhaustive
def test_each_value_belongs_to_its_hyperparameters(found: Any) -> None:
    arrays, _ = found
    assert arrays["lengthscales"].tolist() == pytest.approx([0.9, 2.0])
    assert arrays["magnitudes"].tolist() == pytest.approx([3.0, 9.0])
    data = conflict_examples.example(1)
    for i, eta in enumerate((1.0, 0.5)):
        given = {
            "lengthscale": 2.0,
            "magnitude": 3.0,
            "scale": 0.095,
            "nu": 1.2,
            "optimize": False,
            "standardize": False,
        }
        model = Estimator("gp_t", fraction=eta, **given).fit(data.x[:, None], data.y)
        assert arrays[f"evidence_1_{i}"][0, 1] == pytest.approx(model.log_evidence_, abs=1e-6)


@pytest.mark.exhaustive
def test_annealing_agrees_with_ep_for_narrow_posteriors(found: Any) -> None:
    arrays, _ = found
    near, error = arrays["annealed_1"][0, 1], arrays["error_1"][0, 1]
    assert 0.0 < error < 0.2
    assert arrays["evidence_1_0"][0, 1] == pytest.approx(near, abs=0.3 + 4 * error)
    # The evidence of EP is higher than that of fractional EP: a divergence of greater power covers more.
    assert np.all(arrays["evidence_2_0"] > arrays["evidence_2_1"])


@pytest.mark.exhaustive
def test_the_summary_agrees_with_the_arrays(found: Any) -> None:
    arrays, summary = found
    row = next(row for row in summary if (row["example"], row["eta"]) == (2, 0.5))
    apart = arrays["evidence_2_1"] - arrays["annealed_2"]
    assert row["mean_absolute_error"] == pytest.approx(np.abs(apart).mean(), rel=1e-3)
    assert row["sweeps_not_converged"] == (~arrays["swept_2_1"]).sum()
    assert row["points"] == 4
    assert row["without_solution"] == 0


@pytest.mark.exhaustive
def test_the_mode_has_the_highest_evidence(found: Any) -> None:
    arrays, _ = found
    data = conflict_examples.example(1)
    length, size = arrays["mode_1_0"]
    top = evidence.solved(data, conflict_examples.ExampleHyperparameters(length, size, 0.095, 1.2), 1.0)
    for factor in (0.97, 1.03):
        for hyper in (
            conflict_examples.ExampleHyperparameters(factor * length, size, 0.095, 1.2),
            conflict_examples.ExampleHyperparameters(length, factor * size, 0.095, 1.2),
        ):
            assert evidence.solved(data, hyper, 1.0) < top
    assert np.nanmax(arrays["evidence_1_0"]) <= top


def test_sweeps_that_oscillate_are_recorded() -> None:
    data = conflict_examples.example(2)
    assert not evidence.sweeps_converge(
        data, conflict_examples.ExampleHyperparameters(0.88, 3.0, 0.1, 2.0), 1.0
    )  # figure 3's
    assert evidence.sweeps_converge(data, conflict_examples.ExampleHyperparameters(0.88, 3.0, 0.1, 2.0), 0.5)
