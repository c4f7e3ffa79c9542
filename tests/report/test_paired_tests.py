"""The paired t-test for overlapping splits and independent draws in closed form, and the comparison with the best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ep_bench.report import merge, summary
from ep_bench.report import score_table_formats as tables
from ep_bench.report.scores import BY_NAME
from ep_bench.report.significance import PairedTest, compare_with_best, t_test_p

# RMSE of a Gaussian minus that of a Student-t process on ten independent data sets, 100 training and 1,000 test points.
DRAWS = np.array([0.7401, 1.1432, 0.2747, 0.3841, 0.8359, 0.5380, 0.1146, 0.6616, 1.6365, 0.3782])


def test_resampled_t_by_hand_and_plain_t_without_overlap():
    gaps = np.array([0.3, 0.1, 0.4, 0.2, 0.6])
    t = 0.32 / math.sqrt((1 / 5 + 1 / 9) * 0.037)
    assert t_test_p(gaps, 1 / 9) == pytest.approx(2 * stats.t.sf(t, 4), rel=1e-12)
    assert t_test_p(gaps, 0.0) == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue, rel=1e-12)
    assert t_test_p(np.zeros(5), 0.1) == 1.0
    assert t_test_p(np.full(5, 0.2), 0.1) == 0.0
    assert math.isnan(t_test_p(np.array([0.3]), 0.1))


def test_resampled_t_keeps_its_level_and_the_plain_t_does_not():
    """Without a true difference, splits with common data points: correlation n_test / (n_train + n_test)."""
    rng = np.random.default_rng(0)
    correlation, splits, trials = 0.1, 20, 1000
    common = rng.normal(size=(trials, 1)) * math.sqrt(correlation)
    gaps = common + rng.normal(size=(trials, splits)) * math.sqrt(1 - correlation)
    corrected = np.mean([t_test_p(row, correlation / (1 - correlation)) < 0.05 for row in gaps])
    plain = np.mean([t_test_p(row, 0.0) < 0.05 for row in gaps])
    assert abs(corrected - 0.05) < 4 * math.sqrt(0.05 * 0.95 / trials)
    assert plain > 0.15


def test_independent_draws_have_the_plain_variance():
    mean, s = DRAWS.mean(), DRAWS.std(ddof=1)
    plain, corrected = mean / (s / math.sqrt(10)), mean / (s * math.sqrt(1 / 10 + 1000 / 100))
    independent, overlapping = PairedTest(True, 10.0), PairedTest(False, 10.0)
    assert independent.p(DRAWS) == pytest.approx(2 * stats.t.sf(plain, 9), rel=1e-12) == pytest.approx(0.0011, abs=5e-5)
    assert (
        overlapping.p(DRAWS) == pytest.approx(2 * stats.t.sf(corrected, 9), rel=1e-12) == pytest.approx(0.65, abs=5e-3)
    )
    assert (independent.name, overlapping.name.partition(" (")[0]) == ("paired t-test", "corrected resampled t-test")


@pytest.mark.parametrize(
    ("scheme", "p", "name"),
    [("holdout", 0.00113, "paired t-test"), ("standard", 0.65, "corrected resampled"), ("kfold", 0.65, "corrected")],
)
def test_the_split_scheme_decides(tmp_path, make_study, scheme, p, name):
    def change(row):
        worse = DRAWS[row["split"]] if row["method"] == "gauss" else 0.0
        return {**row, "rmse": 1.0 + worse, "n_train": 45, "n_test": 455}

    lock = {"splits": {"scheme": scheme}}
    merged = merge.merge([make_study(tmp_path / "s", ["gauss", "student"], ["outliers"], 10, change=change, lock=lock)])
    table = summary.score_table(merged, BY_NAME["rmse"])
    assert table.p[0, 0] == pytest.approx(p, rel=0.02)
    assert table.equal[0].tolist() == [p > 0.05, False]
    assert f"not distinguished from it by the {name}" in tables.caption(table)


def test_only_complete_entries_are_compared():
    rng = np.random.default_rng(0)
    losses = rng.normal(0.0, 0.01, (8, 4)) + np.array([1.0, 1.0, 2.0, 0.0])
    losses[0, 3] = math.nan
    best, p, equal = compare_with_best(losses, np.array([True, True, True, False]), PairedTest(False, 0.1))
    assert best in {0, 1}
    assert np.isnan(p[[best, 3]]).all()
    assert equal.sum() == 1
    assert p[2] < 1e-6
    pair = [PairedTest(False, 0.1).p(losses[:, j] - losses[:, best]) for j in (1 - best, 2)]
    assert p[[1 - best, 2]] == pytest.approx([max(pair[0], 2 * pair[1]), 2 * pair[1]])  # Holm's correction
    none = compare_with_best(losses, np.zeros(4, dtype=bool), PairedTest(False, 0.1))
    assert (none[0], none[2].any()) == (-1, False)
