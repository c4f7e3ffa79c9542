"""Numbers of a comparison as text."""

from __future__ import annotations

import math

import pytest

from ep_bench.published import measured, printed


@pytest.mark.parametrize(
    ("mean", "stderr", "text"),
    [
        (5.667, 0.0933, "5.667 ± 0.0933"),
        (0.006, 0.0, "0.006 ± 0.000"),
        (-2.474, math.nan, "-2.474"),
        (-2.46, 0.0559017, "-2.46 ± 0.06"),
        (0.01, 0.00046, "0.01 ± 0.0005"),
        (math.nan, 0.1, ""),
    ],
)
def test_published_numbers_have_the_printed_digits(mean: float, stderr: float, text: str) -> None:
    assert printed(mean, stderr) == text


@pytest.mark.parametrize(
    ("mean", "stderr", "text"),
    [(5.6592, 0.1062, "5.66 ± 0.11"), (0.0056411, 3.8e-5, "0.005641 ± 0.000038"), (12.3456, math.nan, "12.35")],
)
def test_ours_show_two_digits_of_the_error(mean: float, stderr: float, text: str) -> None:
    assert measured(mean, stderr) == text
