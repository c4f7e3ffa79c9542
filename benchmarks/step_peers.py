"""Training by the newer methods and by other programs, on one core; processor time, 64 bits.

The programs are those of the authors of ``vbll``, ``ivon`` (ivon-opt) and ``tagi`` (pytagi, 32 bits), and PyTorch as
its users would write it, with bounds equal to ours. Both sides take as many steps over the same data points,
alternately: other computations disturb both alike, and the ratios count. Ours are whole fits (of ``vbll`` and ``mve``
epochs, since a fit chooses their number), theirs the training alone. Their networks of ``neural_linear`` and ``swag``
have one data point per step, as ours, or minibatches. Their ``dgp_vi`` has Adam for all parameters.

    pip install -e '.[peers]'
    python -m benchmarks.step_peers docs/figures/step-peers.json
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ivon as ivon_opt
import numpy as np
import pytagi
import torch
from pytagi import nn as tagi_nn
from threadpoolctl import threadpool_limits
from torch import nn
from vbll.layers.regression import Regression

from benchmarks.conftest import environment_lines
from ep_bench import load_dataset, methods, standard_split
from ep_bench.methods import mve, vbll
from ep_bench.models import mlp
from ep_bench.models.empirical_prior import MODE, SHAPE
from ep_bench.numerics.minibatch import AdamMinibatches, AdamSchedule
from ep_bench.types import Rows

UNITS, BATCH, ROUNDS = 50, 32, 3
EPOCHS, DEEP_STEPS, DEEP_BATCH, INDUCING = 20, 200, 100, 50
LOG_2PI = math.log(2.0 * math.pi)
BOSTON = load_dataset("boston")
TRAIN = standard_split(len(BOSTON.y), 0)[0]
X, Y = ((part - part.mean(axis=0)) / part.std(axis=0) for part in (BOSTON.X[TRAIN], BOSTON.y[TRAIN]))
N, D = X.shape
INPUTS, TARGETS = torch.tensor(X), torch.tensor(Y)
RNG = np.random.default_rng(0)


def whole(method: str, **options: Any) -> Callable[[], Any]:
    """Return a function that fits one of our methods."""
    used = methods.get(method)
    return lambda: used.fit(Rows(X, Y), used.config(**options), np.random.default_rng(0))


def epochs(theta: Any, objective: Callable[..., float]) -> Callable[[], Any]:
    """Return a function that trains ``theta`` for ``EPOCHS``; ``objective(rows, gradient)``."""
    minibatches = AdamMinibatches(objective, theta, N, AdamSchedule(N * EPOCHS, BATCH, 3e-3, None))
    return lambda: [minibatches.run_epoch(0, RNG.permutation(N)) for _ in range(EPOCHS)]


def train(loss: Any, optimiser: Any, batch: int = BATCH, count: int = N, after: Any = lambda: None) -> None:
    """Do the same in PyTorch with the first ``count`` data points; ``loss(x, y)`` of a minibatch."""
    for _ in range(EPOCHS):
        for rows in torch.randperm(count).split(batch)[: count // batch]:
            optimiser.zero_grad()
            loss(INPUTS[rows], TARGETS[rows]).backward()
            optimiser.step()
        after()


def adam(parameters: Any, rate: float) -> Any:
    return torch.optim.Adam(parameters, lr=rate, fused=True)


def network(outputs: int = 1) -> Any:
    return nn.Sequential(nn.Linear(D, UNITS), nn.ReLU(), nn.Linear(UNITS, outputs))


def own_vbll() -> Callable[[], Any]:
    layers = mlp.layout(D, (UNITS,))
    theta = vbll.start(layers, RNG)
    return epochs(theta, lambda rows, g: vbll.negative_bound(theta, X[rows], Y[rows], layers, N, vbll.Config(), g))


def own_mve() -> Callable[[], Any]:
    layers = mlp.layout(D, (UNITS,), outputs=2)
    w = mlp.initial_weights(layers, RNG)
    return epochs(w, lambda rows, g: mve.weighted_likelihood(w, X[rows], Y[rows], layers, 0.5, 1e-6, g))


def last_layer() -> None:
    model = nn.Sequential(nn.Linear(D, UNITS), nn.ReLU(), Regression(UNITS, 1, 1.0 / N))
    train(lambda x, y: model(x).train_loss_fn(y[:, None]), adam(model.parameters(), 3e-3))


def mean_and_variance() -> None:
    model = network(2)

    def loss(x: Any, y: Any) -> Any:
        mean, raw = model(x).unbind(1)
        s = nn.functional.softplus(raw) + 1e-6
        return (0.5 * ((y - mean).square() / s + s.log()) * s.detach().sqrt()).mean()

    train(loss, adam(model.parameters(), 3e-3))


def descend(batch: int, count: int = N) -> Any:
    """Return the weights (epochs, P) after each epoch of descent with momentum."""
    model, kept = network(), []
    sgd = torch.optim.SGD(model.parameters(), lr=2e-3, momentum=0.9, weight_decay=0.1 / N, fused=True)
    train(
        lambda x, y: 0.5 * (model(x)[:, 0] - y).square().mean(), sgd, batch, count,
        lambda: kept.append(nn.utils.parameters_to_vector(model.parameters()).detach()),
    )  # fmt: skip
    return torch.stack(kept)


def averaged(batch: int) -> None:
    """Train on four fifths of the data, for the noise variance, and on all, each with the moments of the weights."""
    for count in (N - round(0.2 * N), N):
        W = descend(batch, count)[EPOCHS // 2 :]
        W - W.cumsum(0) / torch.arange(1, len(W) + 1)[:, None], W.var(0)


def conditioned() -> None:
    pytagi.manual_seed(0)
    model = tagi_nn.Sequential(tagi_nn.Linear(D, UNITS), tagi_nn.ReLU(), tagi_nn.Linear(UNITS, 1))
    model.set_threads(1)
    updater, variance = tagi_nn.OutputUpdater(model.device), np.array([0.09], dtype=np.float32)
    x, y = X.astype(np.float32), Y.astype(np.float32)
    for _ in range(EPOCHS):
        for row in RNG.permutation(N):
            model(x[row])
            updater.update(model.output_z_buffer, y[row : row + 1], variance, model.input_delta_z_buffer)
            model.backward()
            model.step()


def newton() -> None:
    model, log_noise = network(), torch.zeros((), requires_grad=True)
    step = ivon_opt.IVON(model.parameters(), 0.01, N, hess_init=10.0, beta2=0.9999, weight_decay=1.0 / N)
    noise = adam([log_noise], 0.01)
    for _ in range(EPOCHS):
        for rows in torch.randperm(N).split(BATCH)[: N // BATCH]:
            with step.sampled_params(train=True):
                step.zero_grad()
                noise.zero_grad()
                squares = (model(INPUTS[rows])[:, 0] - TARGETS[rows]).square().mean()
                (0.5 * (log_noise + squares * torch.exp(-log_noise))).backward()
            step.step()
            noise.step()


def moments_loss(means: Any, logs: Any) -> Callable[..., Any]:
    """Return the negative bound of ``dvi`` by means and log standard deviations of weights and biases per layer."""
    rates = [(SHAPE + 1.0) * MODE / len(means[i]) for i in (0, 0, 2, 2)]

    def loss(x: Any, y: Any) -> Any:
        V = [(2.0 * one).exp() for one in logs]
        a, v = torch.addmm(means[1], x, means[0]), torch.addmm(V[1], x * x, V[0])
        root = v.sqrt()
        alpha = a / root
        cdf, pdf = torch.special.ndtr(alpha), root * torch.exp(-0.5 * alpha * alpha - 0.5 * LOG_2PI)
        z, second = a * cdf + pdf, (a * a + v) * cdf + a * pdf
        z_var = second - z * z
        f = torch.addmm(means[3], z, means[2])
        f_var = torch.addmm(V[3], second, V[2]) + z_var @ means[2].square()
        residual = f[:, 0] - z_var @ (means[2][:, 0] * means[2][:, 1]) - y
        scaled = torch.exp(0.5 * f_var[:, 1] - f[:, 1]) * (f_var[:, 0] + residual.square())
        total = 0.5 * N * (LOG_2PI + (f[:, 1] + scaled).mean())
        for m, log, variance, b in zip(means, logs, V, rates, strict=True):
            squares = (m * m + variance).sum()
            p = ((squares + 2.0 * b) / (m.numel() + 2.0 * SHAPE + 2.0)).detach()
            total = total + 0.5 * (squares / p + m.numel() * (p.log() - 1.0)) - log.sum()
            total = total + (SHAPE + 1.0) * p.log() + b / p + math.lgamma(SHAPE) - SHAPE * math.log(b)
        return total

    return loss


def deterministic() -> None:
    means = [one.detach().T.contiguous().requires_grad_() for one in network(2).parameters()]
    logs = [torch.full_like(one, math.log(0.005)).requires_grad_() for one in means]
    train(moments_loss(means, logs), adam([*means, *logs], 0.01))


class DeepGP(nn.Module):
    """The bound of ``dgp_vi`` with one draw; the outputs of a layer share covariance function and inducing inputs."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        outputs, first = [D] * (layers - 1) + [1], [0.5 * math.log(D)] * D
        self.hyper = nn.ParameterList(
            torch.tensor([*first, 0.0, math.log(0.05 if o == 1 else 1e-5)]) for o in outputs
        )  # fmt: skip
        self.Z = nn.ParameterList(INPUTS[:INDUCING].clone() for _ in outputs)
        self.mean = nn.ParameterList(torch.zeros(INDUCING, o) for o in outputs)
        self.factor = nn.ParameterList(
            (math.log(0.01) * (o > 1) * torch.eye(INDUCING)).repeat(o, 1, 1) for o in outputs
        )

    def forward(self, h: Any, y: Any) -> Any:
        """Return minus the bound of a minibatch h (B, d), y (B,)."""
        total = 0.0
        for hyper, Z, mean, factor in zip(self.hyper, self.Z, self.mean, self.factor, strict=True):
            scale, s2, noise = hyper[:-2].exp(), (2.0 * hyper[-2]).exp(), hyper[-1].exp()
            K, k = (s2 * torch.exp(-0.5 * squared_distances(Z / scale, at / scale)) for at in (Z, h))
            L = torch.linalg.cholesky(K + 1e-6 * torch.eye(INDUCING))
            V = torch.linalg.solve_triangular(L, k, upper=False).T
            logs = factor.diagonal(dim1=1, dim2=2)
            F = factor.tril(-1) + torch.diag_embed(logs.exp())
            f = V @ mean + (h if mean.shape[1] > 1 else 0.0)
            f_var = (s2 - V.square().sum(1))[:, None] + (V @ F).square().sum(2).T
            total = total + 0.5 * (mean.square().sum() + F.square().sum() - logs.numel()) - logs.sum()
            h = f + (f_var + noise).sqrt() * torch.randn(f.shape)
        e = ((f[:, 0] - y).square() + f_var[:, 0]) / noise
        return total + 0.5 * N * (LOG_2PI + noise.log() + e.mean())


def squared_distances(a: Any, b: Any) -> Any:
    return (a.square().sum(1)[:, None] + b.square().sum(1) - 2.0 * a @ b.T).clamp_min(0.0)


def deep(layers: int) -> None:
    model = DeepGP(layers)
    optimiser = adam(model.parameters(), 0.02)
    for _ in range(DEEP_STEPS):
        rows = torch.randperm(N)[:DEEP_BATCH]
        optimiser.zero_grad()
        model(INPUTS[rows], TARGETS[rows]).backward()
        optimiser.step()


LINEAR = whole("neural_linear", epochs=EPOCHS)
SWAG = whole("swag", epochs=EPOCHS // 2, swag_epochs=EPOCHS // 2, rank=EPOCHS // 2)
TAGI = whole("tagi", epochs=EPOCHS, noise_deviation=0.3)
STEP, FIT, MINIBATCHES = "step of training", f"whole fit, {EPOCHS} epochs", f", minibatches of {BATCH} there"
MINI = EPOCHS * (N // BATCH)
COMPARED = [  # method, other program, what is measured, number of it in a round, rounds of ours and of theirs
    ("vbll", "vbll (authors)", STEP, MINI, own_vbll(), last_layer),
    ("mve", "PyTorch", STEP, MINI, own_mve(), mean_and_variance),
    ("neural_linear", "PyTorch", FIT, 1, LINEAR, lambda: descend(1)),
    ("neural_linear", "PyTorch", FIT + MINIBATCHES, 1, LINEAR, lambda: descend(BATCH)),
    ("swag", "PyTorch", FIT, 1, SWAG, lambda: averaged(1)),
    ("swag", "PyTorch", FIT + MINIBATCHES, 1, SWAG, lambda: averaged(BATCH)),
    ("tagi", "pytagi (authors)", "data point", EPOCHS * N, TAGI, conditioned),
    ("dvi", "PyTorch", STEP, MINI, whole("dvi", epochs=EPOCHS), deterministic),
    ("ivon", "ivon-opt (authors)", STEP, MINI, whole("ivon", epochs=EPOCHS), newton),
    ("dgp_vi", "PyTorch", f"{STEP}, 1 layer", DEEP_STEPS, whole("dgp_vi", steps=DEEP_STEPS, layers=1), lambda: deep(1)),
    ("dgp_vi", "PyTorch", f"{STEP}, 2 layers", DEEP_STEPS, whole("dgp_vi", steps=DEEP_STEPS), lambda: deep(2)),
]  # fmt: skip


def rows() -> Iterator[dict[str, Any]]:
    """Yield one row per comparison, with medians over the rounds."""
    for method, program, what, count, *sides in COMPARED:
        taken = []
        for _ in range(ROUNDS + 1):  # the first compiles
            for side in sides:
                begun = time.process_time()
                side()
                taken.append(1e6 * (time.process_time() - begun) / count)
        own, other = np.median(np.reshape(taken, (-1, 2))[1:], axis=0)
        times = {"ours": float(f"{own:.4g}"), "theirs": float(f"{other:.4g}")}
        found = {"method": method, "program": program, "what": f"{what}, boston", "unit": "CPU µs"} | times
        print(found, flush=True)
        yield found


def main(path: str) -> None:
    """Write environment and rows to the file ``path``."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    programs = ", ".join(f"{name} {version(name)}" for name in ("vbll", "ivon-opt", "pytagi"))
    with threadpool_limits(1):
        found = {"environment": [*environment_lines(), f"programs: {programs}"], "rows": list(rows())}
    Path(path).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
