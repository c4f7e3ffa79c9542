"""The committed results: their size, and their files as the installed version would write them."""

from pathlib import Path

import pytest

from ep_bench.results import store

RESULTS = Path(__file__).parents[1] / "results"
MEGABYTES = 30


def test_the_size_of_all_committed_results():
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < MEGABYTES * 1e6


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in RESULTS.glob("*/study.lock.json")), ids=lambda p: p.name
)
def test_no_committed_row_is_damaged(folder):
    store.read_intact(folder)
