"""Squared residuals of a perceptron over all data points, and their gradient, for a log joint with Gaussian noise.

The data are processed in chunks whose hidden outputs stay in the processor's caches. For one rectified hidden layer,
``rectified`` is faster if the processor has wide registers. Hidden units are rectified (``mlp``), tanh or probit-like
(``smooth``); kernels receive the activation as one of the numbers of ``ACTIVATIONS``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.models import mlp, rectified, smooth
from ep_bench.numerics.copying import copy_vector
from ep_bench.numerics.jit import REORDER, jit

CHUNK = 128
RELU = 0
ACTIVATIONS = {"relu": RELU, "tanh": smooth.TANH, "probit": smooth.PROBIT}


class ResidualsWorkspace(NamedTuple):
    """Scratch for a chunk of data points and a network with P weights.

    Kernels for fields that are None are not compiled; without slopes the hidden units are rectified.
    """

    Z: Any  # (CHUNK * units,) hidden outputs
    S: Any  # (CHUNK * units,) their slopes; None for rectified units
    D: Any  # (2, CHUNK * widest)
    f: Any  # (CHUNK,)
    part: Any  # (P,) gradient of a chunk
    rectified: Any  # workspace of ``rectified``, None if that module does not support the network


def workspace(layers: Any, kind: int, rows: int = 0) -> ResidualsWorkspace:
    """Return scratch for a network with layers (L, 3) and activation ``kind``, and ``rows`` or more data points."""
    units = CHUNK * mlp.units(layers)
    single_layer = rectified.workspace(layers) if kind == RELU else None
    return ResidualsWorkspace(
        np.empty(units),
        None if kind == RELU else np.empty(units),
        np.empty((2, CHUNK * mlp.widest(layers))),
        np.empty(CHUNK),
        np.empty(mlp.count(layers)),
        None if single_layer is None or rows < len(single_layer.f) else single_layer,
    )


def half_squares(X: Any, y: Any, w: Any, layers: Any, kind: int, work: ResidualsWorkspace, g: Any) -> float:
    """Return half the sum of squared residuals of data X (N, d), y (N,), and write its gradient g (P,).

    w (P,), layers (L, 3). The result is NaN if N is below the ``rows`` of ``workspace``. Kernels call
    ``chosen_half_squares`` instead.
    """
    return chosen_half_squares(X, y, w, layers, kind, work, work.rectified, work.S, g)


@jit(relaxed=REORDER)
def chosen_half_squares(
    X: Any, y: Any, w: Any, layers: Any, kind: int, work: ResidualsWorkspace, single_layer: Any, slopes: Any, g: Any
) -> float:
    """Do the same as ``half_squares`` with the fields ``rectified`` (``single_layer``) and S (``slopes``) of ``work``.

    The compiler chooses between kernels by arguments that are None, but not by fields.
    """
    if single_layer is None:
        return _chunked_half_squares(X, y, w, layers, kind, work, slopes, g)
    if len(y) < len(single_layer.f):
        return np.nan
    return rectified.half_squares(X, y, w, single_layer, g)


@jit(relaxed=REORDER, merged=True)
def _chunked_half_squares(
    X: Any, y: Any, w: Any, layers: Any, kind: int, work: ResidualsWorkspace, slopes: Any, g: Any
) -> float:
    """Do the same as ``half_squares`` in chunks; ``slopes`` (CHUNK * units,) is None for rectified units."""
    g[:] = 0.0
    squares = 0.0
    for start in range(0, len(y), CHUNK):
        rows = min(CHUNK, len(y) - start)
        chunk, f = X[start : start + rows], work.f[:rows]
        _forward(chunk, w, layers, kind, work, slopes, f)
        for b in range(rows):
            f[b] -= y[start + b]
        squares += square_norm(f)
        if slopes is None:
            mlp.backward(chunk, w, layers, work.Z, f, 1.0, work.part, work.D)
        else:
            smooth.backward(chunk, w, layers, work.Z, slopes, f, work.part, work.D)
        for i in range(g.size):
            g[i] += work.part[i]
    return 0.5 * squares


@jit(relaxed=REORDER)
def square_norm(x: Any) -> float:
    """Return the sum of squares of x (n,).

    The loop is separate because, next to writes, the order of its sum could depend on the alignment of the arrays.
    """
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total


@jit(relaxed=REORDER)
def _forward(X: Any, w: Any, layers: Any, kind: int, work: ResidualsWorkspace, slopes: Any, f: Any) -> None:
    """Write the outputs f (B,) at X (B, d); ``slopes`` is None for rectified units."""
    if slopes is None:
        mlp.forward(X, w, layers, work.Z, f)
    else:
        smooth.forward(X, w, layers, kind, work.Z, slopes, f)


@jit(relaxed=REORDER)
def fill_outputs(X: Any, W: Any, layers: Any, kind: int, work: ResidualsWorkspace, out: Any) -> None:
    """Write the outputs out (K, N) of networks with weights W (K, P) at X (N, d)."""
    for start in range(0, X.shape[0], CHUNK):
        rows = min(CHUNK, X.shape[0] - start)
        for k in range(W.shape[0]):
            _forward(X[start : start + rows], W[k], layers, kind, work, work.S, work.f[:rows])
            copy_vector(work.f, out[k, start : start + rows])


def outputs(X: Any, W: Any, layers: Any, kind: int) -> Any:
    """Return the outputs (K, N) of networks with weights W (K, P) at X (N, d).

    Raises ValueError if the number of columns of X is not the number of inputs.
    """
    if X.ndim != 2 or X.shape[1] != layers[0, 1]:
        raise ValueError(f"X must have shape (n, {layers[0, 1]}), found {X.shape}")
    out = np.empty((len(W), len(X)))
    rows = np.array(X, dtype=np.float64, order="C")
    fill_outputs(rows, np.ascontiguousarray(W), layers, kind, workspace(layers, kind), out)
    return out
