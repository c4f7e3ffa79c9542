"""The registry of experiments: one line per experiment, with the package of its paper."""

from __future__ import annotations

from importlib import import_module

from ep_bench.experiments.record import Experiment

REGISTRY = {
    "cubic_toy": "pbp_2015",
    "active_learning": "pbp_2015",
    "alpha_linear": "bb_alpha_2016",
    "calibration": "sbc_2018",
    "mountain_car": "dgp_2016",
    "conflict_posteriors": "gp_t_2011",
    "conflict_tilted": "gp_t_2011",
    "conflict_convergence": "gp_t_2011",
    "conflict_evidence": "gp_t_2011",
    "fixed_predictions": "gp_t_2011",
    "fixed_times": "gp_t_2011",
    "ard_overfitting": "ep_nn_2014",
    "additive_effects": "ep_nn_2014",
    "discontinuity": "ep_nn_2014",
    "network_restarts": "ep_nn_2014",
    "network_convergence": "ep_nn_2014",
}


def get(name: str) -> Experiment:
    """Return the record of an experiment. Raises KeyError for an unknown name."""
    package = import_module(f"ep_bench.experiments.{REGISTRY[name]}.{name}")
    record: Experiment = package.EXPERIMENT
    return record
