"""The section of an experiment on a report's page. Loads no numba and no scikit-learn."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench.experiments import ARRAYS, REGISTRY, SUMMARY, get
from ep_bench.experiments.record import Claim, Experiment, ExperimentResults, SummaryRow
from ep_bench.plotting.numbers import readable
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.published.claims import HOLDS, OPEN, Measured, load_claims
from ep_bench.results import store


def section(study: store.StudyResults, *, drawn: bool = True) -> Section:
    """Return the figures and tables of an experiment; its name is in the lock of the study.

    There are no figures without ``arrays.npz``, no tables without ``summary.csv``. Of an experiment that is not in the
    registry, only the summary is shown. ``drawn`` is whether to draw figures.
    """
    name = str(study.lock["experiment"])
    results = read(study)
    pictures: Sequence[Picture] = ()
    lines: list[str] = []
    tables: list[Table] = []
    experiment = get(name) if name in REGISTRY else None
    if experiment is not None:
        pictures = experiment.show("draw", results) if drawn and results.arrays else ()
        tables = experiment.show("tables", results) if results.summary else []
        lines = _claims(study, experiment, results) if results.summary else []
    if results.summary and not (experiment and experiment.tabulated >= results.summary[0].keys()):
        tables = [*tables, _summary_table(results.summary, experiment)]
    anchor = "experiment-" + re.sub(r"\W+", "-", study.name)
    return Section(anchor, f"{study.name}: {name.replace('_', ' ')}", lines, pictures, tables)


def measures(study: store.StudyResults) -> dict[str, float]:
    """Return the numbers of a stored experiment that claims of papers are about, by name."""
    return dict(get(str(study.lock["experiment"])).show("measures", read(study)))


def _claims(study: store.StudyResults, experiment: Experiment, results: ExperimentResults) -> list[str]:
    """Return the claims on an experiment with their verdicts, as sentences."""
    claims = list(experiment.show("claims", results))
    about = [claim for claim in load_claims() if isinstance(claim, Measured) and claim.study == study.lock.get("study")]
    found = [(claim, claim.finding(experiment.show("measures", results))) for claim in about]
    claims += [Claim(claim.claim, one.verdict == HOLDS, one.found) for claim, one in found if one.verdict != OPEN]
    return [claim.sentence for claim in claims]


def read(study: store.StudyResults) -> ExperimentResults:
    """Return the stored results of an experiment."""
    arrays, summary = _arrays(study.folder / ARRAYS), _summary(study.folder / SUMMARY)
    return ExperimentResults(study.name, arrays, study.lock.get("options", {}), summary)


def _arrays(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def _summary(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _summary_table(rows: Sequence[SummaryRow], experiment: Experiment | None) -> Table:
    tabulated = experiment.tabulated if experiment else frozenset()
    head = [column for column in rows[0] if column not in tabulated]
    body = [[_entry(row[column]) for column in head] for row in rows]
    words = [column.replace("_", " ") for column in head]
    caption = experiment.caption if experiment else "Summary"
    for column, word in zip(head, words, strict=True):
        caption = re.sub(rf"\b{re.escape(column)}\b", word, caption)
    return Table(words, body, caption)


def _entry(text: str) -> str | Item:
    """Return a number with its value to sort by, with 5 digits unless it is an integer, and any other text as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return item(readable(f"{value:.5g}" if re.search(r"[.e]", text) else text), value)
