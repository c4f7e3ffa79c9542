"""A fit that diverges raises an error that names the epoch; in the runner, the cell fails with this reason."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench import data, methods
from ep_bench.models import mlp
from ep_bench.types import Rows
from tests.methods.support import cell_row

NETWORKS = {
    name: {"hidden": (4,), "epochs": 5}
    for name in ("bp", "neural_linear", "vi_graves", "vi", "dvi", "ivon", "dropout", "ensemble", "bb_alpha")
}
EPOCH, FINITE = r"epoch 1: .* finite", "finite"
METHODS = [
    *((name, options, EPOCH) for name, options in NETWORKS.items()),
    *(("sgld", {"hidden": (4,), "epochs": 5, "preconditioner": one}, EPOCH) for one in ("none", "rmsprop")),
    ("swag", {"hidden": (4,), "epochs": 2, "swag_epochs": 2, "rank": 2}, EPOCH),
    *((name, {"hidden": (4,), "epochs": 5}, FINITE) for name in ("mve", "vbll")),
    ("pbp", {"hidden": (4,)}, "epoch 1"), ("gp", {}, FINITE), ("sgp", {"inducing": 5}, FINITE),
    ("tagi", {"hidden": (4,), "noise_deviation": 0.3}, FINITE),
    *(("laplace", {"hidden": hidden, "starts": 0}, FINITE) for hidden in ((), (4,))),
]  # fmt: skip


def train():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2))
    return Rows(X, rng.normal(size=20))


def fit(name, rows, **options):
    method = methods.get(name)
    config = method.config(**{**NETWORKS.get(name, {}), **options})
    return method.fit(rows, config, np.random.default_rng(0))


VALUES = [("y", 1e200), ("y", np.nan), ("X", np.nan), ("X", np.inf)]
FAR = ("X", 1e200)  # a sparse process takes it for an input whose covariances are 0
BAD = [(*method, *bad) for method in METHODS for bad in (VALUES if method[0] == "sgp" else [*VALUES, FAR])]


@pytest.mark.parametrize(("name", "options", "words", "part", "value"), BAD)
def test_data_that_make_the_fit_infinite_raise(name, options, words, part, value):
    rows = train()
    getattr(rows, part)[3] = value
    with pytest.raises(FloatingPointError, match=words), np.errstate(all="ignore"):
        fit(name, rows, **options)


@pytest.mark.parametrize("option", ["step_size", "noise_step_size"])
def test_infinite_steps_of_langevin_dynamics_raise(option):
    with pytest.raises(FloatingPointError, match=r"epoch \d: .* finite; a smaller step_size"):
        fit("sgld", train(), hidden=(4,), epochs=5, **{option: 1e300})


@pytest.mark.parametrize("name", NETWORKS)
class TestMethods:
    def test_infinite_steps_raise(self, name):
        with pytest.raises(FloatingPointError, match=r"epoch \d: .* finite"):
            fit(name, train(), learning_rate=1e308)

    def test_the_cell_fails_with_the_reason(self, name, tmp_path):
        row = cell_row(tmp_path, f"use: {name}, hidden: [4], epochs: 5, learning_rate: 1.0e+300")
        assert row["status"] == "failed"
        assert row["reason"].startswith("FloatingPointError: epoch ")
        assert "rmse" not in row or not np.isfinite(row["rmse"] or np.nan)


class TestFiniteDivergence:
    """Fits whose numbers are finite but implausible."""

    @pytest.mark.parametrize(
        ("name", "rate", "words"),
        [
            ("vi", 10.0, "diverged: mean squared residual"),
            ("bb_alpha", 10.0, "diverged: mean squared residual"),
            ("dropout", 100.0, "diverged: mean squared residual"),
            ("ensemble", 100.0, "diverged: mean squared residual"),
            ("bp", 1e4, "not finite"),  # its steps are shortened, so only the weight decay diverges
            ("neural_linear", 1e4, "not finite"),
            ("vi_graves", 10.0, "not finite"),
        ],
    )
    def test_steps_far_too_large(self, name, rate, words):
        friedman = data.load_dataset("friedman1")
        X, y = friedman.X[:60], friedman.y[:60]
        rows = Rows((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())
        with pytest.raises(FloatingPointError, match=words):
            fit(name, rows, learning_rate=rate)

    @pytest.mark.parametrize("name", NETWORKS)
    def test_every_method_checks_its_fit(self, name, monkeypatch):
        """With a very small limit, a good fit raises too."""
        monkeypatch.setattr(mlp, "DIVERGENCE_LIMIT", 1e-9)
        with pytest.raises(FloatingPointError, match=r"diverged: .* limit is 1e-09; a smaller learning_rate"):
            fit(name, train(), **({"tau": 1.0} if name == "dropout" else {}))

    @pytest.mark.xdist_group("models")
    @pytest.mark.parametrize(("sd", "limit"), [(1.0, 1e3), (0.1, 1e3), (0.0, 1e3), (4.0, 16e3)])
    def test_the_limit_is_a_thousand_variances_or_a_thousand(self, sd, limit):
        layers, X, y = mlp.layout(1, ()), np.zeros((10, 1)), sd * np.resize([-1.0, 1.0], 10)

        def constant(square):  # weights of a constant prediction with that mean squared residual
            return np.array([0.0, np.sqrt(square - sd**2)])

        mlp.refuse_divergence(constant(0.999 * limit), layers, X, y)
        with pytest.raises(FloatingPointError, match=f"limit is {limit:.3g}".replace("+", r"\+")):
            mlp.refuse_divergence(constant(1.001 * limit), layers, X, y)
        with pytest.raises(FloatingPointError, match="residual nan"):
            mlp.refuse_divergence(np.array([0.0, np.nan]), layers, X, y)
