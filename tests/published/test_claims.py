"""The file of claims: its labels exist, and a bad file gets one message."""

from __future__ import annotations

import pytest
import yaml

from ep_bench.errors import UserError
from ep_bench.published import columns
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


def test_a_single_method_or_data_set_needs_no_list(tmp_path):
    (claim,) = load_claims(write(tmp_path))
    assert isinstance(claim, DatasetsWon)
    assert claim.methods == ("a", "b")
    assert [(one.name, one.scheme) for one in claim.datasets] == [("boston", "standard"), ("yacht", "kfold")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "bui2016"}, r"claims\[0\]\.source: unknown source; found 'bui2016'.*did you mean 'bui2015'"),
        ({"threshold": 3}, r"claims\[0\]\.threshold: more than all data sets; found 3; allowed: .*data sets, 2"),
        ({"threshold": "many"}, r"claims\[0\]\.threshold: .*integer.*found 'many'"),
        ({"metric": "auc"}, r"claims\[0\]\.metric: .*'ll', 'rmse'.*found 'auc'"),
        ({"statistic": "orderings"}, r"claims\[0\]: .*orderings.*data sets won"),
        ({"sed": 1}, r"claims\[0\]\.sed: extra inputs are not permitted"),
    ],
)
def test_a_bad_claim_gets_one_message_with_its_place(tmp_path, change, message):
    with pytest.raises(UserError, match=message) as error:
        load_claims(write(tmp_path, **change))
    assert str(error.value).startswith(str(tmp_path / "claims.yaml"))
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_or_no_yaml_gets_one_message(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        load_claims(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("claims: [")
    with pytest.raises(UserError, match="cannot be read"):
        load_claims(tmp_path / "bad.yaml")


def test_the_file_of_the_package_lists_every_statistic():
    assert {claim.statistic for claim in load_claims(FILE)} == {
        "data sets won", "ratio of times", "fraction ok",
    }  # fmt: skip
