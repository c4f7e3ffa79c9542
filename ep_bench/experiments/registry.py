"""The registry of experiments: the folders ``<paper>/<name>``, each with a record."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ep_bench.experiments.record import Experiment

_FOLDERS = [path.parent for path in sorted(Path(__file__).parent.glob("*/*/__init__.py"))]
REGISTRY = {folder.name: folder.parent.name for folder in _FOLDERS}  # names of experiments, with those of the papers


def get(name: str) -> Experiment:
    """Return the record of an experiment. Raises KeyError for an unknown name."""
    package = import_module(f"ep_bench.experiments.{REGISTRY[name]}.{name}")
    record: Experiment = package.EXPERIMENT
    return record
