"""Method entries among the options of an experiment, as those of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from ep_bench import methods
from ep_bench.estimator import parse_options
from ep_bench.types import nearest


def refuse_unknown(problem: str, name: str, allowed: Iterable[str]) -> None:
    """Raise ValueError with the nearest right name where ``name`` is not allowed."""
    if name not in set(allowed):
        hint = nearest(name, allowed)
        suffix = f"; did you mean {hint!r}?" if hint else ""
        raise ValueError(f"{problem}; found {name!r}; allowed: {', '.join(sorted(allowed))}{suffix}")


class ExperimentMethod(BaseModel):
    """A method as in a study; every further key is one of its options."""

    model_config = ConfigDict(frozen=True, extra="allow")

    use: str
    label: str = ""

    @model_validator(mode="after")
    def _known(self) -> ExperimentMethod:
        refuse_unknown("unknown method", self.use, methods.names())
        known = methods.get(self.use).config.model_fields  # type: ignore[attr-defined]
        for option in self.model_extra or {}:
            refuse_unknown(f"{self.use} has no such option", option, known)
        parse_options(methods.get(self.use), dict(self.model_extra or {}))
        return self

    @property
    def name(self) -> str:
        """Return what the figure and the tables call the method."""
        return self.label or self.use

    def to_json(self) -> dict[str, Any]:
        """Return the entry in JSON's types, with the version of the method."""
        return {**self.model_dump(mode="json"), "version": methods.version(self.use)}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ExperimentMethod:
        """Return the entry that ``to_json`` tells."""
        return cls.model_validate({name: value for name, value in told.items() if name != "version"})
