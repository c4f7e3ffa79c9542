"""A cell that several committed folders share has one row, the same in all of them."""

from collections import defaultdict

from ep_bench.results import store
from tests.test_committed_results import FOLDERS

LABELS = ("study", "method", "dataset")


def test_the_rows_of_a_shared_cell_are_equal_in_every_column_but_labels():
    found = defaultdict(dict)
    for folder in FOLDERS:
        for row in store.read_study(folder, with_cell_files=False).rows:
            found[row["cell"]][folder.name] = {key: value for key, value in row.items() if key not in LABELS}
    shared = {cell: rows.values() for cell, rows in found.items() if len(rows) > 1}
    assert len(shared) > 7000
    different = [cell for cell, (first, *others) in shared.items() if any(row != first for row in others)]
    assert not different
