"""The latent function between two contradicting observations, by every approximation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import Estimator
from ep_bench.experiments.gp_t_2011 import conflict_examples
from ep_bench.experiments.gp_t_2011.conflict_posteriors import compute as posteriors
from ep_bench.experiments.gp_t_2011.conflict_posteriors.figure import _bumps, _conditional_modes
from ep_bench.experiments.gp_t_2011.conflict_tilted import compute as conflict_tilted

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short chains

FIXED = {"use": "gp_t", "lengthscale": 1.0, "magnitude": 2.0, "scale": 0.1, "nu": 2.0, "optimize": False}


@pytest.fixture(scope="module")
def found() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    methods = [
        {**FIXED, "label": "MCMC", "inference": "mcmc", "chains": 2, "warmup": 200, "samples": 1000, "stored": 1000},
        {**FIXED, "label": "EP"},
        {**FIXED, "label": "LA", "inference": "laplace"},
    ]
    return posteriors.compute(posteriors.Config(methods=methods, bands=["EP"], points=101), 0)


def test_densities_are_normalised_and_have_the_moments_of_the_summary(found: Any) -> None:
    arrays, summary = found
    for row in summary:
        e, i = row["example"], list(arrays["labels"]).index(row["method"])
        f, density = arrays[f"latent_{e}"], arrays[f"density_{e}_{i}"]
        weights = density / density.sum()
        if row["deviation"] < 0.5:  # within the grid
            assert weights @ f == pytest.approx(row["mean"], abs=0.01)
            assert np.trapezoid(density, f) == pytest.approx(1.0, abs=2e-3)
            assert np.sqrt(weights @ (f - weights @ f) ** 2) == pytest.approx(row["deviation"], rel=0.02)


def test_the_arrays_agree_with_the_estimator(found: Any) -> None:
    arrays, summary = found
    data = conflict_examples.example(2)
    options = {key: value for key, value in FIXED.items() if key != "use"}
    model = Estimator("gp_t", standardize=False, **options).fit(data.x[:, None], data.y)
    mean, variance = model.latent(arrays["grid_2"][:, None])
    np.testing.assert_allclose(arrays["mean_2_1"], mean)
    np.testing.assert_allclose(arrays["std_2_1"], np.sqrt(variance))
    row = next(row for row in summary if (row["example"], row["method"]) == (2, "EP"))
    assert row["log_evidence"] == pytest.approx(model.log_evidence_, rel=1e-4)


def test_only_samplers_have_an_r_hat_the_largest_of_latent_value_and_hyperparameters(found: Any) -> None:
    _, summary = found
    assert all((row["r_hat"] != "") == (row["method"] == "MCMC") for row in summary)
    data = conflict_examples.example(1)
    options = {"inference": "mcmc", "chains": 2, "warmup": 20, "samples": 50, "prior": "weak", "random_state": 0}
    model = Estimator("gp_t", standardize=False, **options).fit(data.x[:, None], data.y)
    largest = posteriors._r_hat(model)
    assert largest >= model.diagnose(np.array([[2.0]]))["r_hat_predictions"]
    assert largest >= max(value for name, value in model.diagnostics_.items() if name.startswith("r_hat_"))


def test_chains_have_two_modes_in_example_2_and_ep_has_one(found: Any) -> None:
    arrays, _ = found
    density, wide = arrays["density_2_0"], arrays["density_2_1"]
    inner = slice(1, -1)
    peaks = (density[inner] > density[:-2]) & (density[inner] > density[2:]) & (density[inner] > 0.05 * density.max())
    assert peaks.sum() >= 2
    assert ((wide[inner] > wide[:-2]) & (wide[inner] > wide[2:])).sum() == 1


def test_the_reference_has_distance_0_and_the_others_more(found: Any) -> None:
    _, summary = found
    for chains, ep, _ in (summary[:3], summary[3:]):
        assert chains["distance"] == 0.0
        assert ep["distance"] > 0.0
        # No distance is below the difference of the means.
        assert ep["distance"] >= abs(ep["mean"] - chains["mean"]) - 1e-4


def test_a_failed_method_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails:
        def fit(self, X: Any, y: Any) -> None:
            raise FloatingPointError("no fixed point")

    monkeypatch.setattr(posteriors, "Estimator", lambda *_, **__: Fails())
    config = posteriors.Config(methods=[{**FIXED, "label": "EP"}], points=11)
    arrays, summary = posteriors.compute(config, 0)
    assert summary[0]["reason"] == "no fixed point"
    assert summary[0]["mean"] == ""
    assert np.isnan(arrays["density_1_0"]).all()


def test_the_modes_of_f_are_those_of_its_density() -> None:
    f = np.linspace(-2.0, 2.0, 161)
    for apart, scale, modes in ((0.4, 1.0, 1), (0.15, 0.1, 2), (0.4, 0.1, 3)):
        data = conflict_examples.Example(np.array([0.0, apart]), np.array([-1.0, 1.0]))
        hyper = conflict_examples.ExampleHyperparameters(1.0, 2.0, scale, 1.0)
        K = np.linalg.inv(conflict_examples.covariances(data.x, hyper))
        pairs = np.stack(np.meshgrid(f, f, indexing="ij"), axis=-1)
        density = -0.5 * np.einsum("...i,ij,...j", pairs, K, pairs) - np.log1p(((pairs - data.y) / scale) ** 2).sum(-1)
        assert conflict_tilted.modes(np.exp(density - density.max())) == modes
        assert _conditional_modes(*data, *hyper) == modes


def test_bumps_are_concave_parts_near_an_observation() -> None:
    f = np.linspace(-4.0, 4.0, 401)
    density, (left, right) = np.exp(-0.5 * f**2), (np.exp(-0.5 * ((f - at) / 0.2) ** 2) for at in (-2.0, 2.0))
    targets = np.array([-2.0, 2.0])
    assert _bumps(f, density, targets) == 0
    assert _bumps(f, density + 0.05 * left, targets) == 1
    assert _bumps(f, density + 0.05 * left + 0.05 * right, targets) == 2
    assert _bumps(f, density + 0.05 * left + 0.05 * right, np.array([-2.0, 3.0])) == 1
    assert _bumps(f, density, np.array([-0.5, 0.5])) == 0  # the mode itself is no bump
