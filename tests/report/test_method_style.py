"""Colours and markers of methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ep_bench.methods import REGISTRY
from ep_bench.plotting.method_style import HOMES, method_styles


def test_many_methods_have_different_styles() -> None:
    styles = method_styles([f"m{i}" for i in range(24)])
    assert len({(style.colour, style.marker) for style in styles.values()}) == 24
    assert len({style.colour for style in list(styles.values())[:6]}) == 6


def test_the_first_entry_of_a_method_has_the_same_look_in_every_report() -> None:
    looks = [
        method_styles(labels, uses)["PBP-1"]
        for labels, uses in (
            (["PBP-1"], {"PBP-1": "pbp"}),
            (["other", "HMC", "PBP-1", "PBP-2"], {"HMC": "hmc", "PBP-1": "pbp", "PBP-2": "pbp"}),
        )
    ]
    assert looks[0] == looks[1]


def test_homes_differ_and_are_names_of_methods() -> None:
    assert len(set(HOMES.values())) == len(HOMES)
    assert HOMES.keys() <= set(REGISTRY)


def test_a_method_has_the_same_colour_in_all_figures(tmp_path: Path, make_study: Any, sections_of: Any) -> None:
    """The first method has no classification scores: the lines of all others differ between the figures."""

    def change(row: dict[str, Any]) -> dict[str, Any] | None:
        classes = {"error_rate": 0.1, "rmse": float("nan"), "ll": -0.3} if row["dataset"] == "wine" else {}
        return None if classes and row["method"] == "line" else row | classes

    methods = ("line", "pbp", "ridge", "gp")
    sections = sections_of(make_study(tmp_path / "s", methods, change=change))
    styles = method_styles(methods, {method: method for method in methods})
    for part in ("score-rmse", "score-error_rate"):
        (picture,) = sections[part].pictures
        ax = picture.figure.axes[0]
        names = [text.get_text() for text in ax.texts if text.get_text() in methods]
        points = {float(line.get_ydata()[0]): line for line in ax.lines if re.fullmatch("[os^Dv]", line.get_marker())}
        assert len(points) == len(names)
        for place, name in enumerate(names):
            line = points[float(place)]
            assert (line.get_color(), line.get_marker()) == (styles[name].colour, styles[name].marker)
