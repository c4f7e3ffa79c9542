"""Published numbers in score panels, and the folded histogram of the PIT."""

from __future__ import annotations

import numpy as np

from ep_bench.report.sections.calibration_and_time import LEVELS, _density


class Table:
    def __init__(self, methods, mean):
        self.methods, self.mean = methods, np.array(mean)


def test_frequencies_of_the_folded_histogram_are_relative_to_the_expected_ones():
    edges = np.array([0.0, *LEVELS.values(), 1.0])
    tables = [Table(["a", "b"], [[level, 1.0], [level, 1.0]]) for level in LEVELS.values()]
    np.testing.assert_allclose(_density(tables, "a", edges), 1.0)
    np.testing.assert_allclose(_density(tables, "b", edges), [2.0, 0.0, 0.0, 0.0])
