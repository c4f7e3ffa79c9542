"""Options of the methods: those that are refused, and the published columns and versions of those that are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench import catalogue, methods
from ep_bench.estimator import parse_options
from ep_bench.options import factors


def config(name: str, options: dict[str, Any]) -> Any:
    return methods.get(name).config(**options)


# Values that no other option would make valid.
OUT_OF_RANGE: dict[str, dict[str, list[Any]]] = {
    "bb_alpha": {"alpha": [np.nan, np.inf, -np.inf]},
    "dropout": {"hidden": [()]},
    "ep_nn": {
        "linear_units": [-1], "scale_mean": [np.nan], "noise_deviation": [np.inf], "fraction": [0.0], "damping": [1.5],
        "hidden": [(3, 3)], "sweeps": [0], "noise_variance": [-1.0],
    },
    "gp": {"kernel": ["matern53"], "lengthscale": [[1.0, -1.0], 0.0, [], "long"], "noise_variance": [0.0]},
    "gp_t": {
        "inference": ["vi"], "fraction": [0.0], "nu": [-1.0], "chains": [0], "samples": [0], "warmup": [-1],
        "stored": [0],
    },
    "hmc": {
        "hidden": [[0]], "activation": ["rectified"], "prior": ["laplace"], "weight_prior": [[1.0]],
        "noise_prior": [[0.0, 1.0]], "chains": [0], "samples": [0], "warmup": [-1], "steps": [0],
        "target_acceptance": [1.0], "noise_variance": [0.0], "prior_variance": [-1.0],
    },
    "sgld": {
        "step_size": [0.0], "noise_step_size": [-1.0], "final_step": [0.0, 1.5], "decay": [0.0, 1.1],
        "burn_in": [1.0, -0.1], "samples": [0], "epochs": [0], "noise_variance": [0.0], "preconditioner": ["adam"],
        "prior_variance": [0.0], "noise_prior_variance": [0.0], "hidden": [(0,)],
    },
    "sgp": {"approximation": ["fitcc"], "inducing": [0], "kernel": ["s"]},
}  # fmt: skip
SINGLE = [
    (name, option, value) for name, options in OUT_OF_RANGE.items() for option in options for value in options[option]
]


@pytest.mark.parametrize(("name", "option", "value"), SINGLE)
def test_a_value_out_of_range_is_refused_in_one_line_that_begins_with_its_option(
    name: str, option: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=rf"^options of {name}: {option}.*; found .*$"):
        parse_options(methods.get(name), {option: value})
    (problem,) = catalogue.check_options(name, {option: value}, Path())
    assert problem.path[0] == option


SCALES = "require a prior with scales"
ELSEWHERE = "requires scales that inputs share"
FLOOR = "leave it out, or noise_variance and optimize: false"
CONFLICTS: list[tuple[str, dict[str, Any], str]] = [
    ("bb_alpha", {"covariance": "full"}, r"covariance: full requires a model without hidden layers, hidden: \[\]"),
    ("dgp_ep", {"optimizer": "sep", "alpha": 0.5}, "alpha: 1, found 0.5"),
    ("dgp_ep", {"optimizer": "sep", "alpha": 1, "propagation": "full"}, "propagation: diagonal"),
    ("dgp_ep", {"site_rate": 0.2}, "optimizer: sep"),
    ("dgp_ep", {"training": "released program", "steps": 500}, "has steps: 6000; leave one of them out"),
    ("dropout", {"tau": 1.0, "validation_fraction": 0.3}, "validation_fraction has no effect if tau is set"),
    ("ensemble", {"epsilon": 0.1}, "set adversarial: true"),
    *(("ensemble", {"epochs": 4, name: 7}, name) for name in ("folds", "validation_points", "max_epochs")),
    ("ep_nn", {"hidden": (2,), "linear_units": 3}, "linear_units"),
    ("ep_nn", {"prior": "gaussian", "groups": "unit"}, "groups requires a prior with scales"),
    ("ep_nn", {"prior": "gaussian", "release": 0.1}, "release and .* require a prior with sites"),
    ("ep_nn", {"prior": "gaussian", "prior_updates": "once"}, "once require a prior with sites"),
    ("ep_nn", {"prior": "gaussian", "scale_deviation": 1.0}, SCALES),
    ("ep_nn", {"prior": "gaussian", "bias": "own"}, SCALES),
    ("ep_nn", {"noise_variance": 0.1, "noise_mean": -3.0}, "noise_mean .* require learned noise"),
    ("ep_nn", {"prior": "ard", "bias": "own"}, ELSEWHERE),
    ("ep_nn", {"groups": "weight", "bias": "own"}, ELSEWHERE),
    ("ep_nn", {"groups": (0, 1), "bias": "own"}, "bias: own cannot be combined with a list of groups"),
    ("ep_nn", {"groups": (0, 2, 2)}, "without gaps"),
    ("ep_nn", {"groups": ()}, "without gaps"),
    ("gp", {"weight_variance": 2.0}, "weight_variance is not a parameter.* it has lengthscale, magnitude$"),
    ("gp", {"kernel": "linear", "lengthscale": 2.0}, "lengthscale is not a parameter.* it has weight_variance$"),
    ("gp", {"kernel": {"sum": ["linear", "constant"]}, "bias_variance": 2.0}, "bias_variance is not a parameter"),
    ("gp_t", {"noise_variance": 0.1}, "set scale, the sigma of the t distribution"),
    ("gp_t", {"duplicates": "merge"}, "duplicates: merge is exact for Gaussian noise only"),
    ("hmc", {"prior": "ard", "prior_scales": "layer"}, "prior_scales: layer takes prior: gaussian"),
    ("sgld", {"preconditioner": "rmsprop", "burn_in": 0.0}, "burn_in must be above 0"),
    ("sgp", {"search": "many", "minibatch": True}, "set minibatch: false"),
    ("swag", {"swag_epochs": 19}, "rank must be at most swag_epochs, 19"),
    ("mve", {"epochs": 3, "validation_fraction": 0.5}, "validation_fraction has no effect if epochs is set"),
    ("tagi", {"noise": "heteroscedastic", "noise_deviation": 0.1}, "leave noise_deviation out"),
    ("vi", {"noise": "heteroscedastic", "noise_variance": 0.1}, "leave noise_variance out"),
    ("vi", {"prior": "empirical", "prior_variance": 3.0}, "leave prior_variance out"),
    ("vi", {"covariance": "full", "prior": "empirical"}, "leave noise, prior and local_reparameterization out"),
    ("sgp", {"noise_floor": 1e-4, "noise_variance": 1e-6}, FLOOR),
    ("sgp", {"noise_floor": 1e-4, "optimize": False}, FLOOR),
    ("sgp", {"noise_floor": 1e-12}, "noise_floor must be at least 1e-08"),
    ("sgp", {"noise_floor": 1e9}, r"noise_floor must be below 1e\+08"),
]


@pytest.mark.parametrize(("name", "options", "words"), CONFLICTS)
def test_options_that_exclude_each_other_are_refused_in_one_line(
    name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=f"^options of {name}: .*{words.removesuffix('$')}.*$"):
        parse_options(methods.get(name), options)
    (problem,) = catalogue.check_options(name, options, Path())
    assert re.search(words, problem.problem)


ALLOWED: list[tuple[str, dict[str, Any]]] = [
    ("bb_alpha", {"covariance": "full", "hidden": ()}),
    ("dropout", {"validation_fraction": 0.3}),
    ("ensemble", {"epsilon": 0.1, "adversarial": True}),
    *(("ensemble", {name: 7}) for name in ("folds", "validation_points", "max_epochs")),
    ("gp", {"kernel": {"sum": ["linear", "nn"]}, "bias_variance": 2.0}),
    ("gp", {"kernel": {"sum": ["se", {"product": ["linear", "nn"]}]}, "lengthscale": [1, 2.5], "starts": 1}),
]


@pytest.mark.parametrize(("name", "options"), ALLOWED)
def test_the_same_options_are_allowed_where_they_have_an_effect(name: str, options: dict[str, Any]) -> None:
    assert catalogue.check_options(name, options, Path()) == []
    config(name, options)


HETEROSCEDASTIC = {"noise": "heteroscedastic", "prior": "empirical"}
DROPOUT = ("Dropout-1", "MC-dropout-1 (as quoted)")
LATER = ("hoDVI-1 (homoscedastic)",)
PUBLISHED: dict[str, list[tuple[dict[str, Any], tuple[str, ...]]]] = {
    "bp": [({}, ("BP",)), ({"hidden": (50, 50)}, ()), ({"epochs": 3}, ())],
    "dgp_ep": [({}, ()), ({"alpha": 1}, ("DGP-2-50", "DGP-2")), ({"alpha": 1, "optimizer": "sep"}, ())],
    "dropout": [
        *(({"hidden": (units,), "epochs": 400}, DROPOUT) for units in (50, 100)),
        *(({"hidden": (units,)}, (*DROPOUT, "MC-dropout-1")) for units in (50, 100)),
        ({"epochs": 3999}, DROPOUT),
        *((options, ()) for options in ({"hidden": (50, 50)}, {"hidden": (7,)}, {"epochs": 399})),
    ],
    "gp": [
        ({"kernel": "nn", "prior": "none"}, ("GP-ARD",)),
        ({"kernel": "nn", "prior": "none", "ard": False}, ("GP",)),
        ({"prior": "none"}, ()),
    ],
    # Bui et al. (2015) have HMC-1. Activation and hyperpriors of NN-MC (Jylanki et al. 2014) are unknown.
    "hmc": [
        *(({"hidden": (units,), "steps": 10}, ("HMC-1",)) for units in (50, 100)),
        *(({"activation": name}, ()) for name in ("tanh", "probit")),
        *((options, ()) for options in ({"prior_scales": "layer"}, {"prior": "ard"}, {"hidden": (10,)})),
        *((options, ()) for options in ({"hidden": (50, 50)}, {"noise_variance": 0.1}, {"prior_variance": 1.0})),
        ({"prior": "ard", "activation": "probit", "hidden": (10,)}, ()),
    ],
    "pbp": [
        ({}, ("PBP", "PBP-1")), ({"hidden": (50, 50)}, ("PBP-2",)), ({"hidden": (50, 50, 50)}, ()), ({"epochs": 3}, ()),
    ],
    "sgld": [
        *(({"hidden": (units,), "step_size": 0.3}, ("SGLD-1",)) for units in (50, 100)),
        *(({"hidden": (units, units)}, ("SGLD-2",)) for units in (50, 100)),
        *((options, ()) for options in ({"hidden": (7,)}, {"preconditioner": "rmsprop"})),
        *((options, ()) for options in ({"prior_variance": 2.0}, {"noise_variance": 0.1})),
    ],
    "sgp": [
        ({}, ("GP-50", "FITC-50")), ({"inducing": 100}, ("GP-100",)), ({"approximation": "vfe"}, ("SGPR-50",)),
        *((options, ()) for options in ({"ard": False}, {"inducing": 20}, {"kernel": "nn"}, {"optimize": False})),
    ],
    "vi": [
        *(({"hidden": (units,)}, ("VI(KW)-1", *LATER)) for units in (50, 100)),
        *(({"hidden": (units, units)}, ("VI(KW)-2",)) for units in (50, 100)),
        *((options, LATER) for options in ({"prior_variance": 0.9}, {"local_reparameterization": True})),
        ({"prior": "empirical"}, LATER),
        ({"prior": "empirical", "hidden": (50, 50)}, ()),
        ({"covariance": "full"}, ()),
        *(({"hidden": (50, 50), **options}, ()) for options in (
            {"prior_variance": 0.9}, {"local_reparameterization": True}
        )),
        *((options, ()) for options in ({"hidden": (7,)}, {"noise_variance": 0.1}, {"epochs": 999})),
        (HETEROSCEDASTIC, ("MCVI-1 (mean-field reparam S=10)",)),
        *((HETEROSCEDASTIC | one, ()) for one in ({"prior": "fixed"}, {"hidden": (50, 50)}, {"epochs": 999})),
    ],
    "vi_graves": [({}, ("VI", "VI(G)-1")), ({"hidden": (50, 50)}, ()), ({"epochs": 39}, ())],
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_columns_of_published_tables_have_the_options_of_the_paper_only(name: str) -> None:
    for options, columns in PUBLISHED[name]:
        assert methods.get(name).published(config(name, options)) == columns, options


# What stored cells were computed with; a search may try any configuration, in which rounding errors may decide.
VERSIONS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "bb_alpha": [
        ({"schedule": "released program", "learning_rate": 1e-3, "test_samples": 50}, "1"), ({"hidden": ()}, "1"),
        ({}, "2"),
    ],
    "bp": [({}, "1")],
    "dgp_ep": [
        ({"schedule": "constant", "start": "random", "steps": 6000, "learning_rate": 0.005}, "1"), ({}, "2"),
        ({"schedule": "constant"}, "2"), ({"start": "random"}, "2"),
    ],
    "vi": [({}, "1"), ({"noise": "heteroscedastic"}, "1"), ({"prior": "empirical"}, "2")],
}  # fmt: skip


@pytest.mark.parametrize("name", VERSIONS)
def test_results_of_earlier_options_keep_their_version(name: str) -> None:
    for options, version in VERSIONS[name]:
        assert methods.version(name, config(name, options)) == version, options
    assert methods.version(name) == "2"


def test_later_options_are_no_factors_at_their_neutral_values() -> None:
    released = {"schedule": "released program", "learning_rate": 1e-3, "test_samples": 50}
    assert "schedule" not in factors(config("bb_alpha", released))
    assert not {"restarts", "stop"} & factors(config("ep_nn", {})).keys()
    changed = {"restarts": 5, "stop": "evidence"}
    assert factors(config("ep_nn", changed)).items() >= changed.items()
    assert {"masses", "gradients"}.isdisjoint(factors(config("hmc", {"masses": "per weight"})))
    assert factors(config("hmc", {}))["masses"] == "pooled"
    assert factors(config("hmc", {"gradients": "single"}))["gradients"] == "single"
