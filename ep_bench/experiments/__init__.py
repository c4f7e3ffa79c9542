"""Experiments: figures and tables of papers that are not grids of cells.

An experiment is a folder ``<paper>/<name>`` with ``compute.py``, ``figure.py`` and a record (``record.Experiment``) in
``__init__.py``. ``run`` computes its parts as it computes cells, then stores ``arrays.npz``, ``summary.csv`` and
``study.lock.json`` (``storage``); ``figures.section`` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ep_bench.errors import OptionProblem
from ep_bench.experiments.record import Experiment

if TYPE_CHECKING:
    from pydantic import BaseModel

ARRAYS, SUMMARY = "arrays.npz", "summary.csv"
FILES = (ARRAYS, SUMMARY)
_FOLDERS = [path.parent for path in sorted(Path(__file__).parent.glob("*/*/__init__.py"))]
REGISTRY = {folder.name: folder.parent.name for folder in _FOLDERS}  # names of experiments, with those of the papers


def get(name: str) -> Experiment:
    """Return the record of an experiment. Raises KeyError for an unknown name."""
    package = import_module(f"ep_bench.experiments.{REGISTRY[name]}.{name}")
    record: Experiment = package.EXPERIMENT
    return record


def names() -> tuple[str, ...]:
    """Return the names of the experiments."""
    return tuple(REGISTRY)


def options_model(name: str) -> type[BaseModel]:
    """Return the model of the options of an experiment. Raises KeyError for an unknown name."""
    return get(name).config


def problems(name: str, options: Mapping[str, Any]) -> list[OptionProblem]:
    """Return the problems of an experiment's options; the list is empty if all are valid."""
    from pydantic import ValidationError

    from ep_bench.options import problems as described

    config = options_model(name)
    try:
        config(**options)
    except ValidationError as error:
        return list(described(config, name, error))
    return []
