"""Figures and tables of active learning: scores by the number of added points, and the acquisitions of each method."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ep_bench import published
from ep_bench.experiments.pbp_2015.active_learning import paper_columns
from ep_bench.experiments.pbp_2015.active_learning.paired import PairedComparison, compare
from ep_bench.experiments.record import ExperimentResults, Row, uses
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Item, Picture, Table, item
from ep_bench.plotting.style import LOOKS, STYLE, finish
from ep_bench.types import Array

PANELS = 3  # per row
CLAIMED = ("boston", "energy", "power", "yacht")  # data sets with significantly lower errors of chosen points
ALL = ("PBP", "HMC", "EP", "LA")
ALPHA = 0.05  # level of the paired test
WIDTH = 5.0  # of the values of a panel, in median absolute differences from their median
AXES = {"rmse": "RMSE (original units)", "ll": "mean test log-likelihood\n(nats per data point)"}
RANDOM = "random"
STROKES = {"variance": "-", RANDOM: (0, (3, 1.5)), "mutual_information": (0, (6, 1.5, 1, 1.5))}
WORDS = {
    "variance": "Filled markers, solid lines: the point of largest variance is added",
    RANDOM: "open markers, dashed lines: a random point",
    "mutual_information": "half-filled markers, dash-dotted lines: the point of largest mutual information",
}


class Look(NamedTuple):
    """Colour and marker of a method, which its entries share, and the acquisition."""

    colour: str
    marker: str
    rule: str


def draw(results: ExperimentResults) -> list[Picture]:
    """Return one figure per score: mean and standard error by the number of added points, one panel per data set.

    Arrays: rmse, ll (D, M, R, A + 1); datasets (D,); labels, acquisitions (M,).
    """
    return [_figure(results, score) for score in AXES if np.isfinite(results.arrays[score]).any()]


def tables(results: ExperimentResults) -> list[Table]:
    """Return the final scores, the comparison of acquisitions, and failures."""
    pairs = list(_pairs(results.options.get("methods", ())))
    found = [_final(results.arrays), *([_comparison(results.arrays, pairs)] if pairs else [])]
    failures = [str(text) for text in results.arrays.get("failures", ())]
    if failures:
        found.append(Table(["Failed repetitions"], [[text] for text in failures], folded=f"{len(failures)} failures"))
    return found


def cells(results: ExperimentResults) -> list[Row]:
    """Return the scores of each repetition after the last addition; none if the sizes are not those of the paper."""
    if any(results.options.get(name, size) != size for name, size in paper_columns.SIZES.items()):
        return []
    arrays = results.arrays
    scores = {score: np.asarray(arrays[score])[..., -1] for score in AXES}  # (D, M, R)
    return [
        {
            "method": str(label), "dataset": str(name), "split": r,
            "status": "ok" if np.isfinite(scores["rmse"][i, j, r]) else "failed",
            **{score: float(values[i, j, r]) for score, values in scores.items()},
        }
        for i, name in enumerate(arrays["datasets"])
        for j, label in enumerate(arrays["labels"])
        for r in range(scores["rmse"].shape[2])
    ]  # fmt: skip


def columns(results: ExperimentResults) -> dict[str, str]:
    """Return the columns of table 2 with which entries are compared, by label."""
    return paper_columns.columns(results)


def _figure(results: ExperimentResults, score: str) -> Picture:
    arrays = results.arrays
    names, labels = ([str(one) for one in arrays[key]] for key in ("datasets", "labels"))
    looks = _looks(results)
    columns = min(PANELS, len(names))
    rows = math.ceil(len(names) / columns)
    cut: list[bool] = []
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.4 + 2.3 * max(columns, 2), 0.7 + 1.8 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
        for i, (name, ax) in enumerate(zip(names, axes, strict=False)):
            printed = _printed(results, name) if score == "rmse" else {}
            cut.append(_panel(ax, np.asarray(arrays[score][i]), looks, printed))
            ax.set_title(f"({chr(97 + i)}) {name}")
            if i + columns >= len(names):
                ax.set_xlabel("added points")
                ax.tick_params(labelbottom=True)
        for ax in axes[len(names) :]:
            ax.set_axis_off()
        figure.supylabel(AXES[score], fontsize=8.0)
        handles = [Line2D([], [], label=label, **_line(look)) for label, look in zip(labels, looks, strict=True)]
        figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4), frameon=False)
    return finish(figure, f"active-learning-{score}-{results.study}", _caption(results, score, cut=any(cut)))


def _panel(ax: Axes, scores: Array, looks: Sequence[Look], printed: Mapping[int, float]) -> bool:
    """Draw scores (M, R, A + 1) of a data set, and published means after the last addition, by method.

    Return whether entries are outside of the panel, where an arrow shows their last mean.
    """
    last = scores.shape[2] - 1
    complete = {j: values[np.isfinite(values).all(axis=1)] for j, values in enumerate(scores)}
    curves = {j: values.mean(axis=0) for j, values in complete.items() if len(values)}
    outside = _outside(curves)
    for j, mean in curves.items():
        if j in outside:
            continue
        error = complete[j].std(axis=0) / np.sqrt(len(complete[j]))
        ax.errorbar(np.arange(last + 1), mean, error, **_line(looks[j]), elinewidth=0.6)
        if j in printed:
            ax.plot(last + 0.6, printed[j], **_line(looks[j]) | {"markersize": 6.5})
    low, high = ax.get_ylim()
    margin = 0.15 * (high - low)  # for the arrows
    ax.set_ylim(low - margin * (-1 in outside.values()), high + margin * (1 in outside.values()))
    for place, (j, side) in enumerate(outside.items()):
        _arrow(ax, place, float(curves[j][-1]), looks[j], side)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.06)
    return bool(outside)


def _outside(curves: Mapping[int, Array]) -> dict[int, int]:
    """Return the entries whose whole curve is far from the median of all values: 1 above, -1 below.

    The limits are ``WIDTH`` times the median absolute difference from the median. Otherwise such curves would compress
    the others.
    """
    if len(curves) < 3:
        return {}
    values = np.concatenate([*curves.values()])
    centre = float(np.median(values))
    width = WIDTH * float(np.median(np.abs(values - centre)))
    above = {j: 1 for j, curve in curves.items() if curve.min() > centre + width}
    return above | {j: -1 for j, curve in curves.items() if curve.max() < centre - width}


def _arrow(ax: Axes, place: int, value: float, look: Look, side: int) -> None:
    """Draw an arrow at the edge of a panel, with the last mean of an entry that is outside of it."""
    marker, y = ("^", 0.94) if side > 0 else ("v", 0.06)
    x = 0.97 - 0.3 * place
    face = "white" if look.rule == RANDOM else look.colour
    transform = ax.transAxes
    ax.plot(
        x, y, marker, color=look.colour, markerfacecolor=face, markersize=4, mew=0.8, transform=transform, clip_on=False
    )
    ax.text(x - 0.03, y, with_minus(f"{value:.3g}"), fontsize=6.0, ha="right", va="center", transform=transform)


def _line(look: Look) -> dict[str, Any]:
    half = "left" if look.rule == "mutual_information" else "full"
    face = "white" if look.rule == RANDOM else look.colour
    return {
        "color": look.colour, "marker": look.marker, "fillstyle": half, "markerfacecolor": face,
        "markerfacecoloralt": "white", "linestyle": STROKES[look.rule], "markersize": 3.2, "mew": 0.8,
    }  # fmt: skip


def _looks(results: ExperimentResults) -> list[Look]:
    """Return the looks of all entries; entries with the same method and options have one colour and marker."""
    entries = results.options.get("methods") or [{"label": str(label)} for label in results.arrays["labels"]]
    kinds = [json.dumps(_kind(entry), sort_keys=True) for entry in entries]
    first: dict[str, str] = {}  # the label of the first entry of each kind
    for kind, label in zip(kinds, results.arrays["labels"], strict=True):
        first.setdefault(kind, str(label))
    styles = _distinct(method_styles(list(first.values()), uses(results.options)))
    looks = [styles[first[kind]] for kind in kinds]
    rules = results.arrays["acquisitions"]
    return [Look(look.colour, look.marker, str(rule)) for look, rule in zip(looks, rules, strict=True)]


def _distinct(styles: Mapping[str, MethodStyle]) -> dict[str, MethodStyle]:
    """Return styles with different colours as far as there are enough: lines of the same colour would look alike.

    The first method of each colour keeps its own; markers do not change.
    """
    found: dict[str, MethodStyle] = {}
    free = [colour for colour, _ in LOOKS if colour not in {style.colour for style in styles.values()}]
    for label, style in styles.items():
        taken = any(style.colour == other.colour for other in found.values())
        found[label] = style._replace(colour=free.pop(0)) if taken and free else style
    return found


def _kind(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return method and options of an entry."""
    return {key: value for key, value in entry.items() if key not in {"label", "acquisition"}}


def _pairs(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield the places of two entries that differ in the acquisition only: mutual information, variance, random."""
    order = ("mutual_information", "variance", RANDOM)
    places = [(order.index(entry.get("acquisition", "variance")), i) for i, entry in enumerate(entries)]
    for i, j in itertools.permutations(range(len(entries)), 2):
        rules = [entries[k].get("acquisition", "variance") for k in (i, j)]
        if places[i] < places[j] and rules[0] != rules[1] and _kind(entries[i]) == _kind(entries[j]):
            yield i, j


def _printed(results: ExperimentResults, dataset: str) -> dict[int, float]:
    """Return the means of table 2 by the place of the method."""
    means = paper_columns.means(results, dataset)
    return {j: means[str(label)] for j, label in enumerate(results.arrays["labels"]) if str(label) in means}


def _final(arrays: Mapping[str, Any]) -> Table:
    """Return the table of the scores after the last addition."""
    head = ["data set", "method", "acquisition", "RMSE", "log-likelihood", "repetitions", "CPU seconds per fit"]
    rows = []
    for i, name in enumerate(arrays["datasets"]):
        for j, label in enumerate(arrays["labels"]):
            complete = np.isfinite(arrays["rmse"][i, j]).all(axis=1)
            entries = [_mean_and_error(np.asarray(arrays[score])[i, j, complete, -1]) for score in AXES]
            times, count = np.asarray(arrays["seconds"])[i, j], int(complete.sum())
            seconds = float(np.median(times[complete] if count else times))
            rule = str(arrays["acquisitions"][j]).replace("_", " ")
            rows.append(
                [str(name), str(label), rule, *entries, item(str(count), count), item(f"{seconds:.3g}", seconds)]
            )
    caption = (
        "Test scores after the last addition: mean ± standard error (ddof 0) over the repetitions in which all fits "
        "succeeded. The time, a median over repetitions, includes predictions for the pool."
    )
    return Table(head, rows, caption)


def _mean_and_error(values: Array) -> Item:
    """Return mean ± standard error of the repetitions (R,); a dash if there are none or one has no score."""
    if not len(values) or np.isnan(values).any():
        return item("–")
    mean, error = float(values.mean()), float(values.std() / np.sqrt(len(values)))
    return item(with_minus(published.measured(mean, error)), mean)


def _comparison(arrays: Mapping[str, Any], pairs: Sequence[tuple[int, int]]) -> Table:
    """Return the table of final RMSE of two acquisitions of one method, paired over the repetitions."""
    labels = [str(label) for label in arrays["labels"]]
    head = ["data set", "first", "second", "RMSE first", "RMSE second", "difference", "p", "repetitions", "differing"]
    rows = []
    for (d, name), (i, j) in itertools.product(enumerate(arrays["datasets"]), pairs):
        final = np.asarray(arrays["rmse"])[d, [i, j], :, -1]
        found = compare(*final)
        rows.append([str(name), labels[i], labels[j], *_paired(final, found)])
    caption = (
        "RMSE after the last addition with two acquisitions of one method, on the same divisions of the data: means, "
        "mean difference ± standard error, and the two-sided p-value of Wilcoxon's signed-rank test of the paired "
        "differences, without correction for the number of tests. Repetitions are random divisions of one data set, "
        "so they are not fully independent. The test omits repetitions with equal RMSE; the last column has the number "
        "of the others."
    )
    return Table(head, rows, caption)


def _paired(final: Array, found: PairedComparison) -> list[Item]:
    """Return the entries of a row for the final scores (2, R) of both acquisitions."""
    counts = [item(str(count), count) for count in (found.repetitions, found.differing)]
    if found.repetitions < 2:
        return [item("–") for _ in range(4)] + counts
    first, second = final[:, np.isfinite(final).all(axis=0)].mean(axis=1)
    return [
        item(f"{first:.4g}", float(first)),
        item(f"{second:.4g}", float(second)),
        item(with_minus(f"{found.mean:+.3g} ± {found.stderr:.2g}") if found.differing else "0", found.mean),
        item("< 0.0001" if found.p < 1e-4 else f"{found.p:.4f}", found.p),
        *counts,
    ]


def _caption(results: ExperimentResults, score: str, *, cut: bool) -> str:
    options, arrays = results.options, results.arrays
    count = arrays[score].shape[2]
    text = (
        f"Active learning: {AXES[score].replace(chr(10), ' ')} on {options.get('test', 100)} test points by the number "
        f"of points added to {options.get('train', 20)} training points; means and standard errors over {count} "
        "repetitions. "
    )
    kinds = {str(rule) for rule in arrays["acquisitions"]}
    legend = "; ".join(words for kind, words in WORDS.items() if kind in kinds)
    text += f"{legend[0].upper()}{legend[1:]}."
    if score == "rmse" and any(_printed(results, str(name)) for name in arrays["datasets"]):
        text += " Larger markers: means of table 2 of Hernández-Lobato and Adams (2015), after nine additions."
    if cut:
        text += " An arrow with a number: the last mean of an entry outside of the panel."
    return text


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return how chosen points compare with random ones by method, and on how many sets PBP is best and LA worst."""
    arrays = results.arrays
    if not arrays:
        return {}
    labels, sets = ([str(one) for one in arrays[key]] for key in ("labels", "datasets"))
    final = {(m, d): np.asarray(arrays["rmse"])[i, j, :, -1] for j, m in enumerate(labels) for i, d in enumerate(sets)}
    means = {place: float(np.nanmean(values)) for place, values in final.items()}
    found: dict[str, float] = {}
    gains: dict[tuple[str, str], float] = {}
    for method in (label.removesuffix("-A") for label in labels if label.endswith("-A")):
        pairs = {d: compare(final[f"{method}-A", d], final[f"{method}-R", d]) for d in sets}
        better = {d for d, pair in pairs.items() if pair.mean < 0.0 and pair.p < ALPHA}
        found[f"significant gains of {method} on the four sets"] = len(better & set(CLAIMED))
        gains |= {(method, d): -pair.mean / means[f"{method}-R", d] for d, pair in pairs.items()}
    for (method, name), other in itertools.product(gains, ("PBP", "HMC")):
        if (other, name) in gains:
            found[f"gain of {method} relative to {other}, {name}"] = gains[method, name] / gains[other, name]
    return found | _ranks(means, sets)


def _ranks(means: Mapping[tuple[str, str], float], sets: Sequence[str]) -> dict[str, float]:
    """Return the number of data sets on which PBP is better than EP and LA, and LA the worst of all."""
    found: dict[str, float] = {}
    for kind in "AR":
        errors = [{m: means.get((f"{m}-{kind}", name), math.nan) for m in ALL} for name in sets]
        best = sum(one["PBP"] < min(one["EP"], one["LA"]) for one in errors)
        found[f"sets on which PBP-{kind} is better than EP and LA"] = best
        found[f"sets on which LA-{kind} is the worst"] = sum(max(one.values()) == one["LA"] for one in errors)
    return found
