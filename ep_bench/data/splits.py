"""Splits of data points into training and test data: standard, folds, kfold, contiguous, shuffle, gap, tails, holdout.

Standard splits are those of Hernandez-Lobato and Adams (2015). With one ``RandomState(1)``, split K is the K-th draw of
``choice(N, N, replace=False)``; its first round(0.9 N) entries are the training data. The other random schemes also
draw from ``RandomState``, whose streams are the same in all releases of numpy.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.errors import UserError
from ep_bench.resources import shipped_folder
from ep_bench.types import Dataset, DatasetInfo, Indices, Split, SplitScheme

FOLDS = 10
COUNT = 20
TEST_FRACTION = 0.1
TRAIN_FRACTION = 0.9


def standard_split(n: int, index: int) -> tuple[Indices, Indices]:
    """Return the training and test indices of a standard split, in the order drawn.

    Parameters
    ----------
    n : int
        Number of data points.
    index : int
        Index of the split, from 0.

    Returns
    -------
    train, test : ndarray of int
        Row indices, round(0.9 n) of them for training.

    Raises
    ------
    UserError
        ``index`` is negative, or n is too small for training and test data.
    """
    n_train = round(TRAIN_FRACTION * n)
    _require_rows(n_train, n - n_train, n, "standard")
    if index < 0:
        raise UserError("the index of a split must be at least 0", where="splits", found=index)
    generator = np.random.RandomState(1)
    for _ in range(index + 1):
        rows = generator.choice(n, n, replace=False)
    return rows[:n_train].astype(np.int64), rows[n_train:].astype(np.int64)


def resolve_scheme(scheme: SplitScheme, card: Any = None) -> SplitScheme:
    """Return the scheme with its default values; the default ``test_rows`` of `holdout` is that of the card.

    A card without published folds has its standard splits, and one without public gaps those of the sorted values.

    Raises
    ------
    UserError
        `holdout` has no ``test_rows``, or a user's own data have no published folds.
    """
    masks = getattr(card, "masks", {})
    if scheme.scheme == "folds" and card is None:
        raise UserError("only data sets of the package have published folds", where="splits", allowed="kfold")
    if scheme.scheme == "folds" and "folds" not in masks:
        return replace(scheme, scheme="standard")
    if scheme.scheme == "gap" and "gap" not in masks:
        return replace(scheme, files=None)
    if scheme.scheme == "kfold":
        folds = FOLDS if scheme.folds is None else scheme.folds
        return replace(scheme, folds=folds, seed=scheme.seed or 0)
    if scheme.scheme == "contiguous":
        return replace(scheme, folds=FOLDS if scheme.folds is None else scheme.folds)
    if scheme.scheme == "shuffle":
        fraction = TEST_FRACTION if scheme.test_fraction is None else scheme.test_fraction
        count = COUNT if scheme.count is None else scheme.count
        return replace(scheme, count=count, test_fraction=fraction, seed=scheme.seed or 0)
    if scheme.scheme == "holdout" and scheme.test_rows is None:
        rows = getattr(card, "holdout_rows", None)
        if rows is None:
            problem = "holdout requires splits.test_rows, the number of test points at the end of the data"
            raise UserError(problem, where="splits")
        return replace(scheme, test_rows=rows)
    return scheme


def split_count(scheme: SplitScheme, info: DatasetInfo) -> int:
    """Return the number of splits that a scheme has on a data set, at most ``count``."""
    if scheme.scheme == "shuffle":
        return COUNT if scheme.count is None else scheme.count
    available = {
        "standard": info.splits,
        "folds": FOLDS,
        "kfold": FOLDS if scheme.folds is None else scheme.folds,
        "contiguous": FOLDS if scheme.folds is None else scheme.folds,
        "gap": info.d,
        "tails": info.d,
        "holdout": info.parts,
    }[scheme.scheme]
    return available if scheme.count is None or info.n <= (scheme.above or 0) else min(scheme.count, available)


def check_scheme(scheme: SplitScheme, n: int, card: Any = None, train_points: int | None = None) -> None:
    """Check that every split of n data points has training and test data, and one of them ``train_points``.

    Raises
    ------
    UserError
        A split has no training or no test data, or a parameter of the scheme is wrong.
    """
    scheme = resolve_scheme(scheme, card)
    if scheme.rows is not None and scheme.rows > n:
        raise UserError(
            "more rows than the data set has", where="splits", field="rows", found=scheme.rows, allowed=f"at most {n}"
        )
    points, n_test = _sizes(scheme, n, _parts(scheme, card))
    _require_rows(points - n_test, n_test, points, scheme.scheme)
    if train_points is not None and train_points > points - n_test:
        raise UserError("too many", field="train_points", found=train_points, allowed=f"at most {points - n_test}")


def _sizes(scheme: SplitScheme, n: int, parts: int) -> tuple[int, int]:
    """Return the number of data points that are split, and that of the smallest test set."""
    points = n // parts if scheme.rows is None else scheme.rows
    n_test = {
        "standard": lambda: points - round(TRAIN_FRACTION * points),
        "folds": lambda: points // FOLDS,
        "kfold": lambda: points // scheme.folds if scheme.folds else 0,
        "contiguous": lambda: points // scheme.folds if scheme.folds else 0,
        "shuffle": lambda: round((scheme.test_fraction or 0.0) * points),
        "gap": lambda: (2 * points) // 3 - points // 3,
        "tails": lambda: 2 * (points // 6),
        "holdout": lambda: scheme.test_rows or 0,
    }[scheme.scheme]()
    return points, n_test


def training_points(scheme: SplitScheme, info: DatasetInfo) -> int:
    """Return the largest number of training points of a split; the scheme has its default values."""
    points, n_test = _sizes(scheme, info.n, info.parts if scheme.scheme == "holdout" else 1)
    return points - n_test


def make_split(scheme: SplitScheme, dataset: Dataset, index: int) -> Split:
    """Return split ``index`` (from 0) of a data set, without its dropped points, or ``train_points`` of it.

    The indices are in the order drawn for ``standard`` and ``shuffle``, in the order of one permutation for ``kfold``,
    and in the order of the file for the others. The test data of ``gap`` are the middle third of the sorted values of
    input ``index``, those of ``tails`` the first and the last sixth; ties are in the order of the file. ``holdout`` has
    one split per part of the card, which contains this part only. Training sets of fewer points are parts of larger
    ones.

    Raises
    ------
    UserError
        A parameter of the scheme is wrong, there are no training or test data, or there is no split of that index.
    """
    split = _drawn_split(scheme, dataset, index)
    if dataset.dropped:
        split = Split(index, *(rows[~np.isin(rows, dataset.dropped)] for rows in (split.train, split.test)))
    if dataset.train_points is None:
        return split
    if dataset.train_points > len(split.train):
        found, most = dataset.train_points, f"at most {len(split.train)}"
        raise UserError("too many", where=dataset.name, field="train_points", found=found, allowed=most)
    return Split(index, _stream("train_points", index).permutation(split.train)[: dataset.train_points], split.test)


def _drawn_split(scheme: SplitScheme, dataset: Dataset, index: int) -> Split:
    """Return a split of all data points."""
    scheme = resolve_scheme(scheme, dataset.card)
    n, d = dataset.X.shape
    check_scheme(scheme, n, dataset.card)
    parts = _parts(scheme, dataset.card)
    last = {
        "folds": FOLDS, "kfold": scheme.folds, "contiguous": scheme.folds, "gap": d, "tails": d, "holdout": parts,
    }.get(scheme.scheme)  # fmt: skip
    if index < 0 or (last is not None and index >= last):
        raise UserError(f"{scheme.scheme} has no split {index} on {dataset.name}", where="splits")
    if scheme.scheme == "standard":
        return Split(index, *standard_split(n, index))
    if scheme.scheme == "kfold":
        rows = _stream("kfold", scheme.seed or 0).permutation(n).astype(np.int64)
        return Split(index, *_held_out(rows, scheme.folds or FOLDS, index))
    if scheme.scheme == "contiguous":
        return Split(index, *_held_out(np.arange(scheme.rows or n, dtype=np.int64), scheme.folds or FOLDS, index))
    if scheme.scheme == "shuffle":
        rows = _stream("shuffle", scheme.seed or 0, index).permutation(n).astype(np.int64)
        n_train = n - round((scheme.test_fraction or TEST_FRACTION) * n)
        return Split(index, rows[:n_train], rows[n_train:])
    if scheme.scheme == "folds":
        return Split(index, *_without(n, stored_mask(dataset.card.name, "folds")[0] == index))
    if scheme.scheme == "gap" and scheme.files == "public" and index < dataset.card.d:
        return Split(index, *_without(n, stored_mask(dataset.card.name, "gap")[index] == 1))
    if scheme.scheme in {"gap", "tails"}:
        order = np.argsort(dataset.X[:, index], kind="stable")
        gap, tails = order[n // 3 : (2 * n) // 3], np.concatenate([order[: n // 6], order[n - n // 6 :]])
        return Split(index, *_without(n, gap if scheme.scheme == "gap" else tails))
    rows = np.arange(n // parts * index, n // parts * (index + 1))
    n_train = len(rows) - (scheme.test_rows or 0)
    return Split(index, rows[:n_train], rows[n_train:])


def make_splits(scheme: SplitScheme, dataset: Dataset) -> Iterator[Split]:
    """Yield every split of a scheme on a data set, in order."""
    n, d = dataset.X.shape
    card = dataset.card
    scheme = resolve_scheme(scheme, card)
    splits, parts = (COUNT, 1) if card is None else (card.n_splits, card.parts)
    info = DatasetInfo(n=n, d=d, checksum=dataset.checksum, splits=splits, parts=parts, task=dataset.task)
    for index in range(split_count(scheme, info)):
        yield make_split(scheme, dataset, index)


def _held_out(rows: Indices, folds: int, index: int) -> tuple[Indices, Indices]:
    """Return training and test indices if part ``index`` of equal consecutive parts is held out."""
    parts = np.array_split(rows, folds)
    return np.concatenate(parts[:index] + parts[index + 1 :]), parts[index]


def _parts(scheme: SplitScheme, card: Any) -> int:
    """Return the number of parts into which a scheme divides the data before splitting."""
    return int(getattr(card, "parts", 1)) if scheme.scheme == "holdout" else 1


def _without(n: int, test: Indices) -> tuple[Indices, Indices]:
    is_test = np.zeros(n, dtype=bool)
    is_test[test] = True
    return np.flatnonzero(~is_test).astype(np.int64), np.flatnonzero(is_test).astype(np.int64)


@lru_cache(maxsize=8)
def stored_mask(name: str, scheme: str) -> NDArray[np.uint8]:
    """Return the stored test sets (S, n) of a data set: one row of folds, or one row of 0 and 1 per input."""
    with lzma.open(shipped_folder("datasets") / name / f"{scheme}.txt.xz") as file:
        return np.array([np.frombuffer(line.rstrip(), dtype=np.uint8) for line in file]) - ord("0")


def _stream(*factors: str | int) -> np.random.RandomState:
    """Return the random stream whose seed is the sha256 of the factors."""
    digest = hashlib.sha256("/".join(map(str, factors)).encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, dtype="<u4"))


def _require_rows(n_train: int, n_test: int, n: int, scheme: str) -> None:
    if n_train < 1 or n_test < 1:
        raise UserError(
            f"{scheme} splits {n} data points into {max(n_train, 0)} for training and {n_test} for testing; "
            "both must be at least 1",
            where="splits",
        )
