"""The data sets, methods, experiments and published tables that a study may name, and checks of their options."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ep_bench import adapters, data, estimator, experiments, methods, published
from ep_bench import options as option_descriptions
from ep_bench.errors import OptionProblem, UserError
from ep_bench.experiments.study_folder import relative_to

COMMON_OPTIONS = estimator.COMMON_OPTIONS  # with defaults, of all registry methods
_KNOWN: dict[str, Callable[[], Collection[str]]] = {
    "datasets": data.names,
    "methods": methods.names,
    "experiments": experiments.names,
    "published": published.columns,
    "sources": published.source_names,
}


def known(what: str) -> Collection[str]:
    """Return the names of ``datasets``, ``methods``, ``experiments``, ``published`` columns or ``sources``."""
    return _KNOWN[what]()


def check_experiment(name: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
    """Return the problems of the options of an experiment; ``base`` is the folder of the study."""
    with relative_to(base):
        return experiments.problems(name, options)


def check_options(use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
    """Return the problems of the options of a method entry; ``base`` is the folder of the study."""
    try:
        if adapters.is_target(use):
            problems = list(adapters.problems(use, options, base))
            return problems or list(adapters.missing_prediction(use, options, base))
        return _registry_problems(use, options)
    except UserError as error:
        return [OptionProblem.of(("use",), error)]


def resolved_options(use: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return valid options with the defaults of the method; those of an external class are not known."""
    return options if adapters.is_target(use) else estimator.resolve(use, options).factors


def search_space(use: str, base: Path) -> Mapping[str, Any] | None:
    """Return the search space that a method declares, or None; an external class declares ``tune_space``."""
    if not adapters.is_target(use):
        return methods.get(use).space or None
    try:
        space = getattr(adapters.resolve(use, base), "tune_space", None)
    except UserError:  # check_options reports it
        return None
    return space if isinstance(space, Mapping) else None


def option_models() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pydantic models of the options of all methods and of all experiments, by name."""
    of_methods = {name: methods.get(name).config for name in methods.names()}
    return of_methods, {name: experiments.options_model(name) for name in experiments.names()}


def _registry_problems(use: str, options: Mapping[str, Any]) -> list[OptionProblem]:
    method = methods.get(use)
    own, common = estimator.split_common(options)
    found = [
        OptionProblem((key,), "wrong type", value, "true or false")
        for key, value in common.items()
        if not isinstance(value, bool)
    ]
    try:
        # Strict validation as JSON accepts a list for a tuple, but neither true for 1 nor "40" for 40.
        method.config.model_validate_json(json.dumps(own), strict=True)  # type: ignore[attr-defined]
    except ValidationError as error:
        found += option_descriptions.problems(method.config, use, error, COMMON_OPTIONS)
    return found
