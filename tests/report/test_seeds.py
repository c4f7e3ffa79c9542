"""The spread over seeds: the analysis of variance, and the section of a study with several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import seeds
from ep_bench.report.sections.seeds import scores_by_seed, spread
from tests.commands import cells_in_this_process, ep_bench

STUDY = """
study: seeds
seeds: 3
datasets: [yacht]
splits: {scheme: standard, count: 2}
methods:
  - {use: pbp, label: PBP, epochs: 2}
  - {use: "sklearn.linear_model:BayesianRidge", label: ridge, standardize: true}
"""


def test_the_parts_of_the_variance_are_estimated_without_bias() -> None:
    """Scores with known variances of splits (0.5) and of seeds (2.0)."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(2000):
        scores = 3.0 + rng.normal(0.0, 0.5**0.5, (20, 1)) + rng.normal(0.0, 2.0**0.5, (20, 4))
        found.append(spread(scores))
    assert np.mean([one.mean for one in found]) == pytest.approx(3.0, abs=0.02)
    assert np.mean([one.seed_std**2 for one in found]) == pytest.approx(2.0, rel=0.02)
    assert np.mean([one.split_std**2 for one in found]) == pytest.approx(0.5, rel=0.05)
    assert np.mean([one.stderr**2 for one in found]) == pytest.approx(2.5 / 20, rel=0.02)
    assert np.median([one.seed_fraction for one in found]) == pytest.approx(0.8, abs=0.02)


def test_a_method_without_random_numbers_has_no_variance_due_to_the_seed() -> None:
    found = spread(np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]))
    assert (found.seed_std, found.seed_fraction) == (0.0, 0.0)
    assert found.split_std == pytest.approx(np.std([1.0, 2.0, 4.0], ddof=1))


def test_splits_with_a_missing_or_failed_fit_are_left_out() -> None:
    """The order of the rows has no effect."""
    splits, seeds = [0, 0, 1, 2, 2, 3, 3], [7, 8, 7, 7, 8, 8, 7]
    cells = pd.DataFrame({"split": splits, "study_seed": seeds, "ll": [1.0, 2.0, 3.0, 4.0, np.nan, 6.0, 5.0]})
    assert scores_by_seed(cells, "ll", 2).tolist() == [[1.0, 2.0], [5.0, 6.0]]
    assert scores_by_seed(cells, "ll", 3).shape == (0, 3)


def test_the_report_of_a_study_with_seeds(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    with cells_in_this_process():
        assert ep_bench("run", tmp_path / "s.yaml", "--results", tmp_path).returncode == 0
    assert ep_bench("report", tmp_path / "seeds").returncode == 0
    assert "Spread over seeds" in (tmp_path / "seeds" / "report" / "report.html").read_text(encoding="utf-8")
    merged = merge.merge([tmp_path / "seeds"])
    assert len(merged.rows) == sum(merged.planned.values())  # of the first seed
    (section,) = seeds.sections(ReportContext(merged))
    rows: Any = section.tables[0].rows
    assert [row[1] for row in rows[:4]] == ["PBP", "PBP", "ridge", "ridge"]
    assert rows[2][7]["text"] == "0%"
