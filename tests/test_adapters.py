"""External methods: lookup, construction, seeds, and available predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, Sum
from sklearn.linear_model import BayesianRidge

from ep_bench import adapters
from ep_bench.errors import UserError
from ep_bench.predictions import PointPrediction, Predictive

HERE = Path("/")
rng = np.random.default_rng(0)
X = rng.normal(5.0, 3.0, (40, 2))
y = 100.0 + 20.0 * X[:, 0] + rng.normal(size=40)


def test_a_regressor_with_return_std_gives_a_gaussian_in_original_units() -> None:
    ours = adapters.build("sklearn.linear_model:BayesianRidge", {}, HERE).fit(X, y).predict_dist(X)
    mean, std = BayesianRidge().fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(ours.logpdf(y), stats.norm(mean, std).logpdf(y))


def test_standardised_rows_and_predictions_turned_back() -> None:
    ours = adapters.build("sklearn.linear_model:BayesianRidge", {"standardize": True}, HERE).fit(X, y).predict_dist(X)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    mean, std = BayesianRidge().fit(z, (y - y.mean()) / y.std()).predict(z, return_std=True)
    np.testing.assert_allclose(ours.mean(), y.mean() + y.std() * mean)
    np.testing.assert_allclose(ours.std(), y.std() * std)


def test_a_method_without_standard_deviation_has_points_only() -> None:
    found = adapters.build("sklearn.linear_model:LinearRegression", {}, HERE).fit(X, y).predict_dist(X)
    assert isinstance(found, PointPrediction)


def test_an_option_may_be_an_object() -> None:
    kernel = {
        "use": "sklearn.gaussian_process.kernels:Sum",
        "k1": {"use": "sklearn.gaussian_process.kernels:RBF", "length_scale": [2.0, 3.0]},
        "k2": {"use": "sklearn.gaussian_process.kernels:WhiteKernel", "noise_level": 0.5},
    }
    model = adapters.build("sklearn.gaussian_process:GaussianProcessRegressor", {"kernel": kernel}, HERE).model
    assert isinstance(model.kernel, Sum)
    assert isinstance(model.kernel.k1, RBF)
    assert list(model.kernel.k1.length_scale) == [2.0, 3.0]


def test_the_cells_seed_goes_to_a_random_state_unless_one_is_given() -> None:
    use = "sklearn.gaussian_process:GaussianProcessRegressor"
    assert adapters.build(use, {}, HERE, seed=2**32 + 7).model.random_state == 7
    assert adapters.build(use, {"random_state": 3}, HERE, seed=7).model.random_state == 3


def test_a_predictive_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import numpy as np\nfrom ep_bench import Predictive\n"
        "class Mixture:\n"
        "    def fit(self, X, y):\n        return self\n"
        "    def predict_dist(self, X):\n"
        "        n = len(X)\n"
        "        return Predictive([0.5, 0.5], [np.zeros(n), np.ones(n)], [np.ones(n), 4 * np.ones(n)])\n"
    )
    found = adapters.build("./m.py:Mixture", {}, tmp_path).fit(X, y).predict_dist(X)
    assert isinstance(found, Predictive)
    np.testing.assert_allclose(found.logpdf(np.full(40, 0.5)), -1.2993841, atol=5e-8)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return np.zeros(3), np.ones(3)", "shape"),
        ("return np.zeros((len(X), 1)), np.ones(len(X))", "shape"),
    ],
)
def test_wrong_shapes_are_reported(tmp_path: Path, body: str, message: str) -> None:
    (tmp_path / "m.py").write_text(
        "import numpy as np\nclass Wrong:\n    def fit(self, X, y):\n        return self\n"
        f"    def predict(self, X, return_std=False):\n        {body}\n"
    )
    with pytest.raises(ValueError, match=message):
        adapters.build("./m.py:Wrong", {}, tmp_path).fit(X, y).predict_dist(X)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("no_such_package.x:Y", "cannot import"),
        ("sklearn.linear_model:BayesianRigde", "did you mean 'BayesianRidge'"),
        ("./nowhere.py:X", "no such file"),
        ("./broken.py:X", "fails on import"),
        ("./constant.py:X", "does not name a class"),
    ],
)
def test_a_target_that_cannot_be_had_is_one_clear_message(tmp_path: Path, use: str, message: str) -> None:
    (tmp_path / "broken.py").write_text("import no_such_thing\n")
    (tmp_path / "constant.py").write_text("X = 3\n")
    with pytest.raises(UserError, match=message):
        adapters.resolve(use, tmp_path)


def test_versions_of_targets(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("class Plain: pass\nclass Declared:\n    version = 4\n")
    assert adapters.version("./m.py:Declared", tmp_path) == "4"
    assert adapters.version("./m.py:Plain", tmp_path).startswith("file ")
    assert adapters.version("sklearn.linear_model:BayesianRidge", HERE).startswith("scikit-learn 1.")


def test_a_model_that_writes_into_its_rows_spoils_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "class Vandal:\n    def fit(self, X, y):\n        X[:] = 0\n        y[:] = 0\n        return self\n"
        "    def predict(self, X):\n        X[:] = 0\n        return X[:, 0]\n"
    )
    before = X.copy(), y.copy()
    adapters.build("./m.py:Vandal", {}, tmp_path).fit(X, y).predict_dist(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
