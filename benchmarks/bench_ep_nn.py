"""Convergence of ``ep_nn`` on splits of boston, time per sweep by data points and units, and q(w) compared with LAPACK.

A standard split has 455 data points with 13 inputs; the network has 10 units. ``pbp`` with its defaults is fitted in
the same round, as a measure of the machine. Times are processor times on one core, so other programs on the machine
have little influence. The curves are those of ``nn_speed``.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import ep_bench
from benchmarks import nn_speed
from benchmarks.dgp_speed import minimum_times, slope
from benchmarks.nn_speed import ROWS, UNITS, UPDATES, WIDTHS
from ep_bench.errors import UserError
from ep_bench.estimator import warm_up

FOLDS = 5


def standard_splits():
    try:
        data = ep_bench.load_dataset("boston")
    except UserError as error:
        pytest.skip(str(error))
    for index in range(FOLDS):
        train, _ = ep_bench.standard_split(len(data.y), index)
        yield data.X[train], data.y[train]


def fitted(name, options, X, y):
    """Return a fitted model and its seconds, without compilation."""
    begun = time.process_time()
    model = ep_bench.Estimator(name, **options, random_state=0).fit(X, y)
    return model, time.process_time() - begun


@pytest.mark.parametrize("prior", ["laplace", "ard"])
def bench_boston(benchmark, prior):
    rows = list(standard_splits())
    warm_up("ep_nn", {"prior": prior})
    warm_up("pbp", {})
    with threadpool_limits(1):
        found = [(*fitted("ep_nn", {"prior": prior}, *split), fitted("pbp", {}, *split)[1]) for split in rows]
        taken, others = (np.array([one[place] for one in found]) for place in (1, 2))
        benchmark.extra_info["seconds_to_convergence"] = ", ".join(f"{value:.2f}" for value in taken)
        benchmark.extra_info["sweeps"] = ", ".join(str(one[0].n_iterations_) for one in found)
        benchmark.extra_info["converged"] = f"{sum(one[0].converged_ for one in found)} of {len(found)}"
        benchmark.extra_info["over_pbp"] = round(float(np.median(taken / others)), 1)
        benchmark.pedantic(fitted, args=("ep_nn", {"prior": prior}, *rows[0]), rounds=1, iterations=1)


@pytest.mark.parametrize("updates", UPDATES)
def bench_sweeps(benchmark, updates):
    with threadpool_limits(1):
        for words, sizes, values in (
            ("n", ROWS, nn_speed.by_rows(updates)), ("K", UNITS, nn_speed.by_units(updates)),
        ):  # fmt: skip
            for size, value in zip(sizes, values, strict=True):
                benchmark.extra_info[f"{words}_{size}"] = f"{1e3 * value:.2f} ms per sweep"
            benchmark.extra_info[f"from_a_line_in_{words}"] = (
                f"{100 * nn_speed.from_a_line(sizes, values):.0f}% at most"
            )
            benchmark.extra_info[f"power_of_{words}_over_the_last_two"] = round(slope(sizes[-2:], values[-2:]), 2)
        benchmark.pedantic(nn_speed.sweeper(updates=updates), args=(1,), rounds=5, iterations=1)


@pytest.mark.parametrize("d", WIDTHS)
def bench_posterior(benchmark, d):
    with threadpool_limits(1):
        sides = nn_speed.posterior_functions(d)
        ours, bare, whole = minimum_times(sides)
        benchmark.extra_info["over_potrf_and_potri"] = round(ours / bare, 2)
        benchmark.extra_info["over_products_potrf_and_potri"] = round(ours / whole, 2)
        benchmark.pedantic(sides[0], args=(1,), rounds=5, iterations=1)
