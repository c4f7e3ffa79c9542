"""Data sets of plugins: arrays returned by an entry point, which are checked and described by a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ep_bench import plugins
from ep_bench.data import embedded
from ep_bench.data.cards import Card, card_names
from ep_bench.data.targets import few_values
from ep_bench.errors import UserError
from ep_bench.plugins import Plugin
from ep_bench.types import Array, Dataset

_MAX_LENGTH = 200  # characters of a title


class PluginData(NamedTuple):
    """Data set of a plugin: inputs (n, d) and targets (n,), both read-only, and the card."""

    X: Array
    y: Array
    card: Card


def names() -> tuple[str, ...]:
    """Return the names of all data sets of plugins; nothing is imported."""
    return plugins.names(plugins.DATASETS)


def find(name: str) -> Plugin | None:
    """Return the plugin of a data set, or None. Raises UserError if several packages define the name."""
    return plugins.find(plugins.DATASETS, name, card_names())


@cache
def load(plugin: Plugin) -> PluginData:
    """Return the data set of a plugin.

    Raises
    ------
    UserError
        The plugin cannot be imported, fails, or does not return a data set; the message names the package and the entry
        point.
    """
    from sklearn.utils import check_X_y

    source = plugin.load()
    if not callable(source):
        _refuse(plugin, "must refer to a function without arguments", type(source).__name__)
    try:
        returned = source()
    except Exception as error:
        raise UserError(f"fails: {type(error).__name__}: {error}", where=plugin.place) from error
    X, y, facts = _parts(plugin, returned)
    try:
        inputs, targets = check_X_y(X, y, dtype=np.float64, order="C", copy=True, y_numeric=True)
        targets = np.array(targets, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"returns no valid X and y: {error}", where=plugin.place) from error
    for array in (inputs, targets):
        array.flags.writeable = False
    if facts.get("task") == "classification":
        _require_classes(plugin, targets, facts["classes"])
    return PluginData(inputs, targets, _card(plugin, inputs, targets, facts, source))


def _parts(plugin: Plugin, returned: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return inputs, targets and further fields of the card, from a pair, a scikit-learn Bunch or a Dataset."""
    if isinstance(returned, Dataset):
        return returned.X, returned.y, _dataset_facts(returned)
    if isinstance(returned, tuple | list) and len(returned) == 2:
        X, y = returned
        columns, name = getattr(X, "columns", ()), getattr(y, "name", None)
        return X, y, {"inputs": tuple(map(str, columns)), "target": str(name or "y")}
    if isinstance(returned, Mapping) and {"data", "target"} <= returned.keys():
        return returned["data"], returned["target"], _bunch_facts(returned)
    allowed = "(X, y), a scikit-learn Bunch with data and target, or an ep_bench Dataset"
    raise UserError("does not return a data set", where=plugin.place, found=type(returned).__name__, allowed=allowed)


def _dataset_facts(dataset: Dataset) -> dict[str, Any]:
    facts = {"inputs": dataset.names, "target": dataset.target, "task": dataset.task, "constants": dataset.constants}
    if dataset.task == "classification":
        facts["classes"] = {name: name for name in dataset.classes}
    if isinstance(dataset.card, Card):
        copied = ("title", "citation", "licence", "oddities", "hidden", "holdout_rows")
        facts |= {key: getattr(dataset.card, key) for key in copied}
    return facts


def _bunch_facts(bunch: Mapping[str, Any]) -> dict[str, Any]:
    inputs: Any = bunch.get("feature_names")
    inputs = getattr(bunch["data"], "columns", ()) if inputs is None else inputs
    target: Any = bunch.get("target_names")
    is_name = isinstance(target, list | tuple) and len(target) == 1
    title = _title(str(bunch.get("DESCR") or ""))
    facts: dict[str, Any] = {"inputs": tuple(map(str, inputs)), "title": title}
    facts["target"] = str(target[0]) if is_name else "target"
    if target is not None and len(target) > 1:  # scikit-learn's classification sets have the names of the classes here
        facts |= {"task": "classification", "classes": {str(name): str(name) for name in target}}
    return facts


def _require_classes(plugin: Plugin, y: Array, classes: Mapping[str, str]) -> None:
    """Raise UserError unless the targets are the indices of two or more named classes."""
    if len(classes) < 2:
        _refuse(plugin, "a classification set must name two or more classes", f"{len(classes)}")
    if not np.isin(y, np.arange(len(classes))).all():
        _refuse(plugin, f"y of a classification set must hold class indices, 0 to {len(classes) - 1}")


def _card(plugin: Plugin, X: Array, y: Array, facts: dict[str, Any], source: Callable[..., Any]) -> Card:
    inputs = facts.pop("inputs", ())
    if inputs and len(inputs) != X.shape[1]:
        _refuse(plugin, f"X has {X.shape[1]} inputs, but there are {len(inputs)} names of inputs")
    title = facts.pop("title", "") or _title(getattr(source, "__doc__", "") or "")
    return Card(
        name=plugin.name,
        title=title or plugin.name,
        n=X.shape[0],
        d=X.shape[1],
        target_values=None if facts.get("task") == "classification" else few_values(y),
        inputs=tuple(inputs),
        embedded=True,
        sha256=embedded.checksum(X, y),
        paper_constants=dict(facts.pop("constants", {})),
        source=f"the package {plugin}, entry point {plugin.group}: {plugin.name} = {plugin.reference}",
        **{"licence": f"see the package {plugin.package}", "citation": f"the package {plugin}", **facts},
    )


def _title(text: str) -> str:
    """Return the first line of text; blank lines, underlines and targets of reStructuredText are skipped."""
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("..") and any(letter.isalnum() for letter in line):
            return line[:_MAX_LENGTH]
    return ""


def _refuse(plugin: Plugin, problem: str, found: str | None = None) -> NoReturn:
    raise UserError(problem, where=plugin.place, found=found)
