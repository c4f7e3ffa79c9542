"""Claims of the papers on experiments, which their reports open with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.site.committed_results import committed_folders
from ep_bench.experiments.figures import section
from ep_bench.experiments.record import Claim, by_method
from ep_bench.results import store

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = sorted(
    path.name for path in committed_folders() if json.loads((path / store.LOCK).read_text()).get("experiment")
)
# comparisons without a claim
WITHOUT = {"active-learning-priors", "bands", "bands-cubic", "evidence", "evidence-step", "student-t-convergence-3",
           "toy-epochs"}  # fmt: skip
VERDICTS = (". It holds: ", ". It does not hold: ", ". It is not decided: ")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_committed_experiment_opens_with_its_claims(folder: str) -> None:
    lines = section(store.read_intact(RESULTS / folder), drawn=False).lines
    assert bool(lines) is (folder not in WITHOUT)
    assert all(line.startswith("Claim: ") and any(verdict in line for verdict in VERDICTS) for line in lines)


def test_a_claim_is_a_sentence_with_its_verdict() -> None:
    assert Claim("a is b", holds=True, found="1 of 1").sentence == "Claim: a is b. It holds: 1 of 1."
    assert Claim("a is b", holds=False, found="0 of 1").sentence == "Claim: a is b. It does not hold: 0 of 1."
    assert Claim("a is b", holds=None, found="none").sentence == "Claim: a is b. It is not decided: none."


def test_numbers_of_a_summary_are_by_method() -> None:
    rows = [
        {"method": "a", "x": "1.5", "set": "1"},
        {"method": "b", "x": "", "set": "1"},
        {"method": "a", "x": "2", "set": "2"},
    ]
    assert by_method(rows, "x", set="1") == {"a": 1.5}
