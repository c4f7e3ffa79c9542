"""Data sets that packages plug in: the arrays of an entry point, checked, and the card that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ep_bench import plugins
from ep_bench.data import embedded
from ep_bench.data.cards import Card, card_names
from ep_bench.plugins import Plugin
from ep_bench.types import Array, Dataset, UserError

_LONGEST = 200  # characters of a title


class PluginData(NamedTuple):
    """A plugin's data set: inputs (n, d) and targets (n,), both read-only, and its card."""

    X: Array
    y: Array
    card: Card


def names() -> tuple[str, ...]:
    """Return the names of the data sets of plugins; nothing is imported."""
    return plugins.names(plugins.DATASETS)


def find(name: str) -> Plugin | None:
    """Return the plugin of a data set's name, or None. Raises UserError for a name that is given twice."""
    return plugins.find(plugins.DATASETS, name, card_names())


@cache
def load(plugin: Plugin) -> PluginData:
    """Return a plugin's data set.

    Raises UserError where the plugin cannot be imported, fails, or gives what is no data set; the message names the
    package and the entry point.
    """
    source = plugin.load()
    if not callable(source):
        _refuse(plugin, "must refer to a function without arguments", type(source).__name__)
    try:
        given = source()
    except Exception as error:
        raise UserError(f"fails: {type(error).__name__}: {error}", where=plugin.place) from error
    X, y, facts = _parts(plugin, given)
    inputs, targets = _numbers(plugin, X, "X", 2), _numbers(plugin, y, "y", 1)
    if len(inputs) != len(targets):
        _refuse(plugin, "X and y differ in their rows", f"{len(inputs)} and {len(targets)}")
    if not inputs.size:
        _refuse(plugin, "X has no rows or no inputs", str(inputs.shape))
    if facts.get("task") == "classification":
        _require_classes(plugin, targets, facts["classes"])
    return PluginData(inputs, targets, _card(plugin, inputs, targets, facts, source))


def _parts(plugin: Plugin, given: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return inputs, targets and what else is known, from a pair, a scikit-learn Bunch or a Dataset."""
    if isinstance(given, Dataset):
        facts = {"inputs": given.names, "target": given.target, "task": given.task, "constants": given.constants}
        if given.task == "classification":
            facts["classes"] = {name: name for name in given.classes}
        kept = ("title", "citation", "licence", "oddities", "hidden", "holdout_rows")
        own = {key: getattr(given.card, key) for key in kept} if isinstance(given.card, Card) else {}
        return given.X, given.y, facts | own
    if isinstance(given, tuple | list) and len(given) == 2:
        columns = getattr(given[0], "columns", ())
        name = getattr(given[1], "name", None)
        return given[0], given[1], {"inputs": tuple(map(str, columns)), "target": str(name or "y")}
    if isinstance(given, Mapping) and {"data", "target"} <= given.keys():
        inputs: Any = given.get("feature_names")
        inputs = getattr(given["data"], "columns", ()) if inputs is None else inputs
        target: Any = given.get("target_names")
        named = isinstance(target, list | tuple) and len(target) == 1
        title = _title(str(given.get("DESCR") or ""))
        facts = {"inputs": tuple(map(str, inputs)), "target": str(target[0]) if named else "target", "title": title}
        if target is not None and len(target) > 1:  # names of classes, as scikit-learn's sets have them
            facts |= {"task": "classification", "classes": {str(name): str(name) for name in target}}
        return given["data"], given["target"], facts
    allowed = "(X, y), a scikit-learn Bunch with data and target, or an ep_bench Dataset"
    raise UserError("gives no data set", where=plugin.place, found=type(given).__name__, allowed=allowed)


def _numbers(plugin: Plugin, values: Any, what: str, dimensions: int) -> Array:
    """Return a read-only copy of an array of finite numbers."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        _refuse(plugin, f"{what} must hold numbers: {error}")
    if array.ndim != dimensions:
        _refuse(plugin, f"{what} must have {dimensions} dimension{'s' * (dimensions > 1)}", f"shape {array.shape}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        _refuse(plugin, f"{what} must hold finite numbers", f"{array[tuple(wrong[0])]} at {what}[{place}]")
    array.flags.writeable = False
    return array


def _require_classes(plugin: Plugin, y: Array, classes: Mapping[str, str]) -> None:
    """Refuse targets that are not the indices of two or more classes, each of which has a name."""
    if len(classes) < 2:
        _refuse(plugin, "a classification set names two or more classes", f"{len(classes)}")
    if not np.isin(y, np.arange(len(classes))).all():
        _refuse(plugin, f"y of a classification set holds the indices 0 to {len(classes) - 1} of its classes")


def _card(plugin: Plugin, X: Array, y: Array, facts: dict[str, Any], source: Callable[..., Any]) -> Card:
    inputs = facts.pop("inputs", ())
    if inputs and len(inputs) != X.shape[1]:
        _refuse(plugin, f"X has {X.shape[1]} inputs, their names are {len(inputs)}")
    about = _about(plugin)
    title = facts.pop("title", "") or _title(getattr(source, "__doc__", "") or "") or about.get("Summary", "")
    constants = facts.pop("constants", {})
    licence = about.get("License-Expression") or about.get("License") or f"see the package {plugin.package}"
    return Card(
        name=plugin.name,
        title=title or plugin.name,
        n=X.shape[0],
        d=X.shape[1],
        inputs=tuple(inputs),
        embedded=True,
        sha256=embedded.checksum(X, y),
        paper_constants=dict(constants),
        source=f"the package {plugin}, entry point {plugin.group}: {plugin.name} = {plugin.reference}",
        **{"licence": " ".join(licence.split())[:_LONGEST], "citation": f"the package {plugin}", **facts},
    )


def _about(plugin: Plugin) -> dict[str, str]:
    """Return what the package says of itself."""
    try:
        found = metadata(plugin.package)
    except PackageNotFoundError:
        return {}
    return {key: str(found[key]) for key in ("Summary", "License", "License-Expression") if key in found}


def _title(text: str) -> str:
    """Return the first line that says something: no target, underline or blank of reStructuredText."""
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("..") and any(letter.isalnum() for letter in line):
            return line[:_LONGEST]
    return ""


def _refuse(plugin: Plugin, problem: str, found: str | None = None) -> NoReturn:
    raise UserError(problem, where=plugin.place, found=found)
