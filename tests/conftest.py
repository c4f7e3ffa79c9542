"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of one file in one process, unless they name their group: `--dist loadgroup` reads the marker."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets. Without one the test is skipped, or fails where they are required."""
    folder = os.environ.get("EP_BENCH_DATA")
    if folder and (Path(folder) / "uci").is_dir():
        return Path(folder).resolve()
    reason = "needs the real data: EP_BENCH_DATA names no folder with uci/"
    if os.environ.get("EP_BENCH_REQUIRE_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)
