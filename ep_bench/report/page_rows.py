"""What report.html and report.md say, as plain rows and lines: the parts between the numbers and the templates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ep_bench import published
from ep_bench.plotting.page import Item, Picture, item
from ep_bench.report import chain_diagnostics, merge, ranks, tables, training_curves, tuned_options
from ep_bench.report.merge import MergedStudies
from ep_bench.report.summary import Ranking, ScoreTable
from ep_bench.results import store
from ep_bench.types import Task

_LEADS: Mapping[Task, str] = {
    "regression": "Scores are on test rows and in the target’s original units; the mean log density is that of one "
    "observation, noise included, in nats (higher is better).",
    "classification": "Scores of classification sets are on test rows: the mean log probability of the class, in nats "
    "(higher is better), the share of rows whose most probable class is another, and the mean of the squared "
    "differences of all class probabilities from 0 and 1, summed over the classes (0 to 2).",
}


def lead(tasks: Collection[Task]) -> str:
    """Return what the scores of these tasks are, in a sentence each."""
    return " ".join(text for task, text in _LEADS.items() if task in tasks)


def score_head(table: ScoreTable, ranking: Ranking | None) -> list[str]:
    """Return the head of a score table on the page."""
    return ["method", *table.datasets, *([f"average rank (N = {ranking.n})"] if ranking else [])]


def score_rows(table: ScoreTable, ranking: Ranking | None) -> list[list[Any]]:
    """Return the body of a score table, methods down, so that choosing a data set's column ranks them by it."""
    places = tables.places_by_dataset(table)
    texts = tables.average_ranks(ranking, table.methods)
    rows: list[list[Any]] = []
    for j, method in enumerate(table.methods):
        cells = [
            item(
                tables.cell(table, i, j, places[i]) or "–",
                float(table.mean[i, j]) if table.n[i, j] else "",
                strong=bool(table.marked[i, j]),
                small=tables.shortfall(table, i, j),
            )
            for i in range(len(table.datasets))
        ]
        rank = [item(texts[j] or "–", texts[j].partition(" ")[0])] if ranking else []
        rows.append([method, *cells, *rank])
    return rows


def friedman_line(ranking: Ranking) -> str:
    """Return Friedman's test, Iman and Davenport's, and the critical difference, or why there are none."""
    test, blocks = ranking.test, ranking.blocks
    head = f"N = {ranking.n} {blocks}, {test.k} methods"
    if ranking.incomplete:
        head += f" ({ranking.incomplete} {blocks} without a score of every method left out)"
    if math.isnan(test.chi2):
        return f"{head}: too few {blocks} for a test."
    degrees = "1 degree" if test.k == 2 else f"{test.k - 1} degrees"
    F = f"F = {test.F:.3f} with ({test.df[0]}, {test.df[1]}), {p_text(test.p_iman_davenport)}"
    if math.isinf(test.F):
        F = "F is infinite (all blocks agree)"
    tied = test.chi2_ties > test.chi2 * (1 + 1e-9)
    ties = f" (corrected for ties {test.chi2_ties:.3f}, {p_text(test.p_ties)})" if tied else ""
    text = (
        f"{head}: Friedman χ² = {test.chi2:.3f} with {degrees} of freedom, {p_text(test.p)}{ties}; "
        f"Iman-Davenport {F}; "
        f"Nemenyi q = {ranking.q:.3f}, critical difference {ranking.cd:.3f} at {ranks.ALPHA}."
    )
    if "splits" in blocks:
        text += " Splits of one data set share rows: these blocks are not independent, the p-values are too small."
    return text


def p_text(p: float) -> str:
    """Return a p-value in words of three digits."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"


def rank_lines(rankings: Sequence[Ranking]) -> list[str]:
    """Return the lines above a critical-difference diagram."""
    lines = [friedman_line(ranking) for ranking in rankings]
    if rankings and rankings[0].left_out:
        names = ", ".join(rankings[0].left_out)
        lines.append(f"Not ranked, with scores on fewer than half of the data sets: {names}.")
    return lines


def pairwise(ranking: Ranking) -> list[dict[str, Any]]:
    """Return the tables of p-values: Holm-Wilcoxon and Nemenyi over data sets, Nemenyi over data sets × splits."""
    titles = {
        "Wilcoxon signed-rank tests, Holm-corrected": ranking.wilcoxon,
        "Nemenyi tests": ranking.nemenyi,
    }
    return [
        {
            "caption": f"{title}: p-values, N = {ranking.n} {ranking.blocks}",
            "head": ["", *(str(name) for name in p.columns)],
            "rows": [[str(name), *_p_items(p, str(name))] for name in p.index],
        }
        for title, p in titles.items()
        if p is not None
    ]


def _p_items(p: pd.DataFrame, name: str) -> list[Item]:
    return [
        item("") if other == name else item(f"{value:.3f}", value, strong=value < ranks.ALPHA)
        for other, value in zip(p.columns, p.loc[name].to_numpy(dtype=float).tolist(), strict=True)
    ]


TUNED_CAPTION = (
    "Options that did best on the validation rows: of numbers the median over splits (and the range), of choices how "
    "often each was made"
)
ACCEPT_KEYS = ("method", "dataset", "metric", "reason")


def study_facts(study: store.StudyResults, tag: str) -> dict[str, Any]:
    """Return what was run: methods with their options, data sets with checksums, versions and machine."""
    lock = study.lock
    splits = lock.get("splits", {})
    experiment = lock.get("experiment")
    facts = [f"experiment {words(experiment)}, options: {words(lock.get('options', {}))}" if experiment else ""]
    facts += [f"seed {lock['seed']}" if "seed" in lock else "", f"splits: {words(splits)}" if splits else ""]
    known = [fact for fact in facts if fact]
    line = "; ".join(known) or "No study.lock.json: the plan, versions and checksums are unknown."
    hidden = {"name", "n", "d", "checksum", "csv"}
    return {
        "name": tag,
        "line": line,
        "methods": [
            [label, str(use), _text(_entry_options(options, entry.get("tune"))), words(columns)]
            for label, entry in lock.get("methods", {}).items()
            for use, options, columns in [[entry.get(key, "") for key in ("use", "options", "published")]]
        ],
        "datasets": [
            [
                label,
                item(str(entry.get("n", "")), entry.get("n")),
                item(str(entry.get("d", "")), entry.get("d")),
                words({key: value for key, value in entry.items() if key not in hidden}),
                _text(str(entry.get("checksum") or "")),
            ]
            for label, entry in lock.get("datasets", {}).items()
        ],
        "accept": [[str(known.get(key, "any")) for key in ACCEPT_KEYS] for known in lock.get("accept", [])],
        "environment": [[key, _text(value)] for key, value in flatten(lock.get("environment", {}))],
    }


def _entry_options(options: Any, tune: Any) -> str:
    """Return what a study's entry gives, its search last."""
    return "; ".join(part for part in (words(options), f"tune: {_inner(tune)}" if tune else "") if part)


def tuned_table(found: tuned_options.TuningReport | None) -> dict[str, Any] | None:
    """Return what the searches chose, as the template wants it."""
    if found is None:
        return None
    rows = [[*row[:3], _text(row[3]), _text(row[4]), item(row[5], float(row[5]))] for row in found.rows]
    return {"lines": found.lines, "head": tuned_options.HEAD, "rows": rows, "caption": TUNED_CAPTION}


def training_part(
    found: training_curves.TrainingReport | None, embedded: Callable[[Picture], dict[str, str]]
) -> dict[str, Any] | None:
    """Return the training curves, as the template wants them."""
    if found is None:
        return None
    return {"lines": found.lines, "pictures": [embedded(picture) for picture in found.pictures]}


def chains_part(
    found: chain_diagnostics.ChainReport | None, embedded: Callable[[Picture], Any] = lambda picture: picture
) -> dict[str, Any] | None:
    """Return the diagnostics and the figures of chains, as the template wants them."""
    if found is None:
        return None
    known = {name for one in found.diagnostics for name in one.numbers if one.has(name)}
    main = [name for name in chain_diagnostics.MAIN if name in known]
    more = sorted(known - set(main))
    return {
        "head": ["method", "data set", "splits", *(chain_diagnostics.words(name) for name in main)],
        "rows": [_diagnostics(one, main) for one in found.diagnostics] if main else [],
        "caption": chain_diagnostics.CAPTION,
        "more_head": ["method", "data set", "splits", *(chain_diagnostics.words(name) for name in more)],
        "more": [_diagnostics(one, more) for one in found.diagnostics] if more else [],
        "more_caption": "Further diagnostics of the chains",
        "lines": found.lines,
        "pictures": [embedded(picture) for picture in found.pictures],
    }


def _diagnostics(one: chain_diagnostics.ChainDiagnostics, names: Sequence[str]) -> list[Any]:
    return [one.method, one.dataset, item(str(one.splits), one.splits), *(_diagnostic(one, name) for name in names)]


def _diagnostic(one: chain_diagnostics.ChainDiagnostics, name: str) -> Item:
    """Return a median, beside it the worst split and how many have the number; bold where that is over the limit."""
    if not one.has(name):
        return item("–", "")
    median, low, high = one.summary(name)
    worst, word = (low, "lowest") if chain_diagnostics.low_is_bad(name) else (high, "highest")
    text, beside = chain_diagnostics.show(name, median), []
    if chain_diagnostics.show(name, worst) != text:
        beside.append(f"{word} {chain_diagnostics.show(name, worst)}")
    if one.count(name) < one.splits:
        beside.append(f"{one.count(name)} of {one.splits} splits")
    return item(text, median, strong=chain_diagnostics.exceeds_limit(name, worst), small=", ".join(beside))


def _text(text: str) -> Item:
    return item(text, kind="text")


def words(value: Any) -> str:
    """Return a nested setting in short: ``hidden: [50], epochs: 40``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_inner(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_inner(entry) for entry in value)
    return str(value)


def _inner(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + words(value) + "}"
    return f"[{words(value)}]" if isinstance(value, list | tuple) else str(value)


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Return nested settings as pairs of a path and a text."""
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            yield from flatten(entry, f"{prefix}{key} ")
        else:
            yield f"{prefix}{key}", words(entry)


# Published numbers


CHECK_HEAD = [
    "source", "table", "method", "data set", "score", "published", "ours", "splits", "z", "verdict", "reason",
]  # fmt: skip
VERDICTS = ("worse", "better", "reproduced", "incomplete", "disputed")


def check_rows(checks: pd.DataFrame) -> dict[str, Any]:
    """Return the comparison with published numbers as rows, worst first within a verdict."""
    order = {verdict: place for place, verdict in enumerate(VERDICTS)}
    place = checks["verdict"].map(order).fillna(9)
    checks = checks.assign(_place=place).sort_values(["_place", "source", "table", "metric"], kind="stable")
    rows = []
    for record in checks.to_dict("records"):
        ours, theirs = (
            item(show(_number(record[mean]), _number(record[error])) or "–", _known(_number(record[mean])))
            for show, mean, error in (
                (published.measured, "mean", "stderr"),
                (published.printed, "published_mean", "published_stderr"),
            )
        )
        z = _number(record["z"])
        count = _number(record["n_splits"])
        rows.append([
            _plain(record["source"]), _plain(record["table"]), _plain(record["method"]), _plain(record["dataset"]),
            _plain(record["metric"]), theirs, ours, item("" if math.isnan(count) else f"{count:.0f}"),
            item("" if math.isnan(z) else f"{z:.2f}", _known(z)),
            item(_plain(record["verdict"]), strong=record["verdict"] == "worse", kind="word"),
            _text(_plain(record["reason"])),
        ])  # fmt: skip
    counts = Counter(str(verdict) for verdict in checks["verdict"])
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return {"head": CHECK_HEAD, "rows": rows, "summary": f"{len(rows)} numbers: {summary}."}


def _number(value: Any) -> float:
    number = pd.to_numeric(value, errors="coerce")
    return float(number)


def _known(number: float) -> float | None:
    """Return a number to sort by, None for one that is not there."""
    return None if math.isnan(number) else number


def _plain(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def gap_rows(merged: MergedStudies) -> list[list[str]]:
    """Return the cells that are not ok, one line a method and data set."""
    return [[gap[key] for key in ("method", "dataset", "done", "detail")] for gap in merge.gaps(merged)]


def remark_rows(merged: MergedStudies) -> list[list[Any]]:
    """Return the reasons of rows."""
    return [
        [remark["method"], remark["dataset"], remark["status"], _text(remark["reason"]), remark["splits"]]
        for remark in merge.remarks(merged)
    ]


def summary_line(merged: MergedStudies) -> str:
    """Return how much was run, in one sentence."""
    planned, done = sum(merged.planned.values()), len(merged.ok())
    if not planned:
        return "An experiment of its own, not a grid of methods and data sets."
    methods, datasets = len(merged.methods), len(merged.datasets)
    what = f"{methods} method{'s' * (methods != 1)} on {datasets} data set{'s' * (datasets != 1)}"
    return f"{what}: {done} of {planned} cells finished ok."
