"""Ranks over data sets: tests, critical-difference diagrams (Demsar 2006, figure 1).

There is one diagram by Nemenyi's test and one by Wilcoxon's signed-rank tests with Holm's correction, whose bars follow
the rule of aeon (``significance.cliques``). Diagrams are drawn with scikit-posthocs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from ep_bench.convergence import mark_note
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.rank_intervals import RankInterval, rank_intervals
from ep_bench.plotting.style import LETTER, STYLE, finish, no_window
from ep_bench.report import significance, summary
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import FIGURES
from ep_bench.report.significance import ALPHA, FEWEST_BLOCKS
from ep_bench.report.summary import DATASETS, SPLITS, RankedScore, Ranking

ORDER = 40
LINE = 0.19  # inches per line of labels or crossbars
TITLE_LETTER = 0.071  # inches per letter of a title
HEAD = 0.8  # inches above the axis of ranks: title, critical difference, tick labels
MOST = 15  # methods of a critical-difference diagram; bars of more would join nearly everything
NEMENYI, WILCOXON = "Nemenyi", "Wilcoxon-Holm"
WITHHELD = {NEMENYI: summary.no_nemenyi, WILCOXON: summary.no_wilcoxon}


class Diagram(NamedTuple):
    """A ranking and the name of the test whose bars are drawn."""

    ranking: Ranking
    test: str


def possible(rankings: Sequence[Ranking]) -> list[Diagram]:
    """Return the diagrams of some rankings that are not withheld."""
    return [Diagram(one, test) for one in rankings for test, reason in WITHHELD.items() if not reason(one)]


def withheld_lines(rankings: Sequence[Ranking]) -> Iterator[str]:
    """Yield one line per withheld diagram, with the reason; a reason that both tests have is given once."""
    for one in rankings:
        reasons: dict[str, list[str]] = {}
        for test, reason in WITHHELD.items():
            if why := reason(one):
                reasons.setdefault(why, []).append(test)
        for why, tests in reasons.items():
            words = "No tests of pairs" if len(tests) > 1 else f"No {tests[0]} tests"
            yield f"{words} and no critical-difference diagram over {one.blocks}: {why}."


def critical_difference(diagrams: Sequence[Diagram], styles: Mapping[str, MethodStyle], name: str = "") -> Picture:
    """Return several diagrams below one another, lines in the colours of the methods."""
    no_window()
    first = diagrams[0].ranking
    with mpl.rc_context(STYLE):
        figure = Figure()
        drawn = [(diagram, *_draw(figure, diagram, styles)) for diagram in diagrams]
        side = 0.2 + LETTER * max(len(str(name)) + 7 for diagram in diagrams for name in diagram.ranking.ranks)
        titles = max(len(_title(diagram)) for diagram in diagrams) * TITLE_LETTER
        width = max(2 * side + max(3.6, 0.3 * first.test.k), side + titles + 0.1)
        height = sum(HEAD + LINE * (lines + 1) for _, _, lines in drawn)
        figure.set_size_inches(width, height)
        top = height
        for diagram, ax, lines in drawn:
            body = LINE * (lines + 0.5)
            ax.set_position((side / width, (top - HEAD - body) / height, 1 - 2 * side / width, body / height))
            _head(ax, diagram, body)
            top -= HEAD + LINE * (lines + 1)
    return finish(figure, name or f"critical-difference-{first.score.name}", _caption(diagrams))


def joined(diagram: Diagram) -> pd.DataFrame:
    """Return whether bars join two methods (k, k), 1 or 0, in the order of average ranks; names have their marks."""
    names = [str(name) for name in diagram.ranking.average.index]
    p = diagram.ranking.nemenyi if diagram.test == NEMENYI else diagram.ranking.wilcoxon
    if p is None:
        raise ValueError("a ranking of one block has no test")
    table = np.eye(len(names))
    for first, last in significance.cliques(p.loc[names, names].to_numpy(dtype=float)):
        table[first : last + 1, first : last + 1] = 1.0
    labels = [name + diagram.ranking.marks.get(name, "") for name in names]
    return pd.DataFrame(table, index=labels, columns=labels)


def _draw(figure: Figure, diagram: Diagram, styles: Mapping[str, MethodStyle]) -> tuple[Axes, float]:
    """Draw one diagram; return its axes and the number of lines below the axis of ranks."""
    from scikit_posthocs import critical_difference_diagram

    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ranking, bars = diagram.ranking, joined(diagram)
    average = ranking.average
    colours = [styles[str(name)].colour for name in average.index]
    average.index = bars.index
    right = max(float(ranking.test.k), 1.0 + ranking.cd) if diagram.test == NEMENYI else float(ranking.test.k)
    margin = 0.02 * (right - 1.0)
    artists = critical_difference_diagram(
        average,
        bars,
        alpha=ALPHA,
        ax=ax,
        label_fmt_left="{label}  {rank:.2f}",
        label_fmt_right="{rank:.2f}  {label}",
        text_h_margin=margin,
        color_palette=dict(zip(average.index, colours, strict=True)),
        label_props={"size": 8},
        elbow_props={"linewidth": 0.9},
        marker_props={"s": 11, "clip_on": False},
        crossbar_props={"linewidth": 2.4, "solid_capstyle": "butt"},
    )
    lines = -min(label.get_position()[1] for label in artists["labels"])
    ax.set_ylim(-lines - 0.5, 0.0)
    ax.set_xlim(1.0 - margin, right + margin)
    ax.xaxis.set_major_locator(FixedLocator(range(1, ranking.test.k + 1, 1 + ranking.test.k // 12)))
    for label in artists["labels"]:
        label.set_color("black")
        label.set_x(label.get_position()[0] + (-0.25 if label.get_ha() == "right" else 0.25) * margin)
    for (bar,) in artists["crossbars"]:  # its points are in the order of a set, which differs between processes
        ends = [min(bar.get_xdata()), max(bar.get_xdata())]
        bar.set_data(ends, bar.get_ydata()[:2])
    ax.spines["top"].set_visible(True)
    ax.spines["top"].set_bounds(1.0, ranking.test.k)
    ax.tick_params(labelsize=7, length=3)
    return ax, float(lines)


def _head(ax: Axes, diagram: Diagram, body: float) -> None:
    """Write the title and draw Nemenyi's critical difference to scale above the axis of ranks; body is in inches."""
    ax.text(0.0, 1.0 + 0.58 / body, _title(diagram), transform=ax.transAxes, fontsize=8.5, ha="left", va="center")
    if diagram.test != NEMENYI:
        return
    end = 1.0 + diagram.ranking.cd
    transform = ax.get_xaxis_transform()
    y = 1.0 + 0.34 / body
    ax.plot([1.0, end], [y, y], transform=transform, color="black", linewidth=1.6, clip_on=False)
    ax.annotate(
        f"CD = {diagram.ranking.cd:.2f}", (end, y), xycoords=transform, xytext=(5, 0), textcoords="offset points",
        va="center", fontsize=8, annotation_clip=False,
    )  # fmt: skip


def _title(diagram: Diagram) -> str:
    ranking = diagram.ranking
    title = f"{ranking.score.title}, {diagram.test}: N = {ranking.count}"
    return title if ranking.independent else f"{title} (not independent)"


TESTS = {
    NEMENYI: "Nemenyi's two-tailed test, whose critical difference is CD",
    WILCOXON: "two-sided Wilcoxon signed-rank tests with Holm's correction for all pairs; a bar starts at a method and "
    "ends before the first worse method that differs from it",
}


def _caption(diagrams: Sequence[Diagram]) -> str:
    scores = " and ".join(dict.fromkeys(diagram.ranking.score.inline for diagram in diagrams))
    tests = "; or ".join(TESTS[test] for test in dict.fromkeys(diagram.test for diagram in diagrams))
    head = f"Average ranks by {scores}; 1 is the best (left). Bars join methods that do not differ at level {ALPHA} in"
    parts = [f"{head} {tests}."]
    for ranking in {(one.ranking.blocks, one.ranking.n): one.ranking for one in diagrams}.values():
        parts += _blocks(ranking)
    marks = {mark for diagram in diagrams for mark in diagram.ranking.marks.values()}
    return " ".join(parts) + mark_note(marks)


def _blocks(ranking: Ranking) -> Iterator[str]:
    """Yield sentences on the blocks of a ranking."""
    if ranking.blocks == SPLITS:
        yield (
            f"N = {ranking.count}, as in Bui et al. (2016): splits of one data set have most data points in "
            "common, so these blocks are not independent, and the tests reject too often."
        )
    else:
        yield f"N = {ranking.count}, as in Demsar (2006): each block counts once."
    if ranking.incomplete:
        yield f"Omitted: {ranking.counted(ranking.incomplete)} without a score of every method."


LEAD = (
    "The ranked methods and data sets are those of the leaderboard: the largest complete subset. A block is one data "
    "set, with its mean score, or one data set and split. The tests over blocks assume that blocks are independent."
)
NONE = "No ranks by {scores}: no two methods are complete on a common data set."


def sections(report: ReportContext) -> list[Section]:
    """Return the section of ranks, with one part per score. The leaderboard has the average ranks."""
    scores = [one for one in report.scores if one.score.better]
    parts = [_part(one, report) for one in scores if one.rankings]
    unranked = [one.score.inline for one in scores if not one.rankings and len(one.table.methods) > 1]
    lines = [NONE.format(scores=" and ".join(unranked))] if unranked else []
    if not parts:
        return [Section("ranks", "Ranks over data sets", lines)] if lines else []
    return [Section("ranks", "Ranks over data sets", [*lines, LEAD], parts=parts)]


def _part(one: RankedScore, report: ReportContext) -> Section:
    pictures = [figure(one, report)] if one.score.source in FIGURES and possible(one.rankings) else []
    return Section(f"ranks-{one.score.name}", one.score.title, _lines(one.rankings), pictures)


def figure(one: RankedScore, report: ReportContext) -> Picture:
    """Return the critical-difference diagrams of a score, or the intervals of ranks if there are many methods."""
    diagrams = possible(one.rankings)
    if one.rankings[0].test.k <= MOST:
        return critical_difference(diagrams, report.marked_styles)
    ranking = next((found.ranking for found in diagrams if found.test == NEMENYI), one.rankings[0])
    board = next(board for board in report.leaderboards if board.score == one.score)
    ranked = [
        RankInterval(row.method, row.rank, row.low, row.high, report.marked_styles[row.method]) for row in board.ranked
    ]
    is_tested = ranking.blocks == DATASETS
    title = f"{one.score.title}: {len(board.datasets)} data sets"
    caption = (
        f"Average ranks by {one.score.inline} over {', '.join(board.datasets)}; lines: central 95 % of the ranks of "
        "resampled data sets and splits."
    )
    if is_tested:
        caption += f" Band: less than Nemenyi's critical difference of {ranking.cd:.1f} from the best."
    name = f"ranks-{one.score.name}"
    return rank_intervals(ranked, ranking.cd if is_tested else math.nan, title, name, caption + report.hollow_note)


def _lines(rankings: Sequence[Ranking]) -> list[str]:
    """Return the tests, the methods that are not ranked, and the diagrams that are withheld."""
    rankings = [one for one in rankings if one.blocks != DATASETS or len(one.datasets) > 1] or rankings
    lines = [friedman_line(ranking) for ranking in rankings]
    if rankings[0].left_out:
        names = ", ".join(rankings[0].left_out)
        lines.append(f"Not ranked because they are not complete on all of these data sets: {names}.")
    return [*lines, *withheld_lines(rankings)]


def friedman_line(ranking: Ranking) -> str:
    """Return Friedman's test, and the critical difference unless it is withheld."""
    test, blocks = ranking.test, ranking.blocks
    head = f"N = {ranking.count} ({', '.join(ranking.datasets)}), {test.k} methods"
    if ranking.incomplete:
        head += f" ({ranking.counted(ranking.incomplete)} without a score of every method omitted)"
    if ranking.repeated:
        return f"{head}: no test, because {ranking.repeated} contain the same data points."
    if math.isnan(test.chi2) or ranking.n < FEWEST_BLOCKS:
        return f"{head}: too few {blocks} for a test."
    degrees = "1 degree" if test.k == 2 else f"{test.k - 1} degrees"
    tied = test.chi2_ties > test.chi2 * (1 + 1e-9)
    ties = f" (corrected for ties {test.chi2_ties:.3f}, {_p_text(test.p_ties)})" if tied else ""
    text = f"{head}: Friedman χ² = {test.chi2:.3f} with {degrees} of freedom, {_p_text(test.p)}{ties}"
    if not summary.no_nemenyi(ranking):
        text += f"; Nemenyi q = {ranking.q:.3f}, critical difference {ranking.cd:.3f} at level {significance.ALPHA}"
    text += "."
    if not ranking.independent:
        text += " Splits of one data set have common data points: blocks are not independent, and p-values too small."
    return text


def _p_text(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"
