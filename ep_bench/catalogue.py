"""What a study may name: the data sets, methods and experiments that there are, and their options."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ep_bench import adapters, data, estimator, methods
from ep_bench import options as options_in_words
from ep_bench.spec import OptionProblem
from ep_bench.types import UserError

# Answers like OptionProblem, field by field.
ExperimentCheck = Callable[[str, Mapping[str, Any]], Sequence[tuple[Any, ...]]]


class InstalledCatalogue:
    """The catalogue of this installation, for ``spec.read_study``."""

    def __init__(
        self,
        experiments: Collection[str] = (),
        experiment_problems: ExperimentCheck | None = None,
        published: Collection[str] | None = None,
        sources: Collection[str] | None = None,
    ) -> None:
        self.datasets: Collection[str] = (*data.names(), *data.plugin_names())
        self.methods: Collection[str] = methods.names()
        self.experiments: Collection[str] = experiments
        self._experiment_problems = experiment_problems
        if published is not None:
            self.published = published
        if sources is not None:
            self.sources = sources

    def check_experiment(self, name: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:  # noqa: ARG002
        """Return what is wrong with an experiment's options."""
        if self._experiment_problems is None:
            return []
        return [OptionProblem(*problem) for problem in self._experiment_problems(name, options)]

    def check_options(self, use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
        """Return what is wrong with a method entry's options; none where all are known and well typed."""
        try:
            outside = adapters.is_target(use)
            problems = _external_problems if outside else _registry_problems
            return problems(use, options, base)
        except UserError as error:
            return [OptionProblem(("use",), str(error), None, None, None)]

    def search_space(self, use: str, base: Path) -> Mapping[str, Any] | None:
        """Return the search space that a method declares (a class from outside as ``tune_space``), None without one."""
        if not adapters.is_target(use):
            return methods.get(use).space or None
        try:
            space = getattr(adapters.resolve(use, base), "tune_space", None)
        except UserError:  # noted where the options are checked
            return None
        return space if isinstance(space, Mapping) else None


def _registry_problems(use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:  # noqa: ARG001
    method = methods.get(use)
    own, common = estimator.split_common(options)
    found = [
        OptionProblem((key,), "wrong type", value, "true or false", None)
        for key, value in common.items()
        if not isinstance(value, bool)
    ]
    try:
        # As JSON: strict, so that true is no 1 and "40" no 40, but a list may stand for a tuple.
        method.config.model_validate_json(json.dumps(own), strict=True)  # type: ignore[attr-defined]
    except ValidationError as error:
        wrong = options_in_words.problems(method.config, use, error, estimator.COMMON_OPTIONS)
        found += [OptionProblem(*problem) for problem in wrong]
    return found


def _external_problems(use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
    return [OptionProblem(*problem) for problem in adapters.problems(use, options, base)]
