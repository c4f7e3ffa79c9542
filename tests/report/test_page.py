"""Content of a page: entries of a table."""

from __future__ import annotations

import pytest

from ep_bench.plotting.page import Table, item


@pytest.mark.parametrize("entry", [506, 1.5, None])
def test_a_bare_value_is_no_entry_of_a_table(entry: object) -> None:
    with pytest.raises(TypeError, match=rf"table 'Sizes': an entry must be a text or item.*found {entry}"):
        Table(["method", "points"], [["knn", entry]], "Sizes")
    assert Table(["method", "points"], [["knn", item("506", 506)]], "Sizes").rows
