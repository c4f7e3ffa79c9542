"""The file of claims: its labels, sources and data sets exist."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from ep_bench.experiments.figures import measures
from ep_bench.published import columns, source_names
from ep_bench.published.claims import FAILS, FILE, HOLDS, OPEN, DatasetsWon, Measured, PointsWon, load_claims
from ep_bench.resources import read_yaml, shipped_folder
from ep_bench.results import store

RESULTS = Path(__file__).parents[2] / "results"
GOOD = {
    "source": "bui2015", "place": "p", "claim": "c", "statistic": "data sets won", "first": "a", "second": ["b"],
    "metric": "ll", "datasets": ["boston", {"name": "yacht", "scheme": "kfold"}], "threshold": 1,
}  # fmt: skip


def write(folder, **change):
    path = folder / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [GOOD | change]}))
    return path


def test_every_label_and_data_set_of_the_claims_is_one_of_a_study_or_of_a_table():
    studies = [read_yaml(path.read_text()) for path in shipped_folder("configs").rglob("*.yaml")]
    entries = [entry for study in studies for entry in study.get("methods", [])]
    labels = {entry if isinstance(entry, str) else entry.get("label", entry["use"]) for entry in entries}
    names = [one if isinstance(one, str) else one["name"] for study in studies for one in study.get("datasets", [])]
    for claim in load_claims():
        assert claim.source in {*source_names(), "hernandez-lobato2016"}  # the supplement has no table
        if isinstance(claim, Measured):
            continue
        assert set(claim.methods) <= labels | columns()
        assert {dataset.name for dataset in claim.datasets} <= set(names)
        assert not isinstance(claim, DatasetsWon | PointsWon) or claim.threshold <= len(claim.datasets)


def test_a_single_method_or_data_set_needs_no_list(tmp_path):
    (claim,) = load_claims(write(tmp_path))
    assert isinstance(claim, DatasetsWon)
    assert claim.methods == ("a", "b")
    assert [(one.name, one.scheme) for one in claim.datasets] == [("boston", "standard"), ("yacht", "kfold")]


def test_the_file_of_the_package_lists_every_statistic():
    assert {claim.statistic for claim in load_claims(FILE)} == {
        "data sets won", "average rank", "points", "ratio of times", "fraction converged", "measure",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("interval", "value", "verdict", "words"),
    [
        ([0.5, None], 0.5, HOLDS, "at least 0.5"),
        ([None, 1], 1.2, FAILS, "at most 1"),
        ([2, 2], 3.0, FAILS, "2"),
        ([1, 2], math.nan, OPEN, "1 to 2"),
    ],
)
def test_a_number_of_an_experiment_is_compared_with_its_interval(interval, value, verdict, words):
    claim = Measured(source="s", place="p", claim="c", statistic="measure", study="x", measures={"a": interval})
    found = claim.finding({"a": value})
    assert found.verdict == verdict
    assert found.found.endswith(f"claimed: {words}")


def test_one_number_outside_its_interval_refutes_a_claim_of_several():
    intervals = {"a": [0, None], "b": [None, 1]}
    claim = Measured(source="s", place="p", claim="c", statistic="measure", study="x", measures=intervals)
    assert claim.finding({"a": 1.0, "b": 0.5}).verdict == HOLDS
    assert claim.finding({"a": math.nan, "b": 2.0}).verdict == FAILS


def test_readings_of_the_same_words_decide_only_together():
    about = {"source": "s", "place": "p", "claim": "c", "statistic": "measure", "study": "x", "readings": True}
    claim = Measured(**about, measures={"a": [100, None], "b": [100, None]})
    for values, verdict in (((120.0, 240.0), HOLDS), ((12.0, 240.0), OPEN), ((12.0, 24.0), FAILS)):
        assert claim.finding(dict(zip("ab", values, strict=True))).verdict == verdict


def test_every_measure_of_a_claim_is_a_number_of_its_experiment():
    for claim in load_claims():
        if isinstance(claim, Measured):
            known = measures(store.read_intact(RESULTS / claim.study))
            assert set(claim.measures) <= known.keys(), claim.claim
