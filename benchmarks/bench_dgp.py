"""Steps of ``dgp_ep`` beside PyTorch and GPyTorch, and by inducing inputs, rows and layers; one core each.

A step is 50 rows of 13 inputs, the gradient and Adam included. PyTorch has the same energy without an inverse of K, by
autograd, and first gives the same value and gradient; GPyTorch its own deep Gaussian process with 10 samples, which is
another bound. All sides step in turns in double precision; each ratio is the median of ratios of turns. Seconds are the
processor's: other programs on the machine do not count as far as they only take turns. Without the extra ``peers``
those are skipped. The curves (``dgp_speed``) are ours alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import dgp_speed
from benchmarks.dgp_speed import BATCH, CHAINS, INDUCING, RATE, ROWS
from ep_bench.methods.dgp_ep.energy import DGPProblem, energy

SAMPLES = 10  # of GPyTorch, its documentation's
STEPS, ROUNDS = 18, 9  # a turn: two passes over the rows


def peers_of(hidden):
    """Return functions that make so many steps, by name, and how far PyTorch's energy is from ours."""
    for package in ("torch", "gpytorch"):
        pytest.importorskip(package, reason=f"{package} is not here: pip install 'ep-bench[peers]'")
    import torch

    from benchmarks import dgp_peers

    torch.set_num_threads(1)
    structure, theta, X, y = dgp_speed.drawn(hidden)
    tied = dgp_peers.TiedEnergy(structure, ROWS, theta, RATE)
    sampled = dgp_peers.Sampled(hidden, X[: structure.inducing].copy(), ROWS, SAMPLES, RATE)
    A, b, rng = torch.from_numpy(X), torch.from_numpy(y), np.random.default_rng(1)

    def walker(side):
        def walk(steps):
            for _ in range(steps):
                rows = torch.from_numpy(rng.permutation(ROWS)[:BATCH])
                side.step(A[rows], b[rows])

        return walk

    return {"pytorch": walker(tied), "gpytorch": walker(sampled)}, apart(tied, structure, theta, A[:BATCH], b[:BATCH])


def apart(tied, structure, theta, X, y):
    """Return the largest difference of the energies and of their gradients, relative to the largest element."""
    value, gradient = energy(DGPProblem(structure, "gaussian", ROWS), theta, X.numpy(), y.numpy())
    theirs = tied.value(X, y)
    theirs.backward()
    by_value = abs(theirs.item() / value - 1.0)
    by_gradient = np.abs(tied.theta.grad.numpy() - gradient).max() / np.abs(gradient).max()
    assert max(by_value, by_gradient) < 1e-8
    return max(by_value, by_gradient)


@pytest.mark.parametrize("hidden", CHAINS[:2], ids=["none", "2"])
def bench_step_beside_peers(benchmark, hidden):
    with threadpool_limits(1):
        sides, difference = peers_of(hidden)
        ours = dgp_speed.walker(hidden)
        every = {"our": ours, **sides}
        for walk in every.values():
            walk(2)
        turns = np.array([[dgp_speed.seconds(walk, STEPS) for walk in every.values()] for _ in range(ROUNDS)])
        for side, taken in zip(every, 1e3 * turns.T, strict=True):
            benchmark.extra_info[f"{side}_ms_a_step"] = f"{taken.min():.3f} least, {np.median(taken):.3f} median"
        for side, taken in zip(sides, turns.T[1:], strict=True):
            benchmark.extra_info[f"{side}_over_ours"] = round(float(np.median(taken / turns[:, 0])), 1)
        benchmark.extra_info["pytorch_apart"] = f"{difference:.1e}"
        benchmark.pedantic(ours, args=(STEPS,), rounds=ROUNDS, iterations=1)


@pytest.mark.parametrize("hidden", CHAINS[:2], ids=["none", "2"])
def bench_inducing_inputs(benchmark, hidden):
    with threadpool_limits(1):
        step, row = dgp_speed.by_inducing(hidden), dgp_speed.of_a_row(hidden)
        for M, one, two in zip(INDUCING, step, row, strict=True):
            benchmark.extra_info[f"M_{M}"] = f"{1e3 * one:.2f} ms a step, {1e6 * two:.2f} µs a row more"
        for words, chosen in (("all", slice(None)), ("the_last_two", slice(2, None))):
            M = INDUCING[chosen]
            powers = f"{dgp_speed.slope(M, step[chosen]):.2f} a step, {dgp_speed.slope(M, row[chosen]):.2f} a row"
            benchmark.extra_info[f"power_of_M_over_{words}"] = powers
        benchmark.pedantic(dgp_speed.walker(hidden), args=(STEPS,), rounds=ROUNDS, iterations=1)


def bench_layers(benchmark):
    with threadpool_limits(1):
        taken = dgp_speed.by_layers()
        for hidden, value in zip(CHAINS, taken, strict=True):
            benchmark.extra_info[dgp_speed.name(hidden)] = f"{1e3 * value:.2f} ms a step"
        more = np.diff(taken)
        benchmark.extra_info["a_layer_more"] = ", ".join(f"{1e3 * one:.2f}" for one in more) + " ms"
        benchmark.pedantic(dgp_speed.walker(CHAINS[-1]), args=(STEPS,), rounds=ROUNDS, iterations=1)
