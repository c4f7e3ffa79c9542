"""Studies that include other studies: the union of entries, overrides, and contradictions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench.errors import UserError
from ep_bench.runner.plan import make_plan
from ep_bench.spec import Study, read_study

FIRST = """
study: first
datasets: [boston, yacht]
methods:
  - {use: pbp, label: PBP-1}
  - {use: gp, label: GP}
overrides:
  yacht: {gp: {starts: 2}}
accept:
  - {method: PBP-1, dataset: boston, metric: ll, reason: known}
"""
SECOND = """
study: second
datasets: [boston, {name: naval, constant_inputs: paper}]
methods:
  - {use: pbp, label: PBP-1, hidden: [50]}
  - {use: pbp, label: PBP-2, hidden: [50, 50]}
overrides:
  naval: {PBP-2: {epochs: 9}}
"""
WHOLE = "study: whole\ninclude: [first.yaml, parts/second.yaml]\n"


def read(folder: Path, whole: str = WHOLE, *, first: str = FIRST, second: str = SECOND) -> Study:
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "first.yaml").write_text(first)
    (folder / "parts" / "second.yaml").write_text(second)
    (folder / "whole.yaml").write_text(whole)
    return read_study(folder / "whole.yaml")


def message(folder: Path, whole: str = WHOLE, **parts: str) -> str:
    with pytest.raises(UserError) as error:
        read(folder, whole, **parts)
    return str(error.value).replace(str(folder), "DIR")


def options(study: Study, method: str, dataset: str) -> dict[str, object]:
    entry = next(entry for entry in study.methods if entry.label == method)
    return study.options_for(entry, next(ref for ref in study.datasets if ref.label == dataset))


def test_the_union_has_each_entry_once(tmp_path: Path) -> None:
    study = read(tmp_path)
    assert [ref.label for ref in study.datasets] == ["boston", "yacht", "naval"]
    assert [entry.label for entry in study.methods] == ["PBP-1", "GP", "PBP-2"]
    assert study.datasets[2].constant_inputs == "paper"
    assert study.name == "whole"


def test_overrides_apply_to_the_entries_of_their_file_only(tmp_path: Path) -> None:
    study = read(tmp_path)
    assert options(study, "GP", "yacht") == {"starts": 2}
    assert options(study, "PBP-2", "yacht") == {"hidden": [50, 50]}
    assert options(study, "PBP-2", "naval")["epochs"] == 9
    assert options(study, "PBP-1", "naval") == {"hidden": [50]}
    assert options(study, "GP", "boston") == {}


def test_overrides_of_the_including_file_come_last(tmp_path: Path) -> None:
    study = read(tmp_path, WHOLE + "overrides: {yacht: {GP: {starts: 3}}, naval: {pbp: {epochs: 4}}}\n")
    assert options(study, "GP", "yacht") == {"starts": 3}
    assert options(study, "PBP-1", "naval") == {"hidden": [50], "epochs": 4}
    assert options(study, "PBP-2", "naval") == {"hidden": [50, 50], "epochs": 4}


def test_an_override_does_not_apply_to_another_data_set_with_the_same_name(tmp_path: Path) -> None:
    """The label of one data set may be the name of another."""
    third = "datasets: [{name: naval, label: naval zero}]\n"
    study = read(tmp_path, WHOLE + third)
    assert options(study, "PBP-2", "naval")["epochs"] == 9
    assert "epochs" not in options(study, "PBP-2", "naval zero")


def test_accepted_differences_of_the_including_file_come_first(tmp_path: Path) -> None:
    own = "accept: [{method: PBP-1, dataset: boston, metric: ll, reason: own}]\n"
    study = read(tmp_path, WHOLE + own)
    assert [(each.method, each.dataset, each.reason) for each in study.accept] == [("PBP-1", "boston", "own")]
    assert [each.reason for each in read(tmp_path).accept] == ["known"]


def test_cells_left_out_and_accepted_differences_are_those_of_their_file(tmp_path: Path) -> None:
    """The including file has another data set with the name of the card."""
    more = """
left_out: [{method: pbp, dataset: naval, reason: long}]
accept: [{method: pbp, dataset: naval, metric: ll, reason: known}]
"""
    own = "datasets: [{name: naval, label: naval zero}]\n"
    study = read(tmp_path, WHOLE + own, second=SECOND + more)
    assert {(each.method, each.dataset) for each in study.left_out} == {("PBP-1", "naval"), ("PBP-2", "naval")}
    assert {each.dataset for each in study.accept} == {"boston", "naval"}


def test_an_item_may_name_several_data_sets(tmp_path: Path) -> None:
    more = "\nleft_out: [{method: pbp, dataset: [naval, boston], reason: long}]\n"
    study = read(tmp_path, WHOLE, second=SECOND + more)
    assert {each.dataset for each in study.left_out} == {"naval", "boston"}
    for wrong, message in (("[naval, bostn]", "not a data set of this study"), ("[]", "dataset")):
        with pytest.raises(UserError, match=message):
            read(tmp_path, WHOLE, second=SECOND + more.replace("[naval, boston]", wrong))


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (
            SECOND.replace("label: PBP-1, hidden: [50]", "label: PBP-1, hidden: [20]"),
            ("DIR/whole.yaml:2: include[1]: the method 'PBP-1' is not the same in DIR/first.yaml:5 and in "
            "DIR/parts/second.yaml:5: hidden [50] and [20]; change one label"),
        ),
        (
            "study: s\ndatasets: [yacht]\nmethods: [{use: gp, label: GP}]\n",
            ("DIR/whole.yaml:2: include[1]: the method 'GP' is not the same in DIR/first.yaml:6 and in "
            "DIR/parts/second.yaml:3: on yacht, starts 2 and 3; change one label"),
        ),
        (
            "study: s\ndatasets: [{name: yacht, target_transform: log}]\nmethods: [gp]\n",
            ("DIR/whole.yaml:2: include[1]: the data set 'yacht' is not the same in DIR/first.yaml:3 and in "
            "DIR/parts/second.yaml:2; change one label"),
        ),
    ],
)  # fmt: skip
def test_contradictions_name_both_places(tmp_path: Path, second: str, expected: str) -> None:
    assert message(tmp_path, second=second) == expected


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (
            "study: w\ninclude: [fist.yaml]\n",
            "include[0]: no such study file, and no shipped study with this name; found 'fist.yaml'",
        ),
        ("study: w\ninclude: [quikstart]\n", "did you mean 'quickstart'?"),
        ("study: w\ninclude: [whole.yaml]\n", "include[0]: includes itself: whole.yaml -> whole.yaml"),
        ("study: w\ninclude: [toy.yaml]\n", "include[0]: is an experiment; only studies with methods can be included"),
        ("study: w\ninclude: [wrong.yaml]\n", "DIR/wrong.yaml:2: datasets[0]: unknown data set"),
        (WHOLE + "overrides: {yacht: {PPB: {epochs: 3}}}\n", "allowed: GP, PBP-1, PBP-2, gp, pbp"),
        (WHOLE + "overrides: {yacht: {PBP-1: {epoch: 3}}}\n", "did you mean 'epochs'?"),
    ],
)
def test_mistakes(tmp_path: Path, whole: str, expected: str) -> None:
    (tmp_path / "toy.yaml").write_text("study: t\nexperiment: conflict_tilted\n")
    (tmp_path / "wrong.yaml").write_text("study: t\ndatasets: [bostn]\nmethods: [pbp]\n")
    assert expected in message(tmp_path, whole)


def test_shipped_studies_are_included_by_name(tmp_path: Path) -> None:
    first = FIRST.replace("label: GP", "label: GP-1").replace("gp:", "GP-1:")
    study = read(tmp_path, "study: w\ninclude: [quickstart, first.yaml]\n", first=first)
    assert [entry.label for entry in study.methods] == ["PBP", "GP", "Bayesian ridge", "Constant", "PBP-1", "GP-1"]
    (tmp_path / "quickstart").write_text("study: s\ndatasets: [wine]\nmethods: [vi]\n")  # a file comes first
    assert read(tmp_path, "study: w\ninclude: [quickstart]\n").methods[0].use == "vi"


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    first = FIRST.replace("datasets:", "include: [whole.yaml]\ndatasets:", 1)
    assert "DIR/first.yaml:3: include[0]: includes itself: whole.yaml -> first.yaml -> whole.yaml" in message(
        tmp_path, first=first
    )


def test_included_files_may_include_others(tmp_path: Path) -> None:
    second = SECOND.replace("datasets:", "include: [../first.yaml]\ndatasets:", 1)
    study = read(tmp_path, "study: w\ninclude: [parts/second.yaml, first.yaml]\n", second=second)
    assert [entry.label for entry in study.methods] == ["PBP-1", "GP", "PBP-2"]
    assert options(study, "PBP-2", "naval")["epochs"] == 9


def test_cells_are_those_of_the_included_studies(tmp_path: Path) -> None:
    first, second = FIRST, SECOND
    whole = {planned.job.cell.key for planned in make_plan(read(tmp_path), tmp_path / "results").cells}
    for name, text in (("first.yaml", first), ("parts/second.yaml", second)):
        (tmp_path / name).write_text(text)
        part = make_plan(read_study(tmp_path / name), tmp_path / "results")
        assert {planned.job.cell.key for planned in part.cells} <= whole


def test_a_method_in_a_file_next_to_the_included_study(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "own.py").write_text("from ep_bench.baselines import ConstantRegressor as Own\n")
    second = "study: s\ndatasets: [boston]\nmethods: [{use: './own.py:Own', label: own}]\n"
    study = read(tmp_path, second=second)
    assert study.methods[-1].use == "./parts/own.py:Own"
    assert make_plan(study, tmp_path / "results").cells[-1].state == "missing"


def test_the_shipped_suite_has_the_nine_sets_of_the_papers() -> None:
    study = read_study("suite")
    assert {ref.name for ref in study.datasets} == {
        "boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht"
    }  # fmt: skip
    assert study.splits.factors()["scheme"] == "standard"
    uses = {"pbp", "vi", "ensemble", "hmc", "sgld", "laplace", "gp", "sgp", "dgp_ep", "ep_nn"}
    assert {entry.use for entry in study.methods} >= uses
