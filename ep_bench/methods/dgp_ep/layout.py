"""Position of each parameter of a deep Gaussian process in one vector theta (P,).

Parameters are stored layer by layer. A layer with D_in inputs and D_out outputs has logarithms of lengthscales
(G, D_in), signal standard deviations (G,) and noise standard deviations (G,), with G = 1 if its outputs share
hyperparameters, else G = D_out. For every output follow inducing inputs Z (M, D_in), the factor R (M (M + 1) / 2: the
upper triangle row by row, its diagonal logarithmic) and theta_2 (M,).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ep_bench.types import Array


class Structure(NamedTuple):
    """Sizes of a deep Gaussian process."""

    dims: tuple[int, ...]  # numbers of inputs, of units of the hidden layers and of outputs
    inducing: int  # M, per output
    shared: bool = True  # one set of hyperparameters per layer, not one per output
    whitened: bool = False  # factors of ``stochastic_ep`` in place of R and theta_2


class Layer(NamedTuple):
    """Views of the parameters of one layer."""

    log_lengthscales: Array  # (G, D_in)
    log_magnitude: Array  # (G,) of the signal's standard deviation
    log_noise: Array  # (G,) of the noise's standard deviation
    inputs: Array  # (D_out, M, D_in) inducing inputs
    factor: Array  # (D_out, M (M + 1) / 2) R
    linear: Array  # (D_out, M) theta_2


def shapes(structure: Structure) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the shapes of the parameters of each layer, in the order of ``Layer``."""
    M = structure.inducing
    for d_in, d_out in zip(structure.dims, structure.dims[1:], strict=False):
        groups = 1 if structure.shared else d_out
        yield (groups, d_in), (groups,), (groups,), (d_out, M, d_in), (d_out, M * (M + 1) // 2), (d_out, M)


def size(structure: Structure) -> int:
    """Return the number of parameters."""
    return sum(int(np.prod(shape)) for layer in shapes(structure) for shape in layer)


def layers(structure: Structure, theta: Array) -> list[Layer]:
    """Return views of the parameters theta (P,) per layer. Raises ValueError if theta has another shape."""
    if theta.shape != (size(structure),):
        raise ValueError(
            f"theta must have shape ({size(structure)},) for a network {structure.dims}, found {theta.shape}"
        )
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
    """Return the offsets (L, 6) of the parts of each layer in theta, for kernels."""
    table, at = [], 0
    for layer in shapes(structure):
        row = []
        for shape in layer:
            row.append(at)
            at += int(np.prod(shape))
        table.append(row)
    return np.array(table, dtype=np.int64)
