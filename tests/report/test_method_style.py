"""Colours and markers of methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ep_bench.plotting.method_style import method_styles


def test_many_methods_have_different_styles() -> None:
    styles = method_styles([f"m{i}" for i in range(24)])
    assert len({(style.colour, style.marker) for style in styles.values()}) == 24
    assert len({style.colour for style in list(styles.values())[:6]}) == 6


def test_a_method_has_the_same_colour_in_all_figures(tmp_path: Path, make_study: Any, sections_of: Any) -> None:
    """The first method has no classification scores: the lines of all others differ between the figures."""

    def change(row: dict[str, Any]) -> dict[str, Any] | None:
        classes = {"error_rate": 0.1, "rmse": float("nan"), "ll": -0.3} if row["dataset"] == "wine" else {}
        return None if classes and row["method"] == "line" else row | classes

    methods = ("line", "pbp", "ridge", "gp")
    sections = sections_of(make_study(tmp_path / "s", methods, change=change))
    styles = method_styles(methods)
    for part in ("score-rmse", "score-error_rate"):
        (picture,) = sections[part].pictures
        ax = picture.figure.axes[0]
        names = [text.get_text() for text in ax.texts if text.get_text() in methods]
        points = {float(line.get_ydata()[0]): line for line in ax.lines if re.fullmatch("[os^Dv]", line.get_marker())}
        assert len(points) == len(names)
        for place, name in enumerate(names):
            line = points[float(place)]
            assert (line.get_color(), line.get_marker()) == (styles[name].colour, styles[name].marker)
