"""Splits: the standard ones pinned, the others by their properties."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data.splits import stored_mask
from ep_bench.errors import UserError
from ep_bench.types import Dataset, DatasetInfo, DatasetRef, SplitScheme

PINNED = list(csv.DictReader((Path(__file__).parent / "splits_sha256.csv").open(encoding="utf-8")))


def dataset_of(n: int, d: int = 3, card=None) -> Dataset:
    stream = np.random.RandomState(4)
    X = np.ascontiguousarray(stream.standard_normal((n, d)))
    return Dataset("toy", X, stream.standard_normal(n), tuple(f"x{j}" for j in range(d)), "y", card, "0" * 64)


def info_of(n: int = 100, d: int = 3, standard: int = 20) -> DatasetInfo:
    return DatasetInfo(n=n, d=d, checksum="", splits=standard)


def digest(rows) -> str:
    return hashlib.sha256(np.asarray(rows, dtype="<i8").tobytes()).hexdigest()


def test_standard_splits_are_the_published_ones() -> None:
    assert len(PINNED) == 165
    for row in PINNED:
        train, test = data.standard_split(data.card(row["dataset"]).n, int(row["split"]))
        assert (len(train), len(test)) == (int(row["n_train"]), int(row["n_test"]))
        assert (digest(train), digest(test)) == (row["train_sha256"], row["test_sha256"]), row


def test_a_standard_split_does_not_depend_on_what_was_asked_before() -> None:
    generator = np.random.RandomState(1)
    draws = [generator.choice(57, 57, replace=False) for _ in range(8)]
    for index in (5, 0, 7, 3, 3, 6, 1):
        train, test = data.standard_split(57, index)
        np.testing.assert_array_equal(np.concatenate([train, test]), draws[index])
        assert len(train) == 51


def test_rounding_is_to_even_as_in_the_published_sizes() -> None:
    assert len(data.standard_split(15, 0)[0]) == round(0.9 * 15) == 14
    assert len(data.standard_split(5, 0)[0]) == round(4.5) == 4


@pytest.mark.parametrize(
    "scheme",
    [
        SplitScheme("standard"),
        SplitScheme("kfold", folds=7),
        SplitScheme("contiguous", folds=3),
        SplitScheme("shuffle", count=4, test_fraction=0.3),
        SplitScheme("gap"),
        SplitScheme("tails"),
        SplitScheme("holdout", test_rows=13),
    ],
    ids=lambda scheme: scheme.scheme,
)
@pytest.mark.parametrize("n", [10, 101])
def test_every_split_is_a_partition(scheme: SplitScheme, n: int) -> None:
    if scheme.scheme == "holdout" and n == 10:
        with pytest.raises(UserError, match="into 0 for training"):
            next(data.make_splits(scheme, dataset_of(n)))
        return
    found = list(data.make_splits(scheme, dataset_of(n)))
    assert [split.index for split in found] == list(range(data.split_count(scheme, info_of(n))))
    for split in found:
        assert sorted([*split.train, *split.test]) == list(range(n))
        assert len(split.test)
        assert split.train.dtype == split.test.dtype == np.int64


def test_counts() -> None:
    count = data.split_count
    assert count(SplitScheme("standard"), info_of(standard=5)) == 5
    assert count(SplitScheme("standard", count=3), info_of(standard=5)) == 3
    assert count(SplitScheme("standard", count=20), info_of(standard=1)) == 1
    assert count(SplitScheme("kfold"), info_of()) == 10
    assert count(SplitScheme("kfold", folds=4, count=9), info_of()) == 4
    assert count(SplitScheme("shuffle", count=50), info_of()) == 50
    assert count(SplitScheme("gap"), info_of(d=6)) == 6
    assert count(SplitScheme("gap", count=2), info_of(d=6)) == 2
    assert count(SplitScheme("holdout"), info_of()) == 1


def test_folds_test_every_row_once_and_the_seed_matters() -> None:
    toy = dataset_of(53)
    tested = [split.test for split in data.make_splits(SplitScheme("kfold", folds=5, seed=2), toy)]
    assert sorted(np.concatenate(tested)) == list(range(53))
    assert {len(test) for test in tested} == {10, 11}
    other = data.make_split(SplitScheme("kfold", folds=5, seed=3), toy, 0)
    assert set(other.test) != set(tested[0])
    assert list(tested[0]) != sorted(tested[0])


def test_contiguous_folds_are_blocks_of_the_first_rows() -> None:
    toy = dataset_of(53)
    scheme = SplitScheme("contiguous", folds=4, rows=20)
    found = list(data.make_splits(scheme, toy))
    assert [split.test.tolist() for split in found] == [list(range(5 * k, 5 * k + 5)) for k in range(4)]
    for split in found:
        assert sorted([*split.train, *split.test]) == list(range(20))
    assert scheme.factors() == {"scheme": "contiguous", "folds": 4, "rows": 20}
    with pytest.raises(UserError, match="more rows than the data set has"):
        data.make_split(SplitScheme("contiguous", rows=54), toy, 0)


def test_shuffles_differ_and_do_not_depend_on_the_count() -> None:
    toy = dataset_of(40000 // 100)
    few, more = (SplitScheme("shuffle", count=k, test_fraction=0.875, seed=1) for k in (2, 30))
    first = data.make_split(few, toy, 1)
    np.testing.assert_array_equal(first.test, data.make_split(more, toy, 1).test)
    assert (len(first.train), len(first.test)) == (50, 350)
    assert set(first.test) != set(data.make_split(more, toy, 0).test)


def test_random_schemes_are_pinned() -> None:
    toy = dataset_of(20)
    assert data.make_split(SplitScheme("kfold", folds=5), toy, 1).test.tolist() == [16, 10, 7, 17]
    assert data.make_split(SplitScheme("shuffle", test_fraction=0.2), toy, 1).test.tolist() == [16, 17, 15, 8]


@pytest.mark.parametrize("n", [9, 10, 11, 100])
def test_a_gap_is_the_middle_third(n: int) -> None:
    toy = dataset_of(n, d=2)
    for split in data.make_splits(SplitScheme("gap"), toy):
        values = toy.X[:, split.index]
        inside, outside = values[split.test], values[split.train]
        below, above = outside[outside < inside.min()], outside[outside > inside.max()]
        assert len(below) + len(above) == len(outside)
        assert abs(len(below) - len(above)) <= 1
        assert abs(len(inside) - n / 3) < 1.0


def test_a_gap_in_a_constant_input_is_the_middle_of_the_file() -> None:
    toy = dataset_of(9, d=1)
    toy.X[:] = 1.0
    assert data.make_split(SplitScheme("gap"), toy, 0).test.tolist() == [3, 4, 5]


@pytest.mark.parametrize("n", [9, 10, 11, 100])
def test_tails_are_the_outer_sixths(n: int) -> None:
    toy = dataset_of(n, d=2)
    for split in data.make_splits(SplitScheme("tails"), toy):
        inside, outside = toy.X[split.train, split.index], toy.X[split.test, split.index]
        assert (outside < inside.min()).sum() == (outside > inside.max()).sum() == n // 6
        assert len(outside) == 2 * (n // 6)


def test_tails_divide_ties_in_the_order_of_the_file() -> None:
    toy = dataset_of(12, d=1)
    toy.X[:] = 1.0
    assert data.make_split(SplitScheme("tails"), toy, 0).test.tolist() == [0, 1, 10, 11]


def test_published_folds_are_a_partition_and_other_cards_have_their_standard_splits() -> None:
    servo, boston = data.load_dataset("servo"), data.load_dataset("boston")
    tested = [split.test for split in data.make_splits(SplitScheme("folds"), servo)]
    assert sorted(np.concatenate(tested)) == list(range(167))
    assert [len(test) for test in tested] == [16, 17, 17, 17, 17, 17, 17, 17, 16, 16]
    assert tested[0].tolist()[:3] == np.flatnonzero(stored_mask("servo", "folds")[0] == 0).tolist()[:3]
    few = SplitScheme("folds", count=5, above=200)
    assert [len(list(data.make_splits(few, dataset))) for dataset in (servo, boston)] == [10, 5]
    first, standard = (data.make_split(SplitScheme(scheme), boston, 0) for scheme in ("folds", "standard"))
    np.testing.assert_array_equal(first.test, standard.test)
    with pytest.raises(UserError, match="only data sets of the package have published folds"):
        data.check_scheme(few, 300)


def test_public_gaps_are_those_of_the_file_and_sorted_ones_have_no_factor() -> None:
    energy, public = data.load_dataset("energy"), SplitScheme("gap", files="public")
    ours = list(data.make_splits(SplitScheme("gap", files="sorted"), energy))
    theirs = list(data.make_splits(public, energy))
    assert [split.test.tolist() for split in theirs] == [
        np.flatnonzero(line).tolist() for line in stored_mask("energy", "gap")
    ]
    assert [set(a.test) == set(b.test) for a, b in zip(ours, theirs, strict=True)].count(True) == 2
    assert public.factors() == {"scheme": "gap", "files": "public"}
    assert SplitScheme("gap", files="sorted").factors() == SplitScheme("gap").factors() == {"scheme": "gap"}
    assert data.resolve_scheme(public, data.card("cubic")) == SplitScheme("gap")


@pytest.mark.parametrize("name", [name for name in data.names() if "gap" in data.card(name).masks])
def test_public_gaps_are_a_third_in_the_middle(name: str) -> None:
    dataset = data.load_dataset(name)
    for split in data.make_splits(SplitScheme("gap", files="public"), dataset):
        x = dataset.X[:, split.index]
        low, high = x[split.test].min(), x[split.test].max()
        outside = x[split.train]
        assert not np.any((outside > low) & (outside < high))
        assert abs(len(split.test) - len(x) / 3) <= 1.0
        assert max((outside < low).sum(), (outside > high).sum()) <= len(x) / 3 + 1.0


def test_fewer_training_points_are_parts_of_more_and_the_test_set_remains() -> None:
    few, more = (data.load_dataset("yacht", train_points=count) for count in (20, 50))
    small, large = (data.make_split(SplitScheme(), dataset, 3) for dataset in (few, more))
    whole = data.make_split(SplitScheme(), data.load_dataset("yacht"), 3)
    assert (len(small.train), len(large.train)) == (20, 50)
    assert set(small.train) < set(large.train) < set(whole.train)
    assert small.test.tolist() == whole.test.tolist()
    with pytest.raises(UserError, match=r"yacht: train_points.*at most 277"):
        data.make_split(SplitScheme(), data.load_dataset("yacht", train_points=278), 0)


def test_a_holdout_is_the_last_rows() -> None:
    toy = dataset_of(30)
    assert data.make_split(SplitScheme("holdout", test_rows=4), toy, 0).test.tolist() == [26, 27, 28, 29]
    with pytest.raises(UserError, match=r"holdout requires splits\.test_rows"):
        data.make_split(SplitScheme("holdout"), toy, 0)
    year = data.card("year")
    assert data.resolve_scheme(SplitScheme("holdout"), year).test_rows == 51630
    data.check_scheme(SplitScheme("holdout"), year.n, year)
    last = data.make_split(SplitScheme("holdout"), dataset_of(51640, 1, year), 0)
    assert (last.test[0], last.test[-1], len(last.train)) == (10, 51639, 10)


def test_a_holdout_has_a_split_for_each_part() -> None:
    card = data.card("friedman-outliers").model_copy(update={"parts": 3, "holdout_rows": 4})
    toy = dataset_of(21, card=card)
    found = list(data.make_splits(SplitScheme("holdout"), toy))
    assert [(split.train.tolist(), split.test.tolist()) for split in found] == [
        ([first, first + 1, first + 2], [first + 3, first + 4, first + 5, first + 6]) for first in (0, 7, 14)
    ]
    with pytest.raises(UserError, match="holdout splits 7 data points into 0 for training and 7 for testing"):
        data.make_split(SplitScheme("holdout", test_rows=7), toy, 0)
    with pytest.raises(UserError, match="holdout has no split 3"):
        data.make_split(SplitScheme("holdout"), toy, 3)
    assert len(data.make_split(SplitScheme("kfold", folds=3), toy, 0).test) == 7


def test_a_data_set_of_its_own_takes_every_scheme_with_irrelevant_inputs() -> None:
    dataset = data.load(DatasetRef("cubic", "cubic", irrelevant_inputs=2))
    assert len(list(data.make_splits(SplitScheme("gap"), dataset))) == 3


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (SplitScheme("kfold", folds=1), "into 0 for training and 50 for testing"),
        (SplitScheme("kfold", folds=60), "kfold splits"),
        (SplitScheme("shuffle", test_fraction=1.0), "into 0 for training and 50 for testing"),
        (SplitScheme("shuffle", test_fraction=0.001), "for training and 0 for testing"),
        (SplitScheme("holdout", test_rows=50), "into 0 for training and 50 for testing"),
    ],
)
def test_wrong_schemes_are_refused(scheme: SplitScheme, message: str) -> None:
    with pytest.raises(UserError, match=message):
        data.make_split(scheme, dataset_of(50), 0)
    with pytest.raises(UserError, match=message):
        data.check_scheme(scheme, 50)


@pytest.mark.parametrize("scheme", [SplitScheme("kfold"), SplitScheme("gap"), SplitScheme("holdout", test_rows=2)])
@pytest.mark.parametrize("index", [-1, 10])
def test_a_split_that_is_not_there_is_refused(scheme: SplitScheme, index: int) -> None:
    with pytest.raises(UserError, match=f"no split {index} on toy"):
        data.make_split(scheme, dataset_of(50), index)


def test_year_has_one_standard_split_of_its_size() -> None:
    train, test = data.standard_split(data.card("year").n, 0)
    assert (len(train), len(test)) == (463810, 51535)
