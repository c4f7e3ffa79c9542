"""Parts of figures: ink that follows the colour scheme, panels of methods, intervals of ranks."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from ep_bench.plotting.axes import canvas, fences, intervals, line_legend, small_multiples
from ep_bench.plotting.method_style import method_styles
from ep_bench.plotting.rank_intervals import RankInterval, rank_intervals
from ep_bench.plotting.style import STYLE, finish

USES = {
    "Ensemble": "ensemble", "PBP": "pbp", "HMC": "hmc", "VI": "vi", "GP": "gp",
    "Constant": "ep_bench.baselines:ConstantRegressor",
}  # fmt: skip
STYLES = method_styles(list(USES), USES)


def test_black_and_greys_follow_the_colour_scheme_and_colours_do_not() -> None:
    figure = Figure()
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1], color="0.8")
    ax.plot([0, 1], [1, 0], color="#0072B2")
    ax.plot([0, 1], [1, 1], color="0.6", alpha=0.5)
    svg = finish(figure, "f", "").svg
    assert "stroke: currentColor; stroke-opacity: 0.2; stroke-width" in svg  # of the grey and of its transparency
    assert "prefers-color-scheme:dark" in svg
    assert "stroke: currentColor; stroke-opacity: 0.2" in svg
    assert "#0072b2" in svg
    assert not any(grey in svg for grey in ("#ffffff", "#000000", "#cccccc"))


def test_controls_do_not_decide_on_the_range_of_a_panel() -> None:
    mean = np.array([1.0, 1.1, 1.2, 1.3, 1.15, -40.0])
    controls = np.array([style.is_control for style in STYLES.values()])
    low, high = fences(mean, np.full(6, 0.01), controls)
    assert -1.0 < low < 1.0
    assert 1.3 < high < 3.0
    assert fences(mean[:3], np.full(3, 0.01), controls[:3]) == (-np.inf, np.inf)


def test_a_control_outside_a_panel_is_marked_at_its_edge(no_overlap: Callable[[Figure], None]) -> None:
    mean = np.array([1.0, 1.1, 1.2, 1.3, 1.15, -40.0])
    with mpl.rc_context(STYLE):
        figure, (ax,) = canvas(1, list(USES), STYLES.values())
        assert intervals(ax, mean, mean - 0.01, mean + 0.01, np.arange(6), list(STYLES.values()))
    (mark,) = [line for line in ax.lines if line.get_marker() == "<"]
    assert mark.get_xdata()[0] == ax.get_xlim()[0] > 0.0
    assert "−40" in {text.get_text() for text in ax.texts}
    no_overlap(figure)


@pytest.mark.parametrize("panels", [1, 2, 7])
def test_legends_and_labels_of_small_multiples_do_not_overlap(
    panels: int, no_overlap: Callable[[Figure], None]
) -> None:
    with mpl.rc_context(STYLE):
        figure, axes = small_multiples(panels)
        for ax in axes:
            ax.set_title("a data set")
            for method, style in STYLES.items():
                ax.plot([0.0, 1.0], [0.0, 1.0], label=method, color=style.colour)
        line_legend(figure, axes, "epoch", "noise standard deviation")
    no_overlap(figure)


def test_ranks_are_sorted_with_the_best_on_top(no_overlap: Callable[[Figure], None]) -> None:
    ranked = [
        RankInterval(name, rank, rank - 0.5, rank + 0.5, style._replace(is_hollow=name == "HMC"))
        for rank, (name, style) in zip((3.0, 1.0, 2.0, 4.0, 5.0, 6.0), STYLES.items(), strict=True)
    ]
    picture = rank_intervals(ranked, 1.2, "RMSE: 9 data sets", "ranks-rmse", "")
    (ax,) = picture.figure.axes
    assert [text.get_text() for text in ax.texts][:3] == ["PBP", "HMC", "Ensemble"]
    assert "better" in ax.get_xlabel()
    (hollow,) = [line for line in ax.lines if line.get_markerfacecolor() == "none"]
    assert hollow.get_xydata().tolist() == [[2.0, 1.0]]
    no_overlap(picture.figure)
