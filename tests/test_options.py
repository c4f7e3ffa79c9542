"""Options in words: what each takes, and what is wrong with those given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
)

from ep_bench import catalogue, experiments, methods, options
from ep_bench.errors import spell
from ep_bench.estimator import parse_options


class Part(BaseModel):
    size: PositiveInt


class Config(BaseModel):
    """Every kind of option there is, or may be."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    whole: int = 1
    positive: PositiveInt = 1
    from_one: int = Field(1, ge=1)
    count: int = Field(3, ge=2, le=5)
    number: FiniteFloat = 0.5
    share: float = Field(0.5, ge=0, lt=1)
    ratio: float = Field(0.5, gt=0, le=1)
    small: float = Field(0.5, le=1.5)
    word: str = "a"
    flag: bool = False
    choice: Literal["relu", "tanh", "probit"] = "relu"
    single: Literal["only"] = "only"
    perhaps: Literal["se", "nn"] | None = None
    given: PositiveFloat | None = None
    nu: PositiveFloat | Literal["optimize", "grid"] = 4.0
    layers: tuple[PositiveInt, ...] = (50,)
    some: tuple[PositiveInt, ...] = Field((50,), min_length=1)
    few: list[float] = Field([], max_length=3)
    pair: tuple[PositiveFloat, PositiveFloat] = (0.1, 0.01)
    mixed: tuple[int, bool] = (1, True)
    kinds: tuple[Literal["se", "nn"], ...] = ("se",)
    shares: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = ()
    nested: tuple[tuple[int, ...], ...] = ()
    parts: tuple[Part, ...] = ()
    part: Part | None = None
    table: dict[str, float] = {}
    strange: np.random.Generator | None = None
    even: int = 2
    third: int = Field(3, multiple_of=3)

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("Odd numbers are not taken")
        return value


TAKES = {
    "whole": "a whole number", "positive": "a positive whole number", "from_one": "a positive whole number",
    "count": "a whole number of at least 2 and at most 5", "number": "a number",
    "share": "a number of at least 0 and below 1", "ratio": "a number above 0 and at most 1",
    "small": "a number of at most 1.5", "word": "text", "flag": "true or false", "choice": "relu, tanh or probit",
    "single": "only", "perhaps": "se, nn or null", "given": "a positive number or null",
    "nu": "a positive number, optimize or grid", "layers": "a list of positive whole numbers",
    "some": "a list of one or more positive whole numbers", "few": "a list of 0 to 3 numbers",
    "pair": "two positive numbers", "mixed": "a list of a whole number and true or false",
    "kinds": "a list of se or nn", "shares": "a list of numbers above 0 and below 1", "nested": "a list of lists",
    "parts": "a list of mappings", "part": "a mapping or null", "table": "a mapping", "strange": "",
    "even": "a whole number", "third": "a whole number",
}  # fmt: skip


def test_what_an_option_takes_is_read_off_its_type() -> None:
    assert {option.name: option.takes for option in options.table(Config)} == TAKES


def test_defaults_are_shown_as_a_study_writes_them() -> None:
    shown = {option.name: option.default for option in options.table(Config)}
    assert [shown[name] for name in ("given", "flag", "pair", "mixed", "few")] == [
        "null", "false", "[0.1, 0.01]", "[1, true]", "[]",
    ]  # fmt: skip
    assert [(option.name, option.default) for option in options.table(Part)] == [("size", "")]


@pytest.mark.parametrize("name", methods.REGISTRY)
def test_every_option_of_the_registry_has_words(name: str) -> None:
    assert all(option.takes for option in options.table(methods.get(name).config))


def messages(**given: Any) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        Config(**given)
    return [str(problem.error()) for problem in options.problems(Config, "it", refused.value, ("standardize",))]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"layers": 5}, "layers: must be a list of positive whole numbers such as [50]; found 5"),
        ({"layers": [5, 0]}, "layers[1]: must be a positive whole number; found 0"),
        ({"some": []}, "some: must be a list of one or more positive whole numbers such as [50]; found []"),
        ({"pair": [1, 2, 3]}, "pair: must be two positive numbers such as [0.1, 0.01]; found [1, 2, 3]"),
        ({"given": 0}, "given: must be a positive number or null; found 0"),
        ({"number": float("nan")}, "number: must be a finite number; found nan"),
        ({"share": 1}, "share: must be a number of at least 0 and below 1; found 1"),
        ({"flag": "maybe"}, "flag: must be true or false; found 'maybe'"),
        ({"choice": "Tanh"}, "choice: unknown value; found 'Tanh'; allowed: probit, relu, tanh; did you mean 'tanh'?"),
        ({"perhaps": "NN"}, "perhaps: unknown value; found 'NN'; allowed: nn, null, se; did you mean 'nn'?"),
        ({"kinds": ["sse"]}, "kinds[0]: unknown value; found 'sse'; allowed: nn, se; did you mean 'se'?"),
        (
            {"nu": "optimise"},
            "nu: unknown value; found 'optimise'; allowed: a positive number, grid, optimize; did you mean 'optimize'?",
        ),
        ({"parts": [{"size": 0}]}, "parts[0].size: must be a positive whole number; found 0"),
        ({"parts": [{}]}, "parts[0].size: is missing"),
        ({"part": 3}, "part: must be a mapping or null; found 3"),
        ({"even": 3}, "even: odd numbers are not taken; found 3"),
    ],
)  # fmt: skip
def test_messages_name_the_allowed_values(given: dict[str, Any], words: str) -> None:
    assert messages(**given) == [words]


def test_a_type_without_words_keeps_pydantics() -> None:
    (message,) = messages(strange=3)
    assert message.startswith("strange: must be an instance of Generator")


def test_an_unknown_option_brings_the_nearest() -> None:
    (message,) = messages(chioce="relu")
    assert message.startswith("chioce: it has no such option; allowed: choice, ")
    assert "standardize" in message
    assert message.endswith("did you mean 'choice'?")


NEAR = [
    ("hmc", "activation", "Tanh", "tanh"), ("hmc", "prior", "ARD", "ard"), ("laplace", "hessian", "diagonal", "diag"),
    ("laplace", "predictive", "linearised", "linearized"), ("laplace", "prior", "layer", "layers"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "option", "found", "meant"), NEAR)
def test_wrong_values_get_suggestions_in_python_and_in_studies(name: str, option: str, found: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"^options of {name}: {option}: .*did you mean '{meant}'"):
        parse_options(methods.get(name), {option: found})
    (problem,) = catalogue.check_options(name, {option: found}, Path())
    assert (problem.path, problem.name, meant in (problem.allowed or ())) == ((option,), found, True)


@pytest.mark.parametrize(
    "given", [{"hidden": 5}, {"hidden": [5, 0]}, {"noise_prior": [1]}, {"noise_prior": "broad"}, {"chains": "x"}]
)
def test_python_and_studies_use_the_same_words(given: dict[str, Any]) -> None:
    (problem,) = catalogue.check_options("hmc", given, Path())
    with pytest.raises(ValueError) as refused:
        parse_options(methods.get("hmc"), given)
    assert str(refused.value) == f"options of hmc: {spell(problem.path)}: {problem.problem}; found {problem.found!r}"


def test_several_wrong_options_have_a_line_each() -> None:
    with pytest.raises(ValueError) as refused:
        parse_options(methods.get("hmc"), {"chains": 0, "prior": "ARD"})
    head, *lines = str(refused.value).splitlines()
    assert head == "options of hmc:"
    assert [line.split(":")[0] for line in lines] == ["  prior", "  chains"]


def test_experiments_have_the_same_messages() -> None:
    found = experiments.problems("calibration", {"cases": [{"labl": "a"}], "replications": 3})
    assert [(spell(p.path), p.problem, p.name) for p in found] == [
        ("cases[0].label", "is missing", None),
        ("cases[0].labl", "calibration has no such option", "labl"),
        ("replications", "must be a whole number of at least 20", None),
    ]
