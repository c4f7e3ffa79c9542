"""ep-bench: baselines for Bayesian neural networks and Gaussian processes on the UCI regression splits.

The names of the package are imported on first use, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ep_bench import plot as plot
    from ep_bench import scores as scores
    from ep_bench.adapters import predict_dist
    from ep_bench.api import load_results, run
    from ep_bench.data import load_dataset, standard_split
    from ep_bench.errors import UserError
    from ep_bench.estimator import Estimator
    from ep_bench.experiments.posteriors.fidelity.compute import posterior_distances
    from ep_bench.predictions import ClassProbabilities, Predictive
    from ep_bench.recalibration import Recalibrated
    from ep_bench.report.pairwise import compare
    from ep_bench.results.references import load_reference

__all__ = [
    "ClassProbabilities",
    "Estimator",
    "Predictive",
    "Recalibrated",
    "UserError",
    "__version__",
    "compare",
    "load_dataset",
    "load_reference",
    "load_results",
    "posterior_distances",
    "predict_dist",
    "run",
    "standard_split",
]

_SUBMODULES = ("plot", "scores")
_MODULES = {
    "compare": "ep_bench.report.pairwise",
    "load_dataset": "ep_bench.data",
    "load_reference": "ep_bench.results.references",
    "load_results": "ep_bench.api",
    "posterior_distances": "ep_bench.experiments.posteriors.fidelity.compute",
    "predict_dist": "ep_bench.adapters",
    "run": "ep_bench.api",
    "standard_split": "ep_bench.data",
    "Estimator": "ep_bench.estimator",
    "ClassProbabilities": "ep_bench.predictions",
    "Predictive": "ep_bench.predictions",
    "Recalibrated": "ep_bench.recalibration",
    "UserError": "ep_bench.errors",
}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"ep_bench.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("ep-bench")
    raise AttributeError(f"module 'ep_bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_SUBMODULES])
