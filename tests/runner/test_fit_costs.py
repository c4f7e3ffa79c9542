"""Measured costs of fits, and the estimates of plans that use them."""

from __future__ import annotations

import pytest

from ep_bench import methods
from ep_bench.runner.earlier_results import cost_ratio, measured_costs


@pytest.mark.parametrize("name", ["vi", "gp", "laplace"])
def test_estimates_without_earlier_times_are_the_measured_ones(name: str) -> None:
    found = measured_costs()
    for row in found["rows"]:
        if row["method"] == name and "fit_cpu_seconds" in row:
            method = methods.get(name)
            estimate = method.seconds(method.config(), row["n"], found["inputs"]) * cost_ratio(name, row["n"])
            assert estimate == pytest.approx(row["fit_cpu_seconds"])


def test_a_method_without_measured_costs_has_its_own_estimate() -> None:
    assert cost_ratio("new", 500) == 1.0
