"""Published numbers in score panels, and the folded histogram of the PIT."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ep_bench.published.number_format import printed
from ep_bench.report.sections.calibration_and_time import LEVELS, _density


class Table:
    def __init__(self, methods, mean):
        self.methods, self.mean = methods, np.array(mean)


def test_frequencies_of_the_folded_histogram_are_relative_to_the_expected_ones():
    edges = np.array([0.0, *LEVELS.values(), 1.0])
    tables = [Table(["a", "b"], [[level, 1.0], [level, 1.0]]) for level in LEVELS.values()]
    np.testing.assert_allclose(_density(tables, "a", edges), 1.0)
    np.testing.assert_allclose(_density(tables, "b", edges), [2.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("mean", "stderr", "text"),
    [
        (-2.46, 0.0559017, "-2.46 ± 0.06"),
        (0.1, 0.0, "0.1 ± 0.0"),
        (2.8, 0.13, "2.80 ± 0.13"),
        (0.01, 0.00046, "0.01 ± 0.0005"),
        (3.0, math.nan, "3"),
        (math.nan, 0.1, ""),
    ],
)
def test_published_numbers_have_equal_decimals(mean, stderr, text):
    assert printed(mean, stderr) == text
