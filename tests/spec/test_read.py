"""Correct studies, and the message for each kind of mistake."""

from __future__ import annotations

from typing import get_args

import pytest

from ep_bench.errors import UserError
from ep_bench.spec import Accept, MethodEntry
from ep_bench.types import DatasetRef, SplitScheme

HEAD = "study: s\ndatasets: [boston, naval]\nmethods: [pbp]\n"


def test_a_complete_study_is_read(read, folder, good):
    study = read(good)
    assert (study.name, study.seed, study.experiment) == ("a-study", 3, None)
    assert study.datasets == (
        DatasetRef("boston", "boston"),
        DatasetRef("naval", "naval as printed", constant_inputs="paper"),
        DatasetRef("kin40k", "kin40k", irrelevant_inputs=92),
        DatasetRef("mine", "my data", csv=str((folder / "mine.csv").resolve()), target="price"),
    )
    assert study.splits == SplitScheme("shuffle", count=4, test_fraction=0.25, seed=7)
    assert [entry.label for entry in study.methods] == ["pbp", "PBP-2", "dropout", "Regressor", "mine too"]
    assert study.methods[1].options == {"hidden": [50, 50]}
    assert study.methods[2].published == "Dropout-1"
    assert study.methods[2].tune is not None
    assert (study.methods[2].tune.trials, study.methods[2].tune.fraction) == (30, 0.2)
    assert study.methods[3].options == {"alpha": 1e-4}
    assert (study.limits.seconds, study.limits.memory_gb) == (600, 4.5)
    assert (study.compare.rows, study.compare.times) == ("PBP-2", "pbp")
    assert [(group.name, group.beside) for group in study.ranks] == [("all", "bui2015"), ("two", None)]
    assert study.ranks[0].methods == ["pbp", "PBP-2", "GP of another study"]
    assert study.ranks[0].pairs == [["PBP-2", "pbp"]]
    assert study.accept_items() == [{"method": "PBP-2", "dataset": "naval", "metric": "rmse", "reason": "two layers"}]


def test_omitted_keys_have_the_documented_defaults(read):
    study = read(HEAD)
    assert study.seed == 0
    assert study.splits == SplitScheme("standard")
    assert (study.limits.seconds, study.limits.memory_gb) == (None, None)
    assert study.overrides == {}
    assert study.accept == ()
    assert study.methods[0] == MethodEntry(use="pbp", label="pbp")


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("gap", SplitScheme("gap", files="public")),
        ("{scheme: gap, files: sorted}", SplitScheme("gap", files="sorted")),
        ("tails", SplitScheme("tails")),
        ("{scheme: folds, count: 5, above: 5000}", SplitScheme("folds", count=5, above=5000)),
        ("kfold", SplitScheme("kfold", folds=10, seed=0)),
        ("{scheme: kfold, folds: 5, seed: 2}", SplitScheme("kfold", folds=5, seed=2)),
        ("shuffle", SplitScheme("shuffle", count=20, test_fraction=0.1, seed=0)),
        ("{scheme: standard, count: 3}", SplitScheme("standard", count=3)),
        ("{count: 3}", SplitScheme("standard", count=3)),
        ("{scheme: holdout, test_rows: 51630}", SplitScheme("holdout", test_rows=51630)),
        ("holdout", SplitScheme("holdout")),
    ],
)
def test_split_schemes(read, text, scheme):
    assert read(f"{HEAD}splits: {text}\n").splits == scheme


def test_overrides_go_from_the_general_to_the_specific(read):
    study = read(
        """\
study: s
datasets: [{name: boston, label: B}, naval]
methods: [{use: pbp, label: P, epochs: 1, hidden: [1]}]
overrides:
  B: {P: {epochs: 5}, pbp: {epochs: 4}}
  boston: {P: {epochs: 3, hidden: [3]}, pbp: {epochs: 2, hidden: [2]}}
"""
    )
    (entry,), (boston, naval) = study.methods, study.datasets
    assert study.options_for(entry, boston) == {"epochs": 5, "hidden": [3]}
    assert study.options_for(entry, naval) == {"epochs": 1, "hidden": [1]}


def test_experiments_need_no_methods(read):
    study = read("study: toy\nseed: 1\nexperiment: cubic_toy\noptions: {points: 7}\n")
    assert (study.experiment, study.options, study.methods, study.datasets) == ("cubic_toy", {"points": 7}, (), ())


def test_block_scalars_comments_anchors_and_a_byte_order_mark_are_fine(read):
    text = (
        "\ufeff# a comment\nstudy: s\ndatasets: [boston, naval]\nmethods:\n"
        "  - {use: pbp, label: a, hidden: &h [3]}\n  - {use: pbp, label: b, hidden: *h}\n"
        "accept: [{method: a, dataset: boston, metric: ll, reason: 'x'}]\n"
    )
    assert [entry.options for entry in read(text).methods] == [{"hidden": [3]}, {"hidden": [3]}]


def test_a_difference_can_be_accepted_on_all_data_sets(read):
    study = read(HEAD + "accept: [{method: pbp, metric: ll, reason: r}]\n")
    assert study.accept_items() == [{"method": "pbp", "metric": "ll", "reason": "r"}]


WRONG = [
    # keys
    (
        "sutdy: s\ndatasets: [boston]\nmethods: [pbp]\n",
        1,
        ["sutdy: unknown key", "did you mean 'study'?", "study: is missing"],
    ),
    (HEAD + "seed:\n", 4, ["seed: has no value"]),
    (HEAD + "options: {a: 1}\n", 4, ["options: requires an experiment"]),
    # scalars
    ("study: 7\ndatasets: [boston]\nmethods: [pbp]\n", 1, ["study: must be text; quote it", "found 7"]),
    (
        "study: ../s\ndatasets: [boston]\nmethods: [pbp]\n",
        1,
        ["study: must be a folder's name", "found '../s'"],
    ),
    (HEAD + "seed: -1\n", 4, ["seed: must be a whole number of at least 0", "found -1"]),
    # limits
    (HEAD + "limits: {seconds: -3}\n", 4, ["limits.seconds: must be a number above 0 and at most 1e+08;", "found -3"]),
    # comparisons
    (HEAD + "compare: {rows: pbq}\n", 4, ["compare.rows: not a method of this study", "found 'pbq'", "'pbp'?"]),
    # groups to rank
    (HEAD + "ranks: [{name: g, methods: [a, b], beside: bui2016}]\n", 4, ["unknown source of published", "'bui2015'?"]),
    # data sets
    ("study: s\ndatasets:\n  - boston\n  - bostn\nmethods: [pbp]\n", 4, ["datasets[1]: unknown data set", "'boston'?"]),
    (
        "study: s\ndatasets: [boston, boston]\nmethods: [pbp]\n",
        2,
        ["datasets[1]: a second data set with the label of line 2"],
    ),
    (
        "study: s\ndatasets:\n  - boston\n  - {name: naval, constant_inputs: papr}\nmethods: [pbp]\n",
        4,
        ["datasets[1].constant_inputs: unknown value", "found 'papr'", "allowed: paper, zero", "did you mean 'paper'?"],
    ),
    ("study: s\ndatasets: [{name: m, csv: no.csv, target: y}]\nmethods: [pbp]\n", 2, ["datasets[0].csv: no such file"]),
    (
        "study: s\ndatasets: [boston]\nmethods:\n  - pbp: {hidden: [50]}\n",
        4,
        ["methods[0]: must be a method's name or a mapping with use", "allowed: {use: NAME, OPTION: VALUE, ...}"],
    ),
    # splits
    (
        HEAD + "splits: gpa\n",
        4,
        ["splits: unknown split scheme", "found 'gpa'", "holdout, kfold", "did you mean 'gap'?"],
    ),
    (
        HEAD + "splits: {scheme: standard, count: 21}\n",
        4,
        ["splits.count: must be a whole number of at least 1 and at most 20"],
    ),
    # methods
    ("study: s\ndatasets: [boston]\nmethods: [pbpp]\n", 3, ["methods[0]: unknown method", "did you mean 'pbp'?"]),
    (
        "study: s\ndatasets: [boston]\nmethods: [{use: pbp, lable: x}]\n",
        3,
        ["methods[0].lable: pbp has no such option", "published", "did you mean 'label'?"],
    ),
    ("study: s\ndatasets: [boston]\nmethods: ['pack:']\n", 3, ["methods[0]: not a class", "package.module:Class"]),
    ("study: s\ndatasets: [boston]\nmethods: [{use: 'gone.away:C'}]\n", 3, ["methods[0].use: cannot be imported"]),
    (
        "study: s\ndatasets: [boston]\nmethods:\n- {use: pbp, hiden: [3]}\n",
        4,
        ["methods[0].hiden: pbp has no", "'hidden'?"],
    ),
    ("study: s\ndatasets: [boston]\nmethods: [{use: pbp, published: PBB}]\n", 3, ["methods[0].published", "'PBP'?"]),
    # overrides
    (
        HEAD + "overrides: {bston: {pbp: {epochs: 2}}}\n",
        4,
        ["overrides.bston: not a data set of this study", "'boston'?"],
    ),
    (HEAD + "overrides: {boston: {pbp: {label: x}}}\n", 4, ["overrides.boston.pbp.label: cannot be overridden"]),
    # accepted differences
    (HEAD + "accept: [{method: x, dataset: boston, metric: ll, reason: r}]\n", 4, ["accept[0].method: not a method"]),
    # experiments
    ("study: s\nexperiment: cubik\n", 2, ["experiment: unknown experiment", "did you mean 'cubic_toy'?"]),
    ("study: s\nexperiment: cubic_toy\noptions: {pints: 3}\n", 3, ["options.pints: unknown option", "'points'?"]),
]


@pytest.mark.parametrize(("text", "line", "expected"), WRONG, ids=[expected[0] for _, _, expected in WRONG])
def test_one_message_names_line_field_and_correction(read, folder, text, line, expected):
    with pytest.raises(UserError) as caught:
        read(text)
    message = str(caught.value)
    assert f"{folder / 'study.yaml'}:{line}: " in message
    for part in expected:
        assert part in message


def test_several_mistakes_are_listed_in_the_order_of_the_file(read, folder):
    with pytest.raises(UserError) as caught:
        read("seed: -1\nstudy: s\nlimits: {seconds: 0}\ndatasets: [bostn]\nmethods: [pbq]\n")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["seed", "limits.seconds", "datasets[0]", "methods[0]"]


def test_at_most_five_mistakes_are_listed(read):
    with pytest.raises(UserError) as caught:
        read("study: s\ndatasets: [a, b, c, d, e, f, g]\nmethods: [pbp]\n")
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "... and 2 more"


def test_an_unavailable_target_is_reported_once(read):
    with pytest.raises(UserError) as caught:
        read(
            "study: s\ndatasets: [boston]\nmethods: [{use: 'gone:C', label: c}]\noverrides: {boston: {c: {alpha: 1}}}\n"
        )
    assert str(caught.value).count("cannot be imported") == 1


def test_the_metrics_that_can_be_accepted_are_those_that_get_verdicts():
    from ep_bench.published import METRICS

    metrics, _ = get_args(Accept.model_fields["metric"].annotation)  # or None, all of them
    assert set(get_args(metrics)) == set(METRICS)
