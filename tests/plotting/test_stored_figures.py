"""Figures of an earlier report that are taken over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from ep_bench.plotting import stored_figures
from ep_bench.plotting.page import Picture
from ep_bench.plotting.stored_figures import FILE, StoredFigures, drawn_if_changed, input_hash, taking_over
from ep_bench.plotting.style import finish

drawn: list[str] = []


@dataclass(frozen=True)
class Numbers:
    values: np.ndarray
    names: dict[str, float]


@drawn_if_changed
def figure(numbers: Numbers) -> Picture:
    drawn.append("figure")
    shown = Figure(figsize=(2, 1))
    shown.subplots().plot(numbers.values)
    return finish(shown, "one", f"Caption of {len(numbers.values)} values.")


@drawn_if_changed
def several(numbers: Numbers) -> list[Picture]:
    drawn.append("several")
    return [finish(Figure(figsize=(1, 1)), name, name) for name in numbers.names]


def report(folder, numbers):
    """Draw as a report does; return the pictures and the functions that drew."""
    drawn.clear()
    stored = StoredFigures(folder)
    with taking_over(stored):
        pictures = [figure(numbers), *several(numbers)]
    folder.mkdir(exist_ok=True)
    for picture in pictures:
        picture.write(folder)
    (folder / FILE).write_text(stored.text([f"figures/{one.name}.svg" for one in pictures]), encoding="utf-8")
    return pictures, list(drawn)


def test_equal_numbers_are_not_drawn_again(tmp_path):
    numbers = Numbers(np.arange(3.0), {"a": 1.0, "b": 2.0})
    first, calls = report(tmp_path, numbers)
    assert calls == ["figure", "several"]
    again, calls = report(tmp_path, Numbers(np.arange(3.0), {"a": 1.0, "b": 2.0}))
    assert calls == []
    assert [(one.name, one.caption, one.svg, one.alt, one.size) for one in again] == [
        (one.name, one.caption, one.svg, one.alt, one.size) for one in first
    ]
    with pytest.raises(ValueError, match="taken over"):
        _ = again[0].figure


def test_other_numbers_code_or_files_are_drawn(tmp_path, monkeypatch):
    numbers = Numbers(np.arange(3.0), {"a": 1.0})
    report(tmp_path, numbers)
    assert report(tmp_path, Numbers(np.array([0.0, 1.0, 2.5]), {"a": 1.0}))[1] == ["figure", "several"]
    (tmp_path / "one.svg").write_text("<svg/>", encoding="utf-8")
    assert report(tmp_path, Numbers(np.array([0.0, 1.0, 2.5]), {"a": 1.0}))[1] == ["figure"]
    (tmp_path / "a.svg").unlink()
    assert report(tmp_path, Numbers(np.array([0.0, 1.0, 2.5]), {"a": 1.0}))[1] == ["several"]
    monkeypatch.setattr(stored_figures, "code_hash", lambda: "other")
    assert report(tmp_path, Numbers(np.array([0.0, 1.0, 2.5]), {"a": 1.0}))[1] == ["figure", "several"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": 1}', "null"])
def test_a_damaged_list_of_figures_is_ignored(tmp_path, text):
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    assert report(tmp_path, Numbers(np.arange(3.0), {"a": 1.0}))[1] == ["figure", "several"]


def test_a_hash_sees_every_difference():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    values = [
        1, 1.0, "1", None, True, (1,), [1], {"a": 1}, {"b": 1}, {1}, np.array([1.0]), np.array([1]), np.array([[1.0]]),
        np.array(["1"]), frame, frame.rename(columns={"a": "b"}), frame.rename(index={"x": "z"}), frame["a"],
        Numbers(np.zeros(1), {}), Numbers(np.zeros(2), {}), ["a", "b"], ["ab"], [["a"], "b"],
    ]  # fmt: skip
    assert len({input_hash(value) for value in values}) == len(values)
    assert input_hash({"a": {3, 1, 2}}) == input_hash({"a": {2, 3, 1}})
    with pytest.raises(TypeError, match="no hash of object"):
        input_hash(object())
