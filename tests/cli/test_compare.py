"""``ep-bench compare``: the table of each pair, the file with all columns, and wrong methods."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import ep_bench
from ep_bench.cli.output.compare import labels_in
from ep_bench.errors import UserError
from tests.commands import ep_bench as command

RESULTS = Path(__file__).parents[2] / "results"
FOLDER = RESULTS / "bnn-optimisation"


def test_a_pair_has_a_row_per_data_set_and_one_over_all(tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    done = command("compare", FOLDER, "--methods", "PBP-1,BP-1", "--score", "rmse", "--out", out)
    lines = done.stdout.splitlines()
    written = pd.read_csv(out)
    expected = ep_bench.compare(ep_bench.load_results(FOLDER), "PBP-1", "BP-1", score="rmse")
    by_dataset = [table.set_index("dataset").sort_index() for table in (written, expected)]
    pd.testing.assert_frame_equal(*by_dataset)
    assert lines[0] == "RMSE of PBP-1 minus BP-1 (units of the target)"
    assert [line.split()[0] for line in lines[2 : 2 + len(expected) - 1]] == list(written.dataset[:-1])
    assert any(line.startswith("all data sets") for line in lines)
    assert "P(better)" in lines[1]
    assert "Holm's correction over data sets; better is lower" in lines[-1]


def test_three_methods_are_three_pairs() -> None:
    done = command("compare", FOLDER, "--methods", "PBP-1,BP-1,VI-1", "--select", "dataset=yacht")
    assert [line for line in done.stdout.splitlines() if " minus " in line] == [
        f"Mean test log-likelihood of {pair} (nats)"
        for pair in ("PBP-1 minus BP-1", "PBP-1 minus VI-1", "BP-1 minus VI-1")
    ]


def test_a_method_has_the_label_of_each_study() -> None:
    done = command("compare", RESULTS / "pbp-table-1", FOLDER, "--methods", "PBP-1,BP-1", "--select", "dataset=yacht")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Mean test log-likelihood of PBP minus BP-1 (nats)\n")


def test_labels_may_have_commas() -> None:
    assert labels_in("GP-t, EP,GP", {name: name for name in ("GP", "GP-t, EP", "GP-t")}) == ["GP-t, EP", "GP"]


@pytest.mark.parametrize("text", ["GP", "GP,GP", "GP,", "GP,PBS", "PBP,PBB"])
def test_wrong_methods_are_an_error(text: str) -> None:
    with pytest.raises(UserError, match="--methods"):
        labels_in(text, {"GP": "GP", "PBP": "PBP", "PBB": "PBP"})
