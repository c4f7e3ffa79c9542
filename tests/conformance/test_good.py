"""Good methods pass, and so do poor but calibrated ones; faulty variants do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench import methods
from ep_bench.conformance.checks import CHECKS
from ep_bench.runner.jobs import seed_globals
from tests.conformance.support import FAST, findings, having, outcomes, quick

KERNELS = "sklearn.gaussian_process.kernels"
GP = "sklearn.gaussian_process:GaussianProcessRegressor"
FOREST = "sklearn.ensemble:RandomForestRegressor"
RBF = {"use": f"{KERNELS}:RBF"}
NOISY = {
    "use": f"{KERNELS}:Sum",
    "k1": {"use": f"{KERNELS}:Product", "k1": {"use": f"{KERNELS}:ConstantKernel"}, "k2": RBF},
    "k2": {"use": f"{KERNELS}:WhiteKernel"},
}
SCALE = {"use": "sklearn.preprocessing:StandardScaler"}
RIDGE = {"use": "sklearn.linear_model:BayesianRidge"}
OTHER_ANSWERS = """
import numpy as np
from scipy import stats

class Quantiles:
    def fit(self, X, y):
        self.y = np.sort(y)
        return self
    def predict_quantiles(self, X, levels):
        return np.tile(np.quantile(self.y, levels), (len(X), 1))

class Density:
    def fit(self, X, y):
        self.distribution = np.mean(y), (np.std(y) or 1.0)
        return self
    def predict_dist(self, X):
        return stats.t(8.0, np.full(len(X), self.distribution[0]), self.distribution[1])
"""
POINTS = {"noise-included", "density", "quantiles"}


EDGE_CASES = {"one-row", "constant-input", "constant-target", "wide"}


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.exhaustive) for name in methods.REGISTRY]
)
def test_methods_of_the_registry_conform(name: str) -> None:
    """Run the checks that tests/methods/test_sklearn.py and test_contract.py do not contain; all checks for pbp."""
    elsewhere = set() if name == "pbp" else EDGE_CASES
    found = outcomes(name, without=elsewhere, **quick(name))
    assert having(found, "ok") == found.keys(), findings(found)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in methods.REGISTRY if name != "pbp"])
def test_methods_of_the_registry_conform_at_edge_cases(name: str) -> None:
    others = {check.name for check in CHECKS if check.name not in EDGE_CASES | {"builds", "fits", "shapes", "finite"}}
    found = outcomes(name, without=others, **quick(name))
    assert having(found, "ok") == found.keys() >= EDGE_CASES, findings(found)


INFERENCES = {
    "vb": {},
    "laplace": {},
    "fvb": {"steps": 10},
    "mcmc": {"samples": 8, "warmup": 4, "stored": 8},
}
OTHERS = [*INFERENCES][1:]


@pytest.mark.slow
@pytest.mark.xdist_group("covariances")
@pytest.mark.parametrize("inference", ["vb", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in OTHERS)])
def test_every_inference_of_robust_regression_conforms(inference: str) -> None:
    found = outcomes("gp_t", inference=inference, **INFERENCES[inference])
    assert having(found, "ok") == found.keys(), findings(found)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("covariances")
@pytest.mark.parametrize("inference", [*INFERENCES, "kl"])
def test_every_inference_of_robust_regression_conforms_with_all_its_steps(inference: str) -> None:
    found = outcomes("gp_t", inference=inference, samples=60, warmup=40)
    assert having(found, "ok") == found.keys(), findings(found)


@pytest.mark.parametrize(
    ("target", "options", "skipped", "advice"),
    [
        ("ep_bench.baselines:ConstantRegressor", {}, set(), {"one-row", "constant-target"}),
        ("sklearn.linear_model:BayesianRidge", {}, set(), set()),
        ("sklearn.linear_model:BayesianRidge", {"fit_intercept": False}, set(), set()),
        ("sklearn.linear_model:BayesianRidge", {"standardize": True}, set(), set()),
        ("sklearn.linear_model:ARDRegression", {}, set(), {"one-row"}),
        ("sklearn.pipeline:Pipeline", {"steps": [["scale", SCALE], ["ridge", RIDGE]]}, set(), set()),
        ("sklearn.linear_model:LinearRegression", {}, POINTS, set()),
        ("sklearn.linear_model:Ridge", {"alpha": 1e6}, POINTS, set()),
        ("sklearn.neighbors:KNeighborsRegressor", {}, POINTS, {"one-row"}),
        ("sklearn.svm:SVR", {}, POINTS, set()),
        pytest.param(GP, {"kernel": NOISY}, set(), set(), marks=pytest.mark.slow),
        pytest.param(GP, {"kernel": NOISY, "normalize_y": True}, set(), set(), marks=pytest.mark.exhaustive),
        pytest.param(
            "sklearn.neural_network:MLPRegressor", {"max_iter": 60}, POINTS, set(), marks=pytest.mark.exhaustive
        ),
        pytest.param(
            "sklearn.ensemble:RandomForestRegressor", {"n_estimators": 20}, POINTS, set(), marks=pytest.mark.slow
        ),
    ],
)
def test_good_methods_have_no_fault(
    target: str, options: dict[str, object], skipped: set[str], advice: set[str]
) -> None:
    found = outcomes(target, **options)
    assert not having(found, "FAULT"), findings(found)
    assert having(found, "skipped") == skipped
    assert having(found, "advice") == advice, findings(found)
    assert all(found[name].reason == "the method gives points only" for name in skipped)


def test_methods_of_quantiles_and_of_foreign_densities(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(OTHER_ANSWERS)
    quantiles = outcomes(f"{tmp_path}/m.py:Quantiles")
    assert not having(quantiles, "FAULT"), findings(quantiles)
    assert {name: quantiles[name].reason for name in having(quantiles, "skipped")} == dict.fromkeys(
        POINTS - {"quantiles"}, "the method gives quantiles only"
    )
    density = outcomes(f"{tmp_path}/m.py:Density")
    assert having(density, "ok") == density.keys(), findings(density)


BOOSTED = """
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

class Boosted:
    def fit(self, X, y):
        self.levels = [0.025, 0.25, 0.5, 0.75, 0.975]
        quick = {"max_depth": 2, "n_estimators": 20, "learning_rate": 0.3, "random_state": 0}
        self.models = [
            GradientBoostingRegressor(loss="quantile", alpha=p, **quick).fit(X, y) for p in self.levels
        ]
        return self
    def predict(self, X):
        return self.models[2].predict(X)
    def predict_quantiles(self, X, levels):
        known = np.stack([model.predict(X) for model in self.models])
        return np.stack([np.interp(levels, self.levels, row) for row in known.T])
"""


@pytest.mark.exhaustive
def test_a_quantile_regressor_whose_levels_are_fitted_one_by_one_conforms(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(BOOSTED)
    found = outcomes(f"{tmp_path}/m.py:Boosted")
    assert not having(found, "FAULT"), findings(found)
    assert found["quantiles"].status == "ok"


@pytest.mark.slow
def test_a_gaussian_process_without_noise_fails_at_its_training_inputs() -> None:
    found = outcomes(GP, normalize_y=True)
    assert having(found, "FAULT") == {"noise-included"}, findings(found)
    assert "at the training inputs, the median" in findings(found)


def test_a_gaussian_process_with_fixed_scale_fails_the_check_of_units() -> None:
    fixed = {**RBF, "length_scale_bounds": "fixed"}
    found = outcomes(GP, kernel=fixed, alpha=0.64)
    assert having(found, "FAULT") == {"noise-included", "original-units"}, findings(found)
    assert "standardize=true" in findings(found)


def test_the_state_of_the_global_generator_does_not_matter() -> None:
    seed_globals(12345)
    first = outcomes("sklearn.linear_model:BayesianRidge")
    seed_globals(54321)
    assert outcomes("sklearn.linear_model:BayesianRidge") == first
