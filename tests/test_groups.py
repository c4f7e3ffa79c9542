"""Groups of tests that compile the same kernels (`conftest.py`)."""

from __future__ import annotations

import pytest

from tests.conftest import GROUP_OF, LONGEST_FIRST


def test_the_scheduler_sees_the_group_of_each_test(request: pytest.FixtureRequest) -> None:
    """pytest-xdist sends the tests of a group to one process by a suffix of their identifiers."""
    group = request.node.get_closest_marker("xdist_group").args[0]
    grouped = hasattr(request.config, "workerinput") and request.config.getvalue("loadgroup")
    assert request.node.nodeid.endswith(f"@{group}") == bool(grouped)


def test_longer_names_are_matched_first() -> None:
    assert LONGEST_FIRST.index("gp_t") < LONGEST_FIRST.index("gp")
    assert set(LONGEST_FIRST) == set(GROUP_OF)
