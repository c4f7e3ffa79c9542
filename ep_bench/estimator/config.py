"""Options of registry methods: those of the method, validated by its Config, and those common to all methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from ep_bench import methods
from ep_bench import options as models
from ep_bench.options import problems
from ep_bench.types import Method

# Options of all registry methods, in addition to their own.
COMMON_OPTIONS: Mapping[str, Any] = {"standardize": True}


class ResolvedOptions(NamedTuple):
    """All options of a registry method, and what identifies its numbers in the factors of a cell."""

    options: dict[str, Any]  # with all defaults
    factors: dict[str, Any]  # the same without later options at their neutral values
    version: str


def parse_options(method: Method, options: Mapping[str, Any]) -> Any:
    """Return the frozen Config of a method. Raises ValueError with one line per wrong option."""
    try:
        return method.config(**options)
    except ValidationError as error:
        wrong = [str(problem.error()) for problem in problems(method.config, method.name, error)]
        lead = " " if len(wrong) == 1 else "\n  "
        raise ValueError(f"options of {method.name}:{lead}{lead.join(wrong)}") from None


def split_common(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a registry method without the common ones, and the common ones with their defaults."""
    own = {key: value for key, value in options.items() if key not in COMMON_OPTIONS}
    return own, {**COMMON_OPTIONS, **{key: options[key] for key in COMMON_OPTIONS if key in options}}


def resolve(name: str, options: Mapping[str, Any], *, tuned: bool = False) -> ResolvedOptions:
    """Return the options of a registry method with defaults and its version for them.

    With ``tuned``, the version is the newest one, since a search may try any configuration. Raises ValueError for wrong
    options.
    """
    method = methods.get(name)
    own, common = split_common(options)
    config = parse_options(method, own)
    version = methods.version(name, None if tuned else config)
    return ResolvedOptions(config.model_dump(mode="json") | common, models.factors(config) | common, version)


def restore(name: str, factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a registry method from the options among the factors of a stored cell."""
    return {**models.neutral_values(methods.get(name).config), **factors}
