"""Method entries in the options of an experiment, written as in a study."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ep_bench import adapters, methods, tuning
from ep_bench.errors import OptionProblem, UserError
from ep_bench.estimator import Estimator, parse_options, warm_up
from ep_bench.experiments.study_folder import study_folder
from ep_bench.types import Array

SCORES = ("rmse", "ll")  # those of ``score_prediction``
NOISE = "noise_variance"  # option of some methods: known variance of the noise, for a standardised target


def short(value: float) -> float:
    """Return a number with four significant digits, as in a summary."""
    return float(f"{value:.4g}")


def refuse_unknown(problem: str, name: str, allowed: Iterable[str]) -> None:
    """Raise ValueError if ``name`` is not allowed; the message suggests the nearest allowed name."""
    if name not in set(allowed):
        raise ValueError(str(UserError(problem, found=name, allowed=allowed, name=name)))


class Options(BaseModel):
    """Base class of the options of experiments: immutable, and without further keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ExperimentMethod(BaseModel):
    """A method entry as in a study; further keys are options of the method."""

    model_config = ConfigDict(frozen=True, extra="allow")

    use: str
    label: str = ""

    @model_validator(mode="after")
    def _known(self) -> ExperimentMethod:
        if "tune" in (self.model_extra or {}):
            raise ValueError("options are not searched in this experiment; give the options without tune")
        self._check()
        return self

    def _check(self) -> None:
        """Raise ValueError if the method or one of its options does not exist."""
        if ":" in self.use:
            raise ValueError(f"this experiment takes methods of the package only; found {self.use!r}")
        refuse_unknown("unknown method", self.use, methods.names())
        known = methods.get(self.use).config.model_fields  # type: ignore[attr-defined]
        for option in self.model_extra or {}:
            if option not in known:
                refuse_unknown(f"{self.use} has no such option", option, {*known, *type(self).model_fields})
        parse_options(methods.get(self.use), dict(self.model_extra or {}))

    @classmethod
    def named(cls, use: str, label: str, **options: Any) -> Self:
        """Return the entry of a method with its label and options."""
        return cls.model_validate({"use": use, "label": label, **options})

    def version(self) -> str:
        """Return the newest version of the method."""
        return methods.version(self.use)

    def version_of_options(self) -> str:
        """Return the version that last changed the numbers of the method with these options."""
        return methods.version(self.use, parse_options(methods.get(self.use), dict(self.model_extra or {})))

    def versions(self) -> dict[str, tuple[str, ...]]:
        """Return the versions with which stored results are current, the newest first, by what the entry names."""
        return {self.use: (self.version(), self.version_of_options())}

    @property
    def name(self) -> str:
        """Return the method's name in figures and tables."""
        return self.label or self.use


class AnyMethod(ExperimentMethod):
    """A method entry that may also name an external class, as in a study."""

    def _check(self) -> None:
        try:
            if not adapters.is_target(self.use):
                super()._check()
                return
            found = list(adapters.problems(self.use, self._external_options(), study_folder()))
        except UserError as error:
            raise ValueError(str(error)) from None
        if found:
            raise ValueError(str(self._with_own_keys(found[0]).error()))

    def _external_options(self) -> dict[str, Any]:
        """Return the options that an external class is checked with."""
        return dict(self.model_extra or {})

    def _with_own_keys(self, problem: OptionProblem) -> OptionProblem:
        """Return a problem of an unknown option with the keys of the entry among the allowed names."""
        if problem.name is None or problem.allowed is None or isinstance(problem.allowed, str) or len(problem.path) > 1:
            return problem
        return replace(problem, allowed={*problem.allowed, *type(self).model_fields})

    def version(self) -> str:
        """Return the version of the method; that of an external class depends on its file or package."""
        if adapters.is_target(self.use):
            return adapters.version(self.use, study_folder(), self.model_extra or {})
        return super().version()

    def version_of_options(self) -> str:
        """Return the version that last changed the numbers of the method with these options."""
        return self.version() if adapters.is_target(self.use) else super().version_of_options()

    def warm_up(self) -> None:
        """Compile or load the kernels of a method of the registry, before the time of a fit is measured."""
        if not adapters.is_target(self.use):
            warm_up(self.use, self.model_extra or {})

    def seconds(self, n: int, d: int) -> float | None:
        """Return the rough time of a fit to n points with d inputs, None for a method without an estimate."""
        if adapters.is_target(self.use):
            return None
        method = methods.get(self.use)
        return method.seconds(parse_options(method, dict(self.model_extra or {})), n, d) if method.seconds else None

    def build(self, seed: int) -> Any:
        """Return an unfitted model with ``fit`` and ``predict_dist``."""
        if adapters.is_target(self.use):
            return adapters.build(self.use, self.model_extra or {}, study_folder(), seed)
        return Estimator(self.use, **(self.model_extra or {}), random_state=seed)


Entry = TypeVar("Entry", bound=AnyMethod)


def distinct_names(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return method entries. Raises ValueError if two have the same name."""
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two methods are called {name!r}; give them different labels")
    return entries


def score_prediction(predicted: Any, y: Array) -> dict[str, float]:
    """Return RMSE (original units) and mean log density (nats) at test targets y (n,), NaN without a density.

    Raises ValueError if a score is not finite.
    """
    density = getattr(predicted, "logpdf", None)
    scores = {
        "rmse": float(np.sqrt(np.mean((predicted.mean() - y) ** 2))),
        "ll": float(np.mean(density(y))) if density is not None else float("nan"),
    }
    if not np.isfinite(scores["rmse"]) or np.isinf(scores["ll"]):
        raise ValueError("a score is not finite")
    return scores


class OptionSearch(BaseModel):
    """A search for options on validation points, in the space that the method declares, as ``tune`` of a study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: int = Field(30, ge=1)
    fraction: float = Field(0.2, gt=0, lt=1)
    score: Literal["ll", "rmse"] = "ll"


class KnownNoiseMethod(ExperimentMethod):
    """A method entry with an optional ``noise_deviation``; the other keys are options of the method."""

    noise_deviation: float | None = Field(
        None,
        gt=0,
        description="known standard deviation of the noise in the unit of the target, for methods with the option "
        "noise_variance",
    )

    @model_validator(mode="after")
    def _noise(self) -> KnownNoiseMethod:
        if self.noise_deviation is not None:
            if NOISE not in methods.get(self.use).config.model_fields:  # type: ignore[attr-defined]
                raise ValueError(f"noise_deviation: {self.use} has no option {NOISE}; it estimates the noise")
            if NOISE in (self.model_extra or {}):
                raise ValueError(f"noise_deviation and {NOISE} are the same quantity in two units: give one of them")
        parse_options(methods.get(self.use), self.options(1.0))
        return self

    def options(self, target_std: float) -> dict[str, Any]:
        """Return the method's options, for a training target of this standard deviation (ddof 0).

        ``noise_deviation`` becomes ``noise_variance``, the variance for a standardised target.
        """
        options = dict(self.model_extra or {})
        if self.noise_deviation is not None:
            options[NOISE] = (self.noise_deviation / target_std) ** 2
        return options


class SearchedMethod(KnownNoiseMethod):
    """A method entry with optional ``noise_deviation`` and ``tune``; the other keys are options of the method."""

    tune: OptionSearch | None = Field(None, description="search for options, as in a study; none by default")

    @model_serializer(mode="wrap")
    def _without_search(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out ``tune`` of entries without it, which are older than this key."""
        return {key: value for key, value in handler(self).items() if key != "tune" or value is not None}

    @model_validator(mode="after")
    def _searchable(self) -> SearchedMethod:
        if self.tune is not None and not methods.get(self.use).space:
            raise ValueError(f"tune: {self.use} declares no space of options")
        return self

    def fitted(self, X: Array, y: Array, seed: int) -> tuple[Any, float]:
        """Return the method fitted to X (n, d) and y (n,), and the seconds of search and fit without compilation."""
        options = self.options(float(y.std()))
        warm_up(self.use, options)
        started = perf_counter()
        options |= self._searched(X, y, seed)
        model = Estimator(self.use, **options, random_state=seed).fit(X, y)
        return model, perf_counter() - started

    def _searched(self, X: Array, y: Array, seed: int) -> dict[str, Any]:
        """Return the options with the best score on validation points among X (n, d) and y (n,); none without tune."""
        if self.tune is None:
            return {}
        space, score = methods.get(self.use).space, self.tune.score
        fitting, validation = tuning.validation_rows(len(y), self.tune.fraction, seed)

        def evaluate(options: Mapping[str, Any]) -> tuple[float | None, str]:
            chosen = {**self.options(float(y[fitting].std())), **options}
            try:
                with warnings.catch_warnings(action="ignore"):  # about trials that are not chosen
                    model = Estimator(self.use, **chosen, random_state=seed).fit(X[fitting], y[fitting])
                return score_prediction(model.predict_dist(X[validation]), y[validation])[score], ""
            except (ArithmeticError, ValueError) as error:  # a fit that diverges
                return None, str(error)

        defaults = methods.get(self.use).config().model_dump()
        start = {name: (self.model_extra or {}).get(name, defaults[name]) for name in space}
        return tuning.search(evaluate, space, start, trials=self.tune.trials, score=score, seed=seed).options
