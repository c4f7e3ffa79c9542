"""Repetitions of an experiment as the cells of a study, for the comparison with published numbers."""

from __future__ import annotations

from typing import Any

from ep_bench.experiments import REGISTRY, get
from ep_bench.experiments.figures import read
from ep_bench.experiments.record import Row
from ep_bench.results.store import StudyResults


def as_cells(study: StudyResults) -> tuple[list[Row], dict[str, Any]]:
    """Return the cells of an experiment, and the parts of a lock file that the comparison reads.

    The scheme of the splits is the name of the experiment, which decides with which columns its entries are compared.
    """
    name = str(study.lock["experiment"])
    experiment = get(name) if name in REGISTRY else None
    results = read(study)
    rows = experiment.show("cells", results) if experiment else []
    columns = experiment.show("columns", results) if experiment and rows else {}
    methods = {
        label: {"use": entry.get("use", ""), "published": [columns[label]] if label in columns else []}
        for entry in study.lock.get("options", {}).get("methods", ())
        if (label := entry.get("label") or entry.get("use"))
    }
    datasets = {dataset: {"name": dataset} for dataset in dict.fromkeys(row["dataset"] for row in rows)}
    accept = study.lock.get("accept", [])
    return rows, {"methods": methods, "datasets": datasets, "splits": {"scheme": name}, "accept": accept}
