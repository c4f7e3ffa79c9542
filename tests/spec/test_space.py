"""Search spaces: their forms, and the messages for wrong ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ep_bench.errors import OptionProblem, UserError
from ep_bench.spec import read_space

HEAD = "study: s\ndatasets: [boston]\nmethods:\n"
ENTRY = "  - {{use: pbp, tune: {{trials: 3, space: {space}}}}}\n"


def good(_name: str, _value: Any) -> list[OptionProblem]:
    return []


def test_every_form_has_one_canonical_form(read):
    text = """  - use: pbp
    tune:
      fraction: 0.25
      score: rmse
      space:
        epochs: {int: [1, 40]}
        hidden: [[50], [50, 50]]
  - use: "package.module:Regressor"
    tune: {space: {alpha: {log: [1, 1e+2]}}}
"""
    first, second = read(HEAD + text).methods
    assert first.tune.model_dump(mode="json") == {
        "trials": 30,
        "fraction": 0.25,
        "space": {"epochs": {"int": [1, 40]}, "hidden": {"choice": [[50], [50, 50]]}},
        "score": "rmse",
    }
    assert json.dumps(second.tune.space) == '{"alpha": {"log": [1.0, 100.0]}}'
    assert second.tune.score == "ll"


def test_two_spellings_of_one_space_are_equal():
    assert read_space({"a": [1, 2], "b": {"uniform": [0, 1]}, "c": {"log_int": [1, 9]}}, good) == read_space(
        {"a": {"choice": [1, 2]}, "b": {"uniform": [0.0, 1.0]}, "c": {"log_int": (1, 9)}}, good
    )


def test_the_declared_space_is_the_default(read):
    (entry,) = read(HEAD + "  - {use: dropout, tune: {}}\n").methods
    assert (entry.tune.trials, entry.tune.fraction, entry.tune.score) == (30, 0.2, "ll")
    assert entry.tune.space == {"epochs": {"int": [1, 40]}, "hidden": {"choice": [[20], [50]]}}


WRONG: list[tuple[str, list[str]]] = [
    ("{epoch: {int: [1, 4]}}", ["methods[0].tune.space.epoch: pbp has no such option", "did you mean 'epochs'?"]),
    (
        "{hidden.size: [1, 2]}",
        ["space.hidden.size: pbp has no such option; to search a part of an option"],
    ),
    ("{epochs: {itn: [1, 4]}}", ["space.epochs.itn: unknown kind of range", "choice, int, log", "mean 'int'?"]),
    ("{epochs: {int: [4, 1]}}", ["space.epochs.int: must be two whole numbers, the lower one first", "found [4, 1]"]),
    ("{epochs: {int: [1, 2], log: [1, 2]}}", ["space.epochs: must be a range or a list of choices", "a mapping"]),
    ("{epochs: [1, no more]}", ["space.epochs[1]: must be a positive whole number", "found 'no more'"]),
    ("{}", ["tune.space: must be a non-empty mapping", "found an empty mapping"]),
]


@pytest.mark.parametrize(("space", "expected"), WRONG, ids=[space for space, _ in WRONG])
def test_one_message_names_line_field_and_correction(read, folder, space, expected):
    with pytest.raises(UserError) as caught:
        read(HEAD + ENTRY.format(space=space))
    message = str(caught.value)
    assert message.startswith(f"{folder / 'study.yaml'}:4: methods[0].tune.space")
    assert len(message.splitlines()) <= 2  # one per bound
    for part in expected:
        assert part in message


def test_a_missing_space_is_reported_with_its_line(read, folder):
    with pytest.raises(UserError, match=r"study\.yaml:4: methods\[0\]\.tune: pbp declares no search space; name"):
        read(HEAD + "  - {use: pbp, tune: {}}\n")


def test_a_wrong_declared_space_is_reported_for_its_method(read, folder):
    with pytest.raises(UserError) as caught:
        read(HEAD + '  - {use: "p:Wrong", tune: {trials: 3}}\n')
    assert "study.yaml:4: methods[0].tune: wrong search space declared by p:Wrong: alfa: " in str(caught.value)


def test_a_wrong_option_of_a_tuned_entry_is_reported_once(read):
    with pytest.raises(UserError) as caught:
        read(HEAD + "  - {use: pbp, epochs: 0, tune: {space: {hidden: [[1], [2]]}}}\n")
    assert len(str(caught.value).splitlines()) == 1


def test_tune_cannot_be_overridden(read):
    text = HEAD + "  - {use: pbp, tune: {space: {epochs: [1, 2]}}}\noverrides: {boston: {pbp: {tune: {trials: 2}}}}\n"
    with pytest.raises(UserError, match=r"overrides\.boston\.pbp\.tune: cannot be overridden"):
        read(text)
    overridden = read(text.replace("tune: {trials: 2}", "epochs: 7"))
    assert overridden.options_for(overridden.methods[0], overridden.datasets[0]) == {"epochs": 7}
