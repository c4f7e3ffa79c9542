"""Options chosen by tuning, by method and data set."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies
from ep_bench.results import store

HEAD = ["method", "data set", "option", "search space", "chosen", "splits"]
CAPTION = (
    "Options with the best score on the validation data: median over splits (and range) of numbers, frequencies of "
    "other choices"
)
SCORE_NAMES = {"ll": "mean log-likelihood", "rmse": "RMSE", "error_rate": "error rate"}
Group = tuple[str, str]  # method, data set


def sections(report: ReportContext) -> list[Section]:
    """Return the tuned options, if any method is tuned."""
    lines, rows = collect(report.merged)
    if not lines:
        return []
    items = [
        [*row[:3], item(row[3], kind="text"), item(row[4], kind="text"), item(row[5], float(row[5]))] for row in rows
    ]
    tables = [Table(HEAD, items, CAPTION)] if items else []
    return [Section("tuned", "Tuned options", lines, tables=tables)]


def collect(merged: MergedStudies) -> tuple[list[str], list[list[str]]]:
    """Return sentences on the tuning of finished cells, and rows of the columns ``HEAD``; both empty without tuning."""
    factors = {cell["cell"]: cell["factors"] for study in merged.studies for cell in store.lock_cells(study.lock)}
    wanted = {key: found["tune"] for key, found in factors.items() if found.get("tune")}
    groups: dict[Group, list[str]] = {}
    for row in merged.rows[["method", "dataset", "cell"]].to_dict("records"):
        if row["cell"] in wanted:
            groups.setdefault((str(row["method"]), str(row["dataset"])), []).append(str(row["cell"]))
    if not groups:
        return [], []
    known = {key: search for entry in merged.curves.tuned for key, search in entry["cells"].items()}
    found = {group: [known[key] for key in keys if key in known] for group, keys in groups.items()}
    lines = [*_budgets(groups, wanted), *_failures(found)]
    count, stored = sum(map(len, groups.values())), sum(map(len, found.values()))
    if stored < count:
        lines.append(f"The chosen options of {stored or 'none'} of {count} tuned cells are stored.")
    rows = [
        row for group, searches in found.items() for row in _rows(group, searches, wanted[groups[group][0]]["space"])
    ]
    return lines, rows


def _budgets(groups: Mapping[Group, list[str]], wanted: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line per tuning budget, with its methods."""
    methods: dict[str, dict[str, None]] = {}
    for (method, _), keys in groups.items():
        tune = wanted[keys[0]]
        score = SCORE_NAMES[tune["score"]]
        budget = f"{tune['trials']} trials on {100 * tune['fraction']:g} % of the training data, by {score}"
        methods.setdefault(budget, {})[method] = None
    for budget, names in methods.items():
        yield f"{budget}: {', '.join(names)}."


def _failures(found: Mapping[Group, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield one line per method and data set with failed trials."""
    for (method, dataset), searches in found.items():
        failed, trials = (sum(search[key] for search in searches) for key in ("failed", "trials"))
        if failed:
            reasons = Counter(search["reason"] for search in searches if search["failed"])
            often = reasons.most_common(1)[0][0]
            yield f"{method} on {dataset}: {failed} of {trials} trials failed, most often: {often}"


def _rows(
    group: Group, searches: Sequence[Mapping[str, Any]], space: Mapping[str, Mapping[str, Any]]
) -> Iterator[list[str]]:
    for name, entry in space.items():
        ((kind, values),) = entry.items()
        chosen = [search["options"][name] for search in searches if name in (search["options"] or {})]
        if chosen:
            yield [*group, name, _searched(kind, values), summarise(kind, chosen), str(len(chosen))]


def _searched(kind: str, values: Sequence[Any]) -> str:
    if kind == "choice":
        return ", ".join(_text(value) for value in values)
    scale = ", log" if kind in {"log", "log_int"} else ""
    return f"{_text(values[0])} to {_text(values[1])}{scale}"


def summarise(kind: str, chosen: Sequence[Any]) -> str:
    """Return the median and the range of numbers, or the frequencies of choices, the most frequent first."""
    numbers = [value for value in chosen if isinstance(value, int | float) and not isinstance(value, bool)]
    if kind != "choice" and len(numbers) == len(chosen):
        low, high = _text(min(numbers)), _text(max(numbers))
        return low if low == high else f"{_text(statistics.median(numbers))} ({low} to {high})"
    counts = Counter(_text(value) for value in chosen)
    return ", ".join(f"{text} × {count}" for text, count in counts.most_common())


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(value).lower()
    if isinstance(value, float):
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"
    return str(value)
