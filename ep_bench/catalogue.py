"""The data sets, methods, experiments and published tables that a study may name, and checks of their options."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ep_bench import adapters, data, estimator, experiments, methods, published
from ep_bench import options as option_descriptions
from ep_bench.errors import OptionProblem, UserError
from ep_bench.experiments.study_folder import relative_to
from ep_bench.spec.schema import SchemaNames


class InstalledCatalogue:
    """The `spec.Catalogue` of this installation."""

    def __init__(self) -> None:
        self.datasets: Collection[str] = data.names()
        self.methods: Collection[str] = methods.names()
        self.experiments: Collection[str] = experiments.names()
        self.published: Collection[str] = published.columns()
        self.sources: Collection[str] = published.source_names()

    def check_experiment(self, name: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
        """Return the problems of the options of an experiment."""
        with relative_to(base):
            return experiments.problems(name, options)

    def check_options(self, use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
        """Return the problems of the options of a method entry."""
        try:
            if adapters.is_target(use):
                problems = list(adapters.problems(use, options, base))
                return problems or list(adapters.missing_prediction(use, options, base))
            return _registry_problems(use, options)
        except UserError as error:
            return [OptionProblem.of(("use",), error)]

    def resolved_options(self, use: str, options: Mapping[str, Any], base: Path) -> Mapping[str, Any]:  # noqa: ARG002
        """Return valid options with the defaults of the method; those of an external class are not known."""
        return options if adapters.is_target(use) else estimator.resolve(use, options).factors

    def search_space(self, use: str, base: Path) -> Mapping[str, Any] | None:
        """Return the search space that a method declares, or None; an external class declares ``tune_space``."""
        if not adapters.is_target(use):
            return methods.get(use).space or None
        try:
            space = getattr(adapters.resolve(use, base), "tune_space", None)
        except UserError:  # check_options reports it
            return None
        return space if isinstance(space, Mapping) else None

    def schema_names(self) -> SchemaNames:
        """Return what the JSON schema of a study needs."""
        return SchemaNames(
            datasets=self.datasets,
            methods={name: methods.get(name).config for name in self.methods},
            experiments={name: experiments.options_model(name) for name in self.experiments},
            published=self.published,
            common=estimator.COMMON_OPTIONS,
        )


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
        found += option_descriptions.problems(method.config, use, error, estimator.COMMON_OPTIONS)
    return found
