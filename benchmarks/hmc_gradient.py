"""CPU time of the gradient of the HMC potential in double and single precision, one hidden layer of 50 rectified units.

Run from a clone: ``python benchmarks/hmc_gradient.py``. The last two columns are the fraction of the speed of a product
of two matrices (512, 512) in the same precision: operations per second of the gradient divided by those of the product.
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from ep_bench.models import mlp, rectified, residuals

SIZES = {"boston": (455, 13), "concrete": (927, 8), "wine": (1439, 11), "yacht": (277, 6)}  # training points, inputs
UNITS, ROUNDS, REPEATS, SQUARE = 50, 15, 100, 512


def cpu_seconds(call, repeats=1):
    """Return the shortest CPU time of a call; the rounds before it compile the kernel."""
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(repeats):
            call()
        times.append((time.process_time() - begun) / repeats)
    return min(times)


def product_speed(dtype):
    """Return the operations per second of a matrix product."""
    A = np.random.default_rng(0).random((SQUARE, SQUARE)).astype(dtype)
    return 2.0 * SQUARE**3 / cpu_seconds(lambda: A @ A)


def gradient_seconds(n, d):
    """Return the CPU seconds of a gradient in double and in single precision."""
    rng, layers = np.random.default_rng(0), mlp.layout(d, (UNITS,))
    X, y, w = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=mlp.count(layers))
    work, single, g = residuals.workspace(layers, residuals.RELU, n), rectified.single_precision(X, y, layers), w.copy()
    return (
        cpu_seconds(lambda: residuals.half_squares(X, y, w, layers, residuals.RELU, work, g), REPEATS),
        cpu_seconds(lambda: rectified.single_half_squares(w, single, g), REPEATS),
    )


def main() -> None:
    """Print one line per data set."""
    with threadpool_limits(1):
        speeds = [product_speed(dtype) for dtype in (np.float64, np.float32)]
    print("data set   ns per point: double  single   ratio   fraction of a product: double  single")
    for name, (n, d) in SIZES.items():
        double, single = gradient_seconds(n, d)
        operations = n * (4.0 * (d + 1) + 2.0) * UNITS
        fractions = [operations / seconds / speed for seconds, speed in zip((double, single), speeds, strict=True)]
        print(
            f"{name:10} {1e9 * double / n:20.0f} {1e9 * single / n:7.0f} {double / single:7.2f} "
            f"{fractions[0]:30.2f} {fractions[1]:7.2f}"
        )


if __name__ == "__main__":
    main()
