"""Black-box alpha on two data points: arrays and summary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ep_bench.experiments.bb_alpha_2016.alpha_linear.compute import closed_form
from ep_bench.experiments.record import ExperimentResults

RUN = "alpha_linear", {"points": 31}, "two"


@pytest.mark.parametrize("noise", [1e-6, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.3, 1.0, 1.9])
def test_closed_forms_agree_with_the_paper(alpha: float, noise: float) -> None:
    first = np.sqrt(alpha**2 - 2 * alpha + (noise + 1) ** 2) - alpha - noise + 1
    second = np.sqrt(4 * alpha**2 - 8 * alpha + noise**2 + 4 * noise + 4) - (2 * alpha + noise - 2)
    for example, top in enumerate((first, second), start=1):
        printed = top / (2 * noise * (2 - alpha))
        assert closed_form(example, alpha, noise) == pytest.approx(1 / (1 + 2 * printed), rel=1e-8)


def test_fits_meet_the_closed_forms(results: ExperimentResults) -> None:
    rows = results.summary
    assert [row["example"] for row in rows] == ["1"] * 21 + ["2"] * 21
    assert max(float(row["relative_difference"]) for row in rows) < 1e-11
    assert float(rows[0]["closed_form"]) == pytest.approx(1 / 2, rel=1e-5)
    assert float(rows[21]["closed_form"]) == pytest.approx(1 / 3, rel=1e-5)


def test_variance_grows_with_alpha_and_starts_at_the_variational_one(arrays: dict[str, Any]) -> None:
    assert arrays["grid"].shape == (31,)
    for example in (1, 2):
        assert np.all(np.diff(arrays[f"fitted_{example}"]) > 0)
        assert np.all(np.diff(arrays[f"curve_{example}"]) > 0)
        precision = np.linalg.inv(arrays[f"posterior_covariance_{example}"])
        fits = arrays[f"covariance_{example}"]
        np.testing.assert_allclose(fits[0], np.diag(1 / np.diagonal(precision)), rtol=1e-5)
        np.testing.assert_array_equal(fits[:, 0, 1], 0.0)
    np.testing.assert_allclose(arrays["posterior_covariance_2"], [[0.6, 0.4], [0.4, 0.6]])
