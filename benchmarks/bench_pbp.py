"""Probabilistic backpropagation: microseconds per point and epoch, beside slower and faster things.

Each network's row says what one core takes for an epoch, prior refinement included, divided by the rows. ``twin`` is
the slow twin of the tests, ``plain`` a plain compiled kernel of the same algorithm, ``bare`` a kernel that does no more
than read and write every weight's mean and variance once a point. Machines are noisy and shared: each ratio is the
median of ratios taken in turns.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from ep_bench.methods.pbp.filtering import filter_rows, refine_prior
from ep_bench.methods.pbp.layout import network, scratch
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import WIDTH, load, store
from tests.twins.plain_pbp import PlainPBP
from tests.twins.reference import SlowPBP

NETWORKS = [(13, 50), (8, 50), (9, 100), (90, 100), (13, 50, 50)]
ROWS = 1000
ROUNDS = 15


@jit(relaxed=FUSE)
def touch(points, mean, variance):
    for _ in range(points):
        for i in range(0, mean.size // WIDTH * WIDTH, WIDTH):
            m, v = load(mean, i), load(variance, i)
            store(mean, i, m * 0.999999 + v)
            store(variance, i, v * 0.999999)


def problem(sizes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS, sizes[0])), rng.normal(size=ROWS)
    shapes = [(o, i + 1) for i, o in zip(sizes, (*sizes[1:], 1), strict=True)]
    return X, y, rng.permutation(ROWS), [rng.normal(size=shape) / np.sqrt(shape[1]) for shape in shapes]


def seconds(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


@pytest.mark.parametrize("sizes", NETWORKS, ids=lambda sizes: "-".join(map(str, (*sizes, 1))))
def bench_epoch(benchmark, sizes):
    X, y, order, start = problem(sizes)
    net, plain, bare = network(start, 6.0, 6.0), PlainPBP(start), network(start, 6.0, 6.0)
    room = scratch(net)

    def epoch():
        filter_rows(X, y, order, net, *room)
        refine_prior(net)

    def slow():
        SlowPBP.begin(start).fit(X[:50], y[:50], [np.arange(50)])

    def plainly():
        plain.fit(X, y, [order])

    def barely():
        touch(ROWS, bare.mean, bare.variance)

    for warm in (epoch, plainly, barely):
        warm()
    turns = np.array([[seconds(f) for f in (epoch, plainly, barely)] for _ in range(ROUNDS)])
    ours = np.median(turns[:, 0])
    benchmark.extra_info["us_per_point_and_epoch"] = round(float(1e6 * ours / ROWS), 3)
    benchmark.extra_info["plain_over_ours"] = round(float(np.median(turns[:, 1] / turns[:, 0])), 2)
    benchmark.extra_info["ours_over_bare"] = round(float(np.median(turns[:, 0] / turns[:, 2])), 2)
    benchmark.extra_info["twin_over_ours"] = round(seconds(slow) / 50 / (ours / ROWS))
    benchmark.pedantic(epoch, rounds=ROUNDS, iterations=1)
    print(f"\n{'-'.join(map(str, (*sizes, 1)))}: {dict(benchmark.extra_info)}")
