"""The columns of table 2 of Hernandez-Lobato and Adams (2015) with which entries are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ep_bench import published
from ep_bench.experiments.record import ExperimentResults

SOURCE, TABLE = "hernandez-lobato2015", "2"
SIZES = {"train": 20, "test": 100, "additions": 9}  # of the table
RULES = {"A": "variance", "R": "random"}  # last letter of a column, acquisition
# Options that the paper states, by the first part of the name of a column. It has no settings of HMC and EP.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "PBP": {"use": "pbp", "hidden": [10], "epochs": 40},
    "HMC": {"use": "hmc", "hidden": [10]},
    "EP": {"use": "ep_nn", "hidden": [10]},
    "LA": {"use": "laplace", "hidden": [10], "hessian": "diag", "activation": "tanh"},
}
# Defaults that are settings of the paper; the registry is not loaded for a report.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"pbp": {"epochs": 40}, "ep_nn": {"hidden": [10]}}


def of_entry(entry: Mapping[str, Any]) -> str | None:
    """Return the column that is the label of an entry if method, acquisition and options are those of the paper."""
    label = str(entry.get("label", ""))
    name, _, letter = label.rpartition("-")
    if name not in SETTINGS or letter not in RULES or entry.get("acquisition", "variance") != RULES[letter]:
        return None
    given = {**DEFAULTS.get(str(entry.get("use")), {}), **entry}
    return label if all(given.get(key) == value for key, value in SETTINGS[name].items()) else None


def columns(results: ExperimentResults) -> dict[str, str]:
    """Return the columns by the labels of the entries that are compared with them; none for other sizes."""
    if any(results.options.get(name, size) != size for name, size in SIZES.items()):
        return {}
    entries = results.options.get("methods", ())
    found = {str(entry.get("label") or entry.get("use")): of_entry(entry) for entry in entries}
    return {label: column for label, column in found.items() if column}


def means(results: ExperimentResults, dataset: str) -> dict[str, float]:
    """Return the printed RMSE on a data set by the labels of the entries that are compared with it."""
    printed = {
        row["method"]: float(row["mean"])
        for row in published.described_rows()
        if (row["source"], row["table"], row["dataset"], row["metric"]) == (SOURCE, TABLE, dataset, "rmse")
    }
    return {label: printed[column] for label, column in columns(results).items() if column in printed}
