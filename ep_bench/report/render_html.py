"""report.html: one file that contains its style, script, figures and cells, and needs no network.

The cells are compact JSON, from which the page's script fills the panel of one entry. Methods, data sets, options,
reasons and statuses are lists; entries refer to them by their indices. Numbers have six digits. Means, standard errors
and the p-values of pairs are computed here.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, PackageLoader

from ep_bench.convergence import judge
from ep_bench.plotting.method_style import FAMILIES, family_of
from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Item, Picture, Section
from ep_bench.report import summary
from ep_bench.report.context import ReportContext
from ep_bench.report.first_screen import READING, View
from ep_bench.report.merge import cpu_seconds
from ep_bench.report.sections import what_was_run
from ep_bench.report.sections.leaderboard import mean_text
from ep_bench.report.summary import ScoreTable
from ep_bench.results import curves

STATIC = ("elements", "static")  # scripts of every page, in this order
WITH_CELLS = ("charts", "cell", "view")  # after these, with cells
OPEN = 1  # sections at the top of the page; the others are folded
_UNQUOTED = ' "!$()*+,-./:;<=>?@[]^{|}~'  # neither a quote, nor a reference, nor a sign that ends or escapes an address

COLUMNS = ("rmse", "ll", "crps", "error_rate", "brier")
CALIBRATION = ("coverage50", "coverage90", "coverage95", "pit_error")
KEPT = ("method", "dataset", "split", "status", "reason", "seed", "seconds", "r_hat", "converged", "cell")
CONVERGENCE = ("unknown", "converged", "nearly", "not")
# Title and unit by name of the trace. Traces with other names are internal quantities of a method.
TRACES = {
    "objective": ("Objective", ""),  # each method has its own unit
    "noise_deviation": ("Noise standard deviation", "standardised units"),
    "prior_variance": ("Prior variance of the weights", "standardised units"),
    "log_z": ("Mean log normaliser of the updates", "nats, standardised units"),
    "undone": ("Rejected updates of weights", "fraction"),
    "log_joint": ("Log joint density", "nats"),
    "log_joint_a_row": ("Log joint density per data point", "nats"),
    "log_evidence": ("Log evidence", "nats, standardised units"),
    "well_determined": ("Well-determined weights", "number, gamma of MacKay"),
    "step_size": ("Step size of the weights", "standardised units"),
    "prior_deviation": ("Prior standard deviation of the weights", "standardised units"),
    "prediction": ("Prediction", "standardised units"),
    "nu": ("Degrees of freedom", "number"),
    "scale": ("Scale of the noise", "standardised units"),
    "acceptance": ("Acceptance", "fraction"),
}
_PLACES = {name: place for place, name in enumerate(TRACES)}
POINTS = 20  # of a trace


def page(
    title: str,
    sections: Sequence[Section],
    views: Sequence[View] = (),
    data: Mapping[str, Any] | None = None,
    source: str = "",
) -> str:
    """Return the page of a report.

    Parameters
    ----------
    views : views of the first section; without any, all sections are shown as they are
    data : content of ``CellData``, for the page's script
    source : studies, hash of the cells and version, which tables and figures show under the pointer
    """
    folder = resources.files("ep_bench.report") / "page"
    environment = Environment(loader=PackageLoader("ep_bench.report"), autoescape=True, trim_blocks=True)
    environment.filters |= {
        "base64": _base64,
        "uri": _uri,
        "packed": _packed,
        "sort_key": _sort_key,
        "minus": with_minus,
    }
    style = (folder / "report.css").read_text(encoding="utf-8")
    names = STATIC + WITH_CELLS if views else STATIC
    script = "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in names)
    template, macros = (environment.get_template(f"{name}.html.j2") for name in ("report", "macros"))
    reading = READING.splitlines()
    parts = [view.data() | {"html": str(macros.module.view(view, reading))} for view in views]  # type: ignore[attr-defined]
    cells = {**(data or {}), "views": parts} if views else None
    return template.render(
        title=title,
        source=source,
        sections=sections,
        folded={section.id: section.summary or _contents(section) for section in sections[OPEN:]},
        views=views,
        reading=reading,
        seconds=_slider(views),
        cells=json.dumps(cells, separators=(",", ":"), ensure_ascii=False, allow_nan=False) if cells else "",
        families=FAMILIES,
        style=style,
        script=f'"use strict";\n{script}',
    )


def _slider(views: Sequence[View]) -> list[str]:
    """Return the limits of CPU time that the page offers, in words: 1, 2, 5, ... seconds between the extremes."""
    known = [row.seconds for view in views for row in view.board.ranked if row.seconds > 0.0]
    if not known:
        return []
    powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
    limits = [float(f"{factor * 10.0**power:.3g}") for power in powers for factor in (1.0, 2.0, 5.0)]
    return [f"{limit:g}" for limit in limits if min(known) < limit < max(known)]


def _contents(section: Section) -> str:
    """Return the content of a section in one line: numbers of figures, tables or notes, and titles of its parts."""
    parts = list(section.with_parts())
    counts = [(sum(len(part.pictures) for part in parts), "figure"), (sum(len(part.tables) for part in parts), "table")]
    if not any(count for count, _ in counts):
        counts = [(sum(len(part.lines) for part in parts), "note")]
    words = " and ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count)
    titles = [part.title for part in section.parts]
    return words + (f": {'; '.join(titles)}" if 0 < len(titles) <= 6 else "")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _packed(text: str) -> str:
    """Return a text compressed by zlib, as base64; the page's script decompresses it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _sort_key(entry: Item) -> str | None:
    """Return the value to sort an entry by, numbers with six digits; None if it has none."""
    value = entry["value"]
    return f"{value:.6g}" if isinstance(value, float | int) else value


def _uri(picture: Picture) -> str:
    """Return the SVG of a figure as a data address for an attribute in single quotes."""
    return "data:image/svg+xml," + quote(picture.svg.strip(), safe=_UNQUOTED)


# The cells


class CellData:
    """Parts of the JSON of a report."""

    def __init__(self, report: ReportContext) -> None:
        self.report, self.merged = report, report.merged
        self.methods = {name: place for place, name in enumerate(self.merged.methods)}
        self.datasets = {name: place for place, name in enumerate(self.merged.datasets)}
        self.reasons, self.options = {"": 0}, {"": 0}  # texts with their places, in the order of their first use
        self.options_of = what_was_run.options_by_cell(self.merged)
        self.chosen = self.merged.curves.tuned
        self.searches = what_was_run.searches(self.merged)
        self.traces = page_traces(report)
        self.tables = [report.table_of(board.score) for board in report.leaderboards]

    def as_dict(self) -> dict[str, Any]:
        """Return the whole content."""
        columns = [name for name in COLUMNS if self.merged.rows[name].notna().any()]
        return {
            "methods": [self._method(name) for name in self.methods],
            "datasets": [{"name": name, "plan": self._planned(name)} for name in self.datasets],
            "scores": [_score(table) for table in self.tables],
            "entries": list(self._entries(columns)),
            "reasons": list(self.reasons),
            "options": list(self.options),
            "pairs": {table.score.name: dict(self._pairs(table)) for table in self.tables},
            "published": list(self._published()),
        }

    def _method(self, name: str) -> dict[str, Any]:
        style, uses = self.report.styles[name], str(self.report.entries.get(name, {}).get("use", ""))
        return {"name": name, "family": FAMILIES.index(family_of(uses)), "colour": style.colour, "uses": uses}

    def _planned(self, name: str) -> int:
        return max(count for (_, dataset), count in self.merged.planned.items() if dataset == name)

    def _entries(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the cells of each method on each data set; ``p`` is the number of planned splits."""
        rows = self.merged.rows.assign(seconds=cpu_seconds(self.merged.rows)).sort_values("split")
        groups: defaultdict[tuple[str, str], list[dict[Any, Any]]] = defaultdict(list)
        for row in rows.reindex(columns=[*KEPT, *columns, *CALIBRATION]).to_dict("records"):
            groups[row["method"], row["dataset"]].append(row)
        for (method, dataset), planned in self.merged.planned.items():
            entry: dict[str, Any] = {"m": self.methods[method], "d": self.datasets[dataset], "p": planned}
            if traces := self.traces.get((method, dataset)):
                entry["t"] = traces
            part = groups[method, dataset]
            yield entry | (self._cells(method, dataset, part, columns) if part else {"s": []})

    def _cells(self, method: str, dataset: str, rows: Sequence[Mapping[Any, Any]], columns: Sequence[str]) -> Any:
        """Return the splits of one entry: scores, seconds, seeds, convergence, reasons and options."""
        cells: dict[str, Any] = {"s": [int(row["split"]) for row in rows]}
        for name in (*columns, "seconds"):
            values = [short(row[name]) if row["status"] == "ok" else None for row in rows]
            if any(value is not None for value in values):
                cells[name] = values
        if any(row["seed"] == row["seed"] for row in rows):
            cells["seed"] = [int(row["seed"]) if row["seed"] == row["seed"] else None for row in rows]
        found = self.merged.convergence.get((method, dataset))
        if found is not None and found.judged:
            cells["c"] = found.counts
        states = [CONVERGENCE.index(judge(row)) for row in rows]
        if any(states):
            cells["v"] = states
        notes = [_note(row) for row in rows]
        if any(notes):
            cells["r"] = [self.reasons.setdefault(note, len(self.reasons)) for note in notes]
        options = [self.options_of.get(row["cell"], "") for row in rows]
        cells["o"] = list(dict.fromkeys(self.options.setdefault(text, len(self.options)) for text in options if text))
        if search := self.searches.get((method, dataset)):
            cells["search"] = search
            cells["chosen"] = [what_was_run.chosen_text(self.chosen.get(row["cell"])) for row in rows]
        if calibration := _calibration([row for row in rows if row["status"] == "ok"]):
            cells["calibration"] = calibration
        cells["a"] = {table.score.name: text for table in self.tables if (text := _mean(table, method, dataset))}
        return cells

    def _pairs(self, table: ScoreTable) -> Iterator[tuple[int, list[Any]]]:
        """Yield the complete methods on each data set, and the p-values of their paired tests, times 10,000."""
        cells = summary.pivot(self.merged, table.score)
        for i, dataset in enumerate(table.datasets):
            names = [table.methods[j] for j in np.flatnonzero(table.complete[i])]
            if table.plan[i] > 1 and len(names) > 1:
                scores = cells.loc[dataset, names].to_numpy(dtype=float)
                first, second = np.triu_indices(len(names), 1)
                upper = table.tests[i].p(scores[:, first] - scores[:, second])
                yield (
                    self.datasets[dataset],
                    [[self.methods[name] for name in names], np.rint(1e4 * upper).astype(int).tolist()],
                )

    def _published(self) -> Iterator[list[Any]]:
        """Yield method, data set, column, source, printed mean and error, our mean, verdict and reason."""
        checks = self.report.checks
        for row in checks[checks["n_splits"] > 0].to_dict("records"):
            if row["method"] in self.methods and row["dataset"] in self.datasets:
                numbers = [short(row[name]) for name in ("published_mean", "published_stderr", "mean")]
                place = [self.methods[row["method"]], self.datasets[row["dataset"]], row["metric"]]
                reason = row["reason"] if isinstance(row["reason"], str) else ""
                yield [*place, f"{row['source']}, table {row['table']}", *numbers, row["verdict"], reason]


def _score(table: ScoreTable) -> dict[str, Any]:
    score = table.score
    return {
        "key": score.name, "column": score.source, "title": score.title, "axis": score.axis, "better": score.better,
        "unit": score.unit, "task": score.task,
    }  # fmt: skip


def _mean(table: ScoreTable, method: str, dataset: str) -> list[Any] | None:
    """Return mean, standard error and both in words, None without any split."""
    if method not in table.methods or dataset not in table.datasets:
        return None
    i, j = table.datasets.index(dataset), table.methods.index(method)
    if not table.n[i, j]:
        return None
    return [short(table.mean[i, j]), short(table.stderr[i, j]), mean_text(table, i, j)]


def _calibration(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return the mean coverage of central intervals and the calibration error in words, empty if unknown."""
    means = [float(np.mean([row[name] for row in rows])) if rows else math.nan for name in CALIBRATION]
    if not all(map(math.isfinite, means)):
        return ""
    shares = ", ".join(f"{100.0 * mean:.1f} %" for mean in means[:-1])
    error = f"calibration error {means[-1]:.3f}"
    return f"Calibration: central 50, 90 and 95 % intervals contain {shares} of the test targets; {error}."


def _note(row: Mapping[Any, Any]) -> str:
    """Return status and reason of a cell, empty if it is ok without a remark."""
    reason = row["reason"] if isinstance(row["reason"], str) else ""
    return reason if row["status"] == "ok" else f"{row['status']}: {reason}".rstrip(": ")


def short(value: Any) -> float | int | None:
    """Return a number with six digits, None if it is missing or not finite."""
    if value is None or not math.isfinite(float(value)):
        return None
    number = float(f"{float(value):.6g}")
    return int(number) if number == round(number) and abs(number) < 1e6 else number


def page_traces(report: ReportContext) -> dict[tuple[str, str], list[list[Any]]]:
    """Return lists of title, unit, steps and medians over splits of each quantity, by method and data set.

    Quantities without a title are internal and are omitted.
    """
    cells, entries = report.merged.cells, curves.index(report.merged.curves.traces)
    found: dict[tuple[str, str], list[list[Any]]] = {}
    for place, mine in cells.items():
        entry = curves.find(entries, mine) if mine else None
        if entry is not None:
            names = sorted(filter(trace_words, entry["traces"]), key=_place)
            traces = [_trace(name, entry["traces"][name]) for name in names]
            found[place] = [trace for trace in traces if len(trace[2]) > 1]
    return found


def trace_words(name: str) -> tuple[str, str] | None:
    """Return title and unit of a trace, such as ``prior_variance`` or ``prior_variance_2``; None if it is unknown."""
    known, _, number = name.rpartition("_")
    if name in TRACES or not number.isdecimal() or known not in TRACES:
        return TRACES.get(name)
    title, unit = TRACES[known]
    return f"{title}, group {number}", unit


def _place(name: str) -> tuple[int, str]:
    """Return the sort key of a trace: known names first, in the order of ``TRACES``."""
    return _PLACES.get(name, len(_PLACES)), name


def _trace(name: str, traced: dict[str, Any]) -> list[Any]:
    title, unit = trace_words(name) or (name, "")
    epochs = np.asarray(traced["epoch"], dtype=float)
    medians = np.asarray(traced["median"], dtype=float)
    kept = np.unique(np.linspace(0, len(epochs) - 1, POINTS).round().astype(int))
    kept = kept[np.isfinite(medians[kept])]
    return [title, unit, epochs[kept].astype(int).tolist(),
            [float(f"{value:.4g}") for value in medians[kept].tolist()]]  # fmt: skip
