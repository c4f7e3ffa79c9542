"""A fit that diverges raises an error that names the epoch; in the runner, the cell fails with this reason."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench import data, methods
from ep_bench.catalogue import InstalledCatalogue
from ep_bench.models import mlp
from ep_bench.runner.cell import run_cell
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from ep_bench.types import Rows

pytestmark = pytest.mark.xdist_group("models")  # whose kernels it needs

METHODS = ["bp", "vi_graves", "vi", "dropout", "ensemble", "bb_alpha"]


def train():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2))
    return Rows(X, rng.normal(size=20))


def fit(name, rows, **options):
    method = methods.get(name)
    return method.fit(rows, method.config(hidden=(4,), epochs=5, **options), np.random.default_rng(0))


@pytest.mark.parametrize("name", METHODS)
class TestMethods:
    @pytest.mark.parametrize(
        ("part", "value"), [("y", 1e200), ("y", np.nan), ("X", np.nan), ("X", np.inf), ("X", 1e200)]
    )
    def test_data_that_make_the_fit_infinite_raise(self, name, part, value):
        rows = train()
        getattr(rows, part)[3] = value
        with pytest.raises(FloatingPointError, match=r"epoch 1: .* finite"):
            fit(name, rows)

    def test_infinite_steps_raise(self, name):
        with pytest.raises(FloatingPointError, match=r"epoch \d: .* finite"):
            fit(name, train(), learning_rate=1e308)

    def test_normal_data_do_not_raise(self, name):
        fit(name, train())

    def test_the_cell_fails_with_the_reason(self, name, tmp_path):
        (tmp_path / "s.yaml").write_text(
            "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 1}\n"
            f"methods: [{{use: {name}, hidden: [4], epochs: 5, learning_rate: 1.0e+300}}]\n"
        )
        (cell,) = make_plan(read_study(tmp_path / "s.yaml", InstalledCatalogue()), tmp_path / "r").cells
        row = run_cell(cell.job).row
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
            ("vi_graves", 10.0, "not finite"),
        ],
    )
    def test_steps_far_too_large(self, name, rate, words):
        friedman = data.load_dataset("friedman1")
        X, y = friedman.X[:60], friedman.y[:60]
        rows = Rows((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())
        with pytest.raises(FloatingPointError, match=words):
            fit(name, rows, learning_rate=rate)

    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_checks_its_fit(self, name, monkeypatch):
        """With a very small limit, a good fit raises too."""
        monkeypatch.setattr(mlp, "DIVERGENCE_LIMIT", 1e-9)
        with pytest.raises(FloatingPointError, match=r"diverged: .* limit is 1e-09; a smaller learning_rate"):
            fit(name, train(), **({"tau": 1.0} if name == "dropout" else {}))

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
