"""Groups of tests that compile the same kernels (`conftest.py`)."""

from __future__ import annotations

import pytest

from ep_bench import methods
from tests.conftest import kernels


def test_the_scheduler_sees_the_group_of_each_test(request: pytest.FixtureRequest) -> None:
    """pytest-xdist sends the tests of a group to one process by a suffix of their identifiers."""
    group = request.node.get_closest_marker("xdist_group").args[0]
    grouped = hasattr(request.config, "workerinput") and request.config.getvalue("loadgroup")
    assert request.node.nodeid.endswith(f"@{group}") == bool(grouped)


def test_methods_that_import_the_same_kernels_are_one_group() -> None:
    found = kernels()
    assert set(found) == set(methods.REGISTRY)
    assert found["vi"] == found["hmc"] == "models"
    assert found["gp_t"] == found["sgp"] == "covariances"
    assert found["ep_nn"] == "ep_nn"
    assert list(found).index("gp_t") < list(found).index("gp")  # gp_t is not gp
