"""A fit that diverges ends as an error that names the epoch, and in the runner as a failed cell with its reason."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench import methods
from ep_bench.runner.catalogue import Installed
from ep_bench.runner.execute import run_cell
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from ep_bench.types import Rows

ENGINES = ["bp", "vi_graves", "vi", "dropout", "bb_alpha"]


def train():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2))
    return Rows(X, rng.normal(size=20))


def fit(name, rows, **options):
    method = methods.get(name)
    return method.fit(rows, method.config(hidden=(4,), epochs=5, **options), np.random.default_rng(0))


@pytest.mark.parametrize("name", ENGINES)
class TestEngines:
    @pytest.mark.parametrize(
        ("part", "value"), [("y", 1e200), ("y", np.nan), ("X", np.nan), ("X", np.inf), ("X", 1e200)]
    )
    def test_rows_that_no_number_stands(self, name, part, value):
        rows = train()
        getattr(rows, part)[3] = value
        with pytest.raises(FloatingPointError, match=r"epoch 1: .* finite"):
            fit(name, rows)

    def test_steps_beyond_all_bounds(self, name):
        with pytest.raises(FloatingPointError, match=r"epoch \d: .* finite"):
            fit(name, train(), learning_rate=1e308)

    def test_sound_rows_do_not_raise(self, name):
        fit(name, train())

    def test_the_cell_fails_and_says_why(self, name, tmp_path):
        (tmp_path / "s.yaml").write_text(
            "study: s\ndatasets: [cubic]\nsplits: {scheme: standard, count: 1}\n"
            f"methods: [{{use: {name}, hidden: [4], epochs: 5, learning_rate: 1.0e+300}}]\n"
        )
        (cell,) = make_plan(read_study(tmp_path / "s.yaml", Installed()), tmp_path / "r").cells
        row = run_cell(cell.job).row
        assert row["status"] == "failed"
        assert row["reason"].startswith("FloatingPointError: epoch ")
        assert "rmse" not in row or not np.isfinite(row["rmse"] or np.nan)
