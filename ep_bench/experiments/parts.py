"""The parts of an experiment, in the process that computes them.

A child of a fork server serves a ``ServedExperiment``. An experiment without parts has a single one, its ``compute``.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ep_bench.experiments import get
from ep_bench.experiments.record import Computed, Experiment
from ep_bench.experiments.study_folder import relative_to
from ep_bench.processes.tree import own_cpu_seconds


class ServedExperiment:
    """An experiment with its options; files of methods and data are relative to ``base``."""

    def __init__(self, name: str, options: Mapping[str, Any], seed: int, base: str) -> None:
        self._experiment, self._seed, self._base = get(name), seed, Path(base)
        with relative_to(self._base):
            self._config = self._experiment.config(**options)

    def part(self, place: int) -> tuple[Any, float, float]:
        """Return the value of a part, of JSON types, with its wall time and its CPU time in seconds."""
        started, cpu = perf_counter(), own_cpu_seconds()
        with relative_to(self._base):
            value = self._value(place)
        return value, perf_counter() - started, own_cpu_seconds() - cpu

    def _value(self, place: int) -> Any:
        calls, part = self._experiment.optional("calls"), self._experiment.optional("part")
        if calls is None or part is None:
            return as_json(self._experiment.compute(self._config, self._seed))
        return part(*calls(self._config, self._seed)[place])


def combined(experiment: Experiment, config: Any, values: Sequence[Any]) -> Computed:
    """Return arrays and summary of an experiment from the values of all of its parts."""
    combine = experiment.optional("combine")
    found: Computed = from_json(values[0]) if combine is None else combine(config, values)
    return found


def as_json(computed: Computed) -> dict[str, Any]:
    """Return arrays and summary as values of JSON; arrays become the bytes of ``.npy`` files in base 64."""
    arrays, summary = computed
    texts = {}
    for name, array in arrays.items():
        content = io.BytesIO()
        np.save(content, np.asarray(array), allow_pickle=False)
        texts[name] = base64.b64encode(content.getvalue()).decode("ascii")
    rows = [
        {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()} for row in summary
    ]
    return {"arrays": texts, "summary": rows}


def from_json(value: Mapping[str, Any]) -> Computed:
    """Return the arrays and the summary of ``as_json``."""
    arrays = {
        name: np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) for name, text in value["arrays"].items()
    }
    return arrays, value["summary"]
