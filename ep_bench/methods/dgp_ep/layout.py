"""Where each parameter of a deep Gaussian process lies in one vector.

Layer after layer, of a layer with D_in inputs and D_out outputs: logarithms of the lengthscales (G, D_in), of the
signal's deviation (G,) and of the noise's deviation (G,), with G = 1 where the outputs share them, else D_out; then of
every output the inducing inputs Z (M, D_in), the factor R (M (M + 1) / 2: the upper triangle row by row, its diagonal
as logarithms), and theta_2 (M,).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ep_bench.types import Array


class Structure(NamedTuple):
    """Sizes of a deep Gaussian process."""

    dims: tuple[int, ...]  # of the inputs, the hidden layers and the outputs
    inducing: int  # M, of every output
    shared: bool = True  # do the outputs of a layer have the same hyperparameters?
    whitened: bool = False  # are the factors those of module ``stochastic_ep``, in the places of R and theta_2?


class Layer(NamedTuple):
    """Views of one layer's parameters."""

    log_lengthscales: Array  # (G, D_in)
    log_magnitude: Array  # (G,) of the signal's standard deviation
    log_noise: Array  # (G,) of the noise's standard deviation
    inputs: Array  # (D_out, M, D_in) inducing inputs
    factor: Array  # (D_out, M (M + 1) / 2)
    linear: Array  # (D_out, M) theta_2


def shapes(structure: Structure) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the shapes of each layer's parameters, in the order of ``Layer``."""
    M = structure.inducing
    for d_in, d_out in zip(structure.dims, structure.dims[1:], strict=False):
        groups = 1 if structure.shared else d_out
        yield (groups, d_in), (groups,), (groups,), (d_out, M, d_in), (d_out, M * (M + 1) // 2), (d_out, M)


def size(structure: Structure) -> int:
    """Return the number of parameters."""
    return sum(int(np.prod(shape)) for layer in shapes(structure) for shape in layer)


def layers(structure: Structure, theta: Array) -> list[Layer]:
    """Return views of the parameters (P,), layer by layer."""
    if theta.shape != (size(structure),):
        raise ValueError(f"a network {structure.dims} has {size(structure)} parameters, found {theta.shape}")
    found, at = [], 0
    for layer in shapes(structure):
        views = []
        for shape in layer:
            count = int(np.prod(shape))
            views.append(theta[at : at + count].reshape(shape))
            at += count
        found.append(Layer(*views))
    return found


def offsets(structure: Structure) -> Any:
    """Return where each part of each layer begins, (L, 6), for kernels."""
    table, at = [], 0
    for layer in shapes(structure):
        row = []
        for shape in layer:
            row.append(at)
            at += int(np.prod(shape))
        table.append(row)
    return np.array(table, dtype=np.int64)
