"""Probabilistic backpropagation: microseconds per data point and epoch, compared with slower and faster programs.

The time of an epoch on one core, prior refinement included, is divided by the number of data points. ``twin`` is the
slow twin of the tests, ``plain`` a plain compiled kernel of the same algorithm, and ``bare`` a kernel that only reads
and writes the mean and variance of every weight once per data point. The sides alternate, because machines are noisy
and shared; each ratio is the median over the rounds.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.plain_pbp import PlainPBP
from ep_bench.methods.pbp.filtering import filter_rows, refine_prior
from ep_bench.methods.pbp.layout import network, scratch
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.numerics.simd.vector import WIDTH, load, store
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
    work = scratch(net)

    def epoch():
        filter_rows(X, y, order, net, *work)
        refine_prior(net)

    def twin_epoch():
        SlowPBP.begin(start).fit(X[:50], y[:50], [np.arange(50)])

    def plain_epoch():
        plain.fit(X, y, [order])

    def bare_epoch():
        touch(ROWS, bare.mean, bare.variance)

    for warm in (epoch, plain_epoch, bare_epoch):
        warm()
    turns = np.array([[seconds(f) for f in (epoch, plain_epoch, bare_epoch)] for _ in range(ROUNDS)])
    ours = np.median(turns[:, 0])
    benchmark.extra_info["us_per_point_and_epoch"] = round(float(1e6 * ours / ROWS), 3)
    benchmark.extra_info["plain_over_ours"] = round(float(np.median(turns[:, 1] / turns[:, 0])), 2)
    benchmark.extra_info["ours_over_bare"] = round(float(np.median(turns[:, 0] / turns[:, 2])), 2)
    benchmark.extra_info["twin_over_ours"] = round(seconds(twin_epoch) / 50 / (ours / ROWS))
    benchmark.pedantic(epoch, rounds=ROUNDS, iterations=1)
    print(f"\n{'-'.join(map(str, (*sizes, 1)))}: {dict(benchmark.extra_info)}")
