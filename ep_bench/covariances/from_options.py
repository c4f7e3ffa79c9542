"""Covariances from the options of a study: a name, or a list of covariances under ``sum`` or ``product``.

Names are se, matern32, matern52, nn, linear and constant. Lists may be nested: {sum: [se, {product: [linear, nn]}]}.
Some methods also take ``evidence``: the one of ``CANDIDATES`` with the highest evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, WithJsonSchema

from ep_bench.covariances.compound import Product, Sum
from ep_bench.covariances.linear import Constant, Linear
from ep_bench.covariances.network import NetworkCovariance
from ep_bench.covariances.protocol import Covariance
from ep_bench.covariances.stationary import Kind, Stationary
from ep_bench.errors import nearest

_SIMPLE: dict[str, Callable[[int, bool], Covariance]] = {
    "nn": NetworkCovariance,
    "linear": Linear,
    "constant": lambda d, ard: Constant(),  # noqa: ARG005
}
_COMPOUND: dict[str, type[Sum | Product]] = {"sum": Sum, "product": Product}
NAMES = ("se", "matern32", "matern52", *_SIMPLE)
EVIDENCE = "evidence"
CANDIDATES = ("se", "matern52", "matern32")  # the same hyperparameters


def checked(kernel: Any) -> Any:
    """Return a valid ``kernel`` option, with lists for all sequences. Raises ValueError that describes the mistake."""
    if isinstance(kernel, str):
        if kernel not in NAMES:
            near = nearest(kernel, NAMES)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ValueError(f"unknown covariance {kernel!r}; allowed: {', '.join(NAMES)}{hint}")
        return kernel
    if isinstance(kernel, Mapping) and len(kernel) == 1 and set(kernel) <= set(_COMPOUND):
        ((word, parts),) = kernel.items()
        if isinstance(parts, list | tuple) and parts:
            return {word: [checked(part) for part in parts]}
    allowed = f"a covariance is one of {', '.join(NAMES)}, or a list of them under sum or product"
    raise ValueError(f"{allowed}; found {kernel!r}")


_SCHEMA = WithJsonSchema({"anyOf": [{"enum": list(NAMES)}, {"type": "object"}]})
Kernel = Annotated[Any, BeforeValidator(checked), _SCHEMA]
ChosenKernel = Annotated[
    Any,
    BeforeValidator(lambda kernel: kernel if kernel == EVIDENCE else checked(kernel)),
    WithJsonSchema({"anyOf": [{"enum": [*NAMES, EVIDENCE]}, {"type": "object"}]}),
]


def build(kernel: Any, d: int, ard: bool) -> Covariance:
    """Return the covariance of d inputs for a ``checked`` kernel option; ``ard`` means one parameter per input."""
    if isinstance(kernel, str):
        return _SIMPLE[kernel](d, ard) if kernel in _SIMPLE else Stationary(cast("Kind", kernel), d, ard)
    ((word, parts),) = kernel.items()
    return _COMPOUND[word](tuple(build(part, d, ard) for part in parts))


def candidates(kernel: Any, d: int, ard: bool) -> list[Covariance]:
    """Return the covariances of d inputs between which the evidence decides, only one unless it is ``evidence``."""
    return [build(each, d, ard) for each in (CANDIDATES if kernel == EVIDENCE else [kernel])]
