"""What the methods for networks share: they learn, train in batches of any size, keep a known noise, and predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench import methods
from ep_bench.types import Rows
from tests.methods.support import rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

VI: list[dict[str, Any]] = [
    {}, {"local_reparameterization": True}, {"prior": "empirical"}, {"noise": "heteroscedastic", "prior": "empirical"},
]  # fmt: skip
PLAIN = ("neural_linear", "mve", "vbll", "dropout", "ensemble", "bb_alpha", "dvi", "ivon")
BATCHES = [*((name, {}) for name in PLAIN), *(("vi", form) for form in VI), ("swag", {"swag_epochs": 2, "rank": 2})]
BATCHES += [("sgld", {"preconditioner": name}) for name in ("none", "rmsprop")]
LEARNING = [
    *((name, {}) for name in ("bp", "neural_linear", "swag", "mve", "vbll", "pbp", "tagi", "vi_graves")),
    ("dropout", {"rate": 0.01, "epochs": 200, "passes": 200}),
    *(("bb_alpha", {"alpha": alpha, "epochs": 300, "samples": 10, "learning_rate": 0.01}) for alpha in (0.0, 0.5, 1.0)),
    *(("sgld", {"epochs": 800, **one}) for one in ({}, {"preconditioner": "rmsprop"}, {"hidden": (20, 20)})),
    ("vi", {"epochs": 300}), ("dvi", {"epochs": 300}), ("ivon", {"epochs": 300, "learning_rate": 0.03}),
]  # fmt: skip
LEARNING += [pytest.param("vi", {"epochs": 300, **form}, marks=pytest.mark.exhaustive) for form in VI[1:]]


def fitted(name: str, train: Rows, seed: int = 1, **options: Any) -> tuple[Any, Any, dict[str, list[float]]]:
    """Return a function for predictions, the state and the trace."""
    method = methods.get(name)
    state, trace = method.fit(train, method.config(**options), np.random.default_rng(seed))
    return lambda X: method.predict(state, X, np.random.default_rng(1)), state, trace


@pytest.mark.parametrize(("name", "options"), LEARNING)
def test_it_learns_function_and_noise(name: str, options: dict[str, Any]) -> None:
    train, test = rows(300, 2, 20), rows(300, 2, 21)
    predict, _, trace = fitted(name, train, seed=0, **{"hidden": (20,), **options})
    answer = predict(test.X)
    assert np.sqrt(np.mean((answer.mean() - test.y) ** 2)) < 0.6  # 0.39 is the noise, 1 the constant prediction
    assert 0.3 < np.sqrt(answer.variance().mean()) < 0.65
    (rising,) = [curve for key, curve in trace.items() if key in {"objective", "log_z", "log_joint_a_row"}]
    assert abs(rising[-1] - rising[0]) > 0.3
    assert (rising[-1] < rising[0]) == ("objective" in trace)
    assert len({len(curve) for curve in trace.values()}) == 1


@pytest.mark.parametrize(("name", "options"), BATCHES)
@pytest.mark.parametrize("n", [1, 5, 33])
def test_batches_need_not_divide_the_data(name: str, options: dict[str, Any], n: int) -> None:
    train = rows(n, 2, 25) if n > 1 else Rows(np.ones((1, 2)), np.zeros(1))
    predict, _, trace = fitted(name, train, hidden=(4,), epochs=2, **options)
    answer = predict(train.X)
    assert np.isfinite(answer.mean()).all()
    assert np.isfinite([*trace.values()]).all()
    assert answer.variance().min() > 0.0
    assert predict(np.zeros((0, 2))).mean().shape == (0,)


@pytest.mark.parametrize(("name", "options"), [("bb_alpha", {}), *(("vi", form) for form in VI[:3])])
def test_a_known_noise_is_kept_and_predictions_are_mixtures_with_equal_weights(
    name: str, options: dict[str, Any]
) -> None:
    predict, state, trace = fitted(
        name, rows(50, 3, 23), hidden=(6,), epochs=5, noise_variance=0.04, test_samples=7, **options
    )
    assert state.noise_variance == pytest.approx(0.04, rel=1e-14)
    np.testing.assert_allclose(trace["noise_deviation"], 0.2)
    answer = predict(np.zeros((5, 3)))
    assert answer.means.shape == answer.variances.shape == (7, 5)
    np.testing.assert_allclose(answer.weights, 1 / 7)
    np.testing.assert_array_equal(answer.variances, state.noise_variance)
