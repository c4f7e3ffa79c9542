"""Epochs of ``vbll`` and of the authors' program, and of ``mve`` and PyTorch, on one core; processor time, 64 bits.

Both sides take the steps of an epoch alternately, on data and networks of the same size, each with its own Adam. Other
programs disturb both alike; the ratios count.

    pip install -e '.[peers]'
    python -m benchmarks.last_layer_peers docs/figures/last-layer-peers.json
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from vbll.layers.regression import Regression

from benchmarks.conftest import environment_lines
from ep_bench.methods import mve, vbll
from ep_bench.models import mlp
from ep_bench.numerics.minibatch import AdamMinibatches, AdamSchedule

N, D, UNITS, BATCH, RATE, ROUNDS = 455, 13, 50, 32, 3e-3, 7  # a split of boston
DATA = np.random.default_rng(0)
X, Y = DATA.standard_normal((N, D)), DATA.standard_normal(N)
STEPS = N // BATCH


def ours(theta: Any, objective: Callable[..., float]) -> Callable[[], Any]:
    """Return a function that takes the steps of an epoch; ``objective(rows, gradient)``."""
    minibatches = AdamMinibatches(objective, theta, N, AdamSchedule(STEPS * 2 * ROUNDS, BATCH, RATE, None))
    return lambda: minibatches.run_epoch(0, DATA.permutation(N))


def theirs(modules: Any, loss: Callable[..., Any]) -> Callable[[], Any]:
    """Return the same in PyTorch; ``loss(X, y)`` of a minibatch."""
    optimiser = torch.optim.Adam(modules.parameters(), lr=RATE, fused=True)
    inputs, targets = torch.tensor(X), torch.tensor(Y)[:, None]

    def epoch() -> None:
        for rows in torch.from_numpy(DATA.permutation(N)).split(BATCH)[:STEPS]:
            optimiser.zero_grad()
            loss(inputs[rows], targets[rows]).backward()
            optimiser.step()

    return epoch


def hidden() -> Any:
    """Return the hidden layer in PyTorch."""
    return torch.nn.Sequential(torch.nn.Linear(D, UNITS), torch.nn.ReLU())


def last_layers() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return the epochs of ``vbll`` and of the authors' program."""
    layers, config = mlp.layout(D, (UNITS,)), vbll.Config()
    theta = vbll.start(layers, DATA)
    own = ours(theta, lambda rows, g: vbll.negative_bound(theta, X[rows], Y[rows], layers, N, config, g))
    network = torch.nn.Sequential(hidden(), Regression(UNITS, 1, 1.0 / N))
    return own, theirs(network, lambda inputs, targets: network(inputs).train_loss_fn(targets))


def mean_and_variance() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return the epochs of ``mve`` and of PyTorch, beta 0.5."""
    layers = mlp.layout(D, (UNITS,), outputs=2)
    w = mlp.initial_weights(layers, DATA)
    own = ours(w, lambda rows, g: mve.weighted_likelihood(w, X[rows], Y[rows], layers, 0.5, 1e-6, g))
    network = torch.nn.Sequential(hidden(), torch.nn.Linear(UNITS, 2))

    def loss(inputs: Any, targets: Any) -> Any:
        outputs = network(inputs)
        s = torch.nn.functional.softplus(outputs[:, 1:]) + 1e-6
        return (0.5 * ((targets - outputs[:, :1]).square() / s + s.log()) * s.detach().sqrt()).mean()

    return own, theirs(network, loss)


def rows() -> Iterator[dict[str, Any]]:
    """Yield the rows of both methods."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    for method, program, sides in (
        ("vbll", "vbll (authors)", last_layers()), ("mve", "PyTorch", mean_and_variance()),
    ):  # fmt: skip
        taken = []
        for _ in range(ROUNDS + 1):
            for side in sides:
                begun = time.process_time()
                side()
                taken.append(1e6 * (time.process_time() - begun) / STEPS)
        own, other = np.median(np.reshape(taken, (-1, 2))[1:], axis=0)
        times = {"ours": float(f"{own:.4g}"), "theirs": float(f"{other:.4g}")}
        what = "step of training, boston, float64"
        yield {"method": method, "program": program, "what": what, "unit": "CPU µs"} | times


def main(path: str) -> None:
    """Write environment and rows to the file ``path``."""
    with threadpool_limits(1):
        found = {"environment": environment_lines(), "rows": list(rows())}
    Path(path).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
