"""The file of claims: its labels, sources and data sets exist."""

from __future__ import annotations

import yaml

from ep_bench.published import columns, source_names
from ep_bench.published.claims import FILE, DatasetsWon, load_claims
from ep_bench.resources import read_yaml, shipped_folder

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
        assert set(claim.methods) <= labels | columns()
        assert {dataset.name for dataset in claim.datasets} <= set(names)
        assert claim.source in source_names()
        assert not isinstance(claim, DatasetsWon) or claim.threshold <= len(claim.datasets)


def test_a_single_method_or_data_set_needs_no_list(tmp_path):
    (claim,) = load_claims(write(tmp_path))
    assert isinstance(claim, DatasetsWon)
    assert claim.methods == ("a", "b")
    assert [(one.name, one.scheme) for one in claim.datasets] == [("boston", "standard"), ("yacht", "kfold")]


def test_the_file_of_the_package_lists_every_statistic():
    assert {claim.statistic for claim in load_claims(FILE)} == {
        "data sets won", "ratio of times", "fraction ok",
    }  # fmt: skip
