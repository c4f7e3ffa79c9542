"""Measured costs of fits, and the estimates of plans that use them."""

from __future__ import annotations

import pytest

from ep_bench import methods
from ep_bench.runner import fit_costs


@pytest.mark.parametrize("name", ["vi", "gp", "laplace"])
def test_estimates_without_earlier_times_are_the_measured_ones(name: str) -> None:
    found = fit_costs.measured()
    for row in found["rows"]:
        if row["method"] == name and "fit_cpu_seconds" in row:
            method = methods.get(name)
            estimate = method.seconds(method.config(), row["n"], found["inputs"]) * fit_costs.ratio(name, row["n"])
            assert estimate == pytest.approx(row["fit_cpu_seconds"])


def test_every_method_is_measured_at_increasing_numbers_of_points() -> None:
    rows = fit_costs.measured()["rows"]
    for name in methods.REGISTRY:
        counts = [row["n"] for row in rows if row["method"] == name]
        assert counts
        assert counts == sorted(counts)
