"""Classification sets: their cards and files, and a user's own file with labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data import class_labels
from ep_bench.data.cards import Card
from ep_bench.errors import UserError
from ep_bench.types import Dataset, DatasetRef, SplitScheme

COUNTS = {
    "australian": (14, (383, 307)),
    "breast": (9, (444, 239)),
    "crabs": (5, (100, 100)),
    "ionosphere": (34, (126, 225)),
    "pima": (8, (500, 268)),
    "sonar": (60, (111, 97)),
    "glass": (9, (70, 76, 17, 13, 9, 29)),
    "new-thyroid": (5, (150, 35, 30)),
    "svmguide2": (20, (221, 117, 53)),
    "wine-cultivars": (13, (59, 71, 48)),
}


def ref_of(path: Path, content: str, target: str = "kind") -> DatasetRef:
    path.write_text(content, encoding="utf-8")
    return DatasetRef("mine", "mine", csv=str(path), target=target, task="classification")


def table(labels: list[str], header: str = "a,kind,b") -> str:
    return "\n".join([header, *(f"{i},{label},{i * i}" for i, label in enumerate(labels))]) + "\n"


@pytest.mark.parametrize("name", COUNTS)
def test_sets_are_those_of_their_cards(name: str) -> None:
    d, counts = COUNTS[name]
    dataset, info = data.load_dataset(name), data.describe(DatasetRef(name, name))
    assert dataset.X.shape == (sum(counts), d) == (info.n, info.d)
    assert dataset.task == info.task == "classification"
    assert len(dataset.classes) == len(counts)
    assert np.bincount(dataset.y.astype(int)).tolist() == list(counts)
    assert dataset.y.dtype == np.float64
    (found,) = data.verify([name])
    assert found.status == "ok"


def test_neither_counters_nor_labels_are_inputs() -> None:
    crabs, glass, breast = (data.load_dataset(name) for name in ("crabs", "glass", "breast"))
    assert crabs.X[0].tolist() == [8.1, 6.7, 16.1, 19.0, 7.0]
    assert crabs.classes[int(crabs.y[0])] == "male"
    assert glass.X[:, 0].max() < 1.6
    assert breast.X.max() == 10.0
    assert data.load_dataset("svmguide2").X[0, 19] == pytest.approx(0.0647, abs=1e-3)


@pytest.mark.parametrize("scheme", ["standard", "kfold", "shuffle"])
def test_splits_of_a_classification_set_are_those_of_its_rows(scheme: str) -> None:
    glass = data.load_dataset("glass")
    split = data.make_split(SplitScheme(scheme), glass, 0)
    assert sorted([*split.train, *split.test]) == list(range(214))
    assert data.split_count(SplitScheme(scheme), data.describe(DatasetRef("glass", "glass"))) in {10, 20}
    if scheme == "standard":
        train, test = data.standard_split(214, 0)
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.test, test)
        assert len(train) == round(0.9 * 214)


def load(path: Path, content: str, target: str = "kind") -> Dataset:
    return data.load(ref_of(path, content, target))


def test_own_labels_are_numbered_in_their_order(tmp_path: Path) -> None:
    found = load(tmp_path / "a.csv", table(["dog", "cat", "emu"] * 4))
    assert found.classes == ("cat", "dog", "emu")
    assert found.y.tolist() == [1.0, 0.0, 2.0] * 4
    assert found.names == ("a", "b")
    assert found.task == "classification"
    numbers = load(tmp_path / "b.csv", table(["10", "9", "9.0", "-1"] * 3))
    assert numbers.classes == ("-1", "9", "10")
    assert numbers.y.tolist() == [2.0, 1.0, 1.0, 0.0] * 3
    mixed = load(tmp_path / "c.csv", table(["10", "-", "none"] * 4))
    assert mixed.classes == ("-", "10", "none")
    quoted = load(tmp_path / "d.csv", table(['"one, two"', "three"] * 6))
    assert quoted.classes == ("one, two", "three")
    assert data.describe(ref_of(tmp_path / "a.csv", table(["x", "y"] * 6))).task == "classification"


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["dog", "cat", ""] * 4, "a.csv:4: column kind: missing value"),
        (
            [str(100 + i * i) for i in range(12)],
            "too many classes; found '12 different values in 12 lines'.*task: regression",
        ),
    ],
)
def test_what_holds_no_classes_is_refused(tmp_path: Path, labels: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        load(tmp_path / "a.csv", table(labels))


def _card(**more: object) -> Card:
    facts = {"n": 2, "d": 3, "target": "t", "source": "", "licence": "", "citation": "", "task": "classification"}
    return Card.model_validate({"name": "a", "title": "a", **facts, **more})


def test_text_of_libsvm_may_leave_zeros_out(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("+1 1:0.5 3:2\n-1 2:1e-3\n", encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        X, y = class_labels.read_libsvm(file, _card(classes={"-1": "no", "+1": "yes"}))
    assert X.tolist() == [[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]]
    assert y.tolist() == [1.0, 0.0]


def test_lines_with_an_unknown_label_are_omitted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1,2,3,x\n1,2,3,?\n1,?,3,x\n4,5,6,x\n", encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        X, y = class_labels.read_table(file, _card(classes={"x": "x"}))
    assert X.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert y.tolist() == [0.0, 0.0]


def test_a_label_that_the_card_has_not_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1,2,3,x\n1,2,3,y\n", encoding="utf-8")
    with (
        path.open(encoding="utf-8") as file,
        pytest.raises(ValueError, match="y are not on the card, which has x"),
    ):
        class_labels.read_table(file, _card(classes={"x": "x"}))
