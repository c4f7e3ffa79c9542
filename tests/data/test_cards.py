"""Cards: complete and valid; a wrong name gets a suggestion."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data.leaks import find_leaks
from ep_bench.data.splits import stored_mask
from ep_bench.data.targets import few_values
from ep_bench.errors import UserError
from ep_bench.resources import shipped_folder

ROOT = Path(__file__).parents[2]

UCI = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
EMBEDDED = ("diabetes", "friedman1", "friedman2", "friedman3", "friedman-outliers", "cubic", "step", "additive")


def test_all_data_sets_have_a_card() -> None:
    assert {*UCI, *EMBEDDED, "year", "kin40k", "communities", "cep"} <= set(data.names())


@pytest.mark.parametrize("name", data.names())
def test_a_card_is_complete(name: str) -> None:
    card = data.card(name)
    assert card.name == name
    assert len(card.input_names()) == card.d
    assert len(set(card.input_names())) == card.d
    assert card.licence
    assert card.citation
    assert card.embedded != bool(card.path)
    assert not (card.embedded and card.urls)
    assert all(url.startswith("https://") for url in card.urls)
    if name != "year":
        assert re.fullmatch("[0-9a-f]{64}", card.sha256 or "")
        assert card.embedded or data.location(card) != "not fetched"
    assert card.path is None or card.urls or data.location(card) == "shipped"


def test_sizes_and_splits_are_those_of_the_papers() -> None:
    sizes = {name: (data.card(name).n, data.card(name).d) for name in ("boston", "protein", "year", "communities")}
    assert sizes == {
        "boston": (506, 13),
        "protein": (45730, 9),
        "year": (515345, 90),
        "communities": (1993, 102),
    }
    assert [data.card(name).n_splits for name in ("yacht", "protein", "year", "cubic")] == [20, 5, 1, 20]
    assert data.card("year").sha256 is None


@pytest.mark.parametrize("name", [name for name in data.names() if name != "year"])
def test_cards_name_few_target_values(name: str) -> None:
    dataset = data.load_dataset(name)
    expected = few_values(dataset.y) if dataset.task == "regression" else None
    assert data.card(name).target_values == expected


@pytest.mark.parametrize("name", [name for name in data.names() if data.card(name).path])
def test_leaks_are_on_the_card_and_stored_splits_are_intact(name: str) -> None:
    card = data.card(name)
    if card.task == "regression" and name not in ("year", "cep"):
        dataset = data.load_dataset(name)
        assert bool(find_leaks(dataset.X, dataset.y, dataset.names)) == bool(card.unranked)
    for scheme, sha256 in card.masks.items():
        mask = stored_mask(name, scheme)
        text = b"".join(bytes(line + ord("0")) + b"\n" for line in mask)
        assert hashlib.sha256(text).hexdigest() == sha256
        assert mask.shape == ((1 if scheme == "folds" else card.d), card.n)
        assert mask.max() == (9 if scheme == "folds" else 1)


def test_ten_data_points_per_value_are_few_values() -> None:
    assert few_values(np.repeat(np.arange(5.0), 10)) == 5
    assert few_values(np.append(np.repeat(np.arange(20.0), 9), 20.0)) is None


def test_a_frequent_value_counts_like_few_values() -> None:
    assert few_values(np.append(np.zeros(3), np.arange(1.0, 28.0))) == 28
    assert few_values(np.append(np.zeros(3), np.arange(1.0, 29.0))) is None


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean 'boston'"):
        data.card("bostn")


def test_all_data_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in (ROOT / "datasets").rglob("*") if path.is_file()) <= 11_000_000


def test_no_folder_is_without_a_card() -> None:
    folders = [path.name for path in shipped_folder("datasets").iterdir() if path.is_dir() and path.name[0] not in "._"]
    assert sorted(folders) == list(data.names())


@pytest.mark.parametrize("name", ["", "../datasets/boston", "boston.yaml", "Boston"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="there is no data set"):
        data.card(name)
