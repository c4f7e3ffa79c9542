"""Common parts of the tests of deep Gaussian processes: networks by formula, conversion of parameters."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np

from ep_bench.methods.dgp_ep.energy import DGPProblem, energy, moments
from ep_bench.methods.dgp_ep.layout import Structure, layers, size
from tests.twins import plain_dgp, plain_dgp_full

VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "dgp_ep.json").read_text(encoding="utf-8"))
FIELDS = {
    "log_ls": "log_lengthscales", "log_sf": "log_magnitude", "log_sn": "log_noise",
    "Z": "inputs", "R": "factor", "theta2": "linear",
}  # fmt: skip


def network(dims, inducing=4, *, shared=True):
    """Return the layers of the reference values; without sharing, hyperparameters differ slightly."""
    found = []
    for l, (d_in, d_out) in enumerate(pairwise(dims)):
        d, o, m = np.arange(d_in), np.arange(d_out), np.arange(inducing)
        k, g = np.arange(inducing * (inducing + 1) // 2), np.arange(1 if shared else d_out)
        layer = {
            "log_ls": 0.1 + 0.15 * d - 0.1 * l + 0.07 * g[:, None],
            "log_sf": 0.1 - 0.05 * l - 0.06 * g,
            "log_sn": -1.0 - 0.3 * l + 0.1 * g,
            "Z": 1.2 * np.sin(0.9 * m[:, None] + 1.7 * d + 0.5 * o[:, None, None] + 0.3 * l),
            "R": 0.4 * np.sin(1 + k + 0.5 * o[:, None] + 0.25 * l),
            "theta2": 1.5 * np.cos(m + 0.6 * o[:, None] + 0.2 * l),
        }
        found.append(layer)
    return found


def rows(n=10, d=2, likelihood="gaussian", classes=3):
    """Return inputs and targets of the reference values; classes of the softmax alternate."""
    i = np.arange(n)
    X = 1.5 * np.sin(1.3 * i[:, None] + 0.7 * np.arange(d) + 0.1)
    y = np.sin(1.1 * i) + 0.3 * np.cos(2.3 * i)
    if likelihood == "gaussian":
        return X, y
    return X, (y > 0).astype(np.int64) if likelihood == "probit" else (7 * i + i * i) % classes


def structure_of(net):
    """Return the sizes of a network from its layers."""
    dims = (net[0]["Z"].shape[2], *(len(layer["Z"]) for layer in net))
    shared = all(len(layer["log_sf"]) == 1 for layer in net)
    return Structure(dims=dims, inducing=net[0]["Z"].shape[1], shared=shared)


def vector(net):
    """Return the parameters in one vector."""
    structure = structure_of(net)
    theta = np.zeros(size(structure))
    for views, layer in zip(layers(structure, theta), net, strict=True):
        for name, field in FIELDS.items():
            getattr(views, field)[...] = layer[name]
    return theta


def unpacked(structure, theta):
    """Return the layers in the form of the twins, from a vector of parameters or derivatives."""
    return [{name: getattr(one, field) for name, field in FIELDS.items()} for one in layers(structure, theta)]


def layer_moments(net, X, share=1.0, *, noisy=True):
    """Return the package's moments for a network's layers; noise of the last layer only if ``noisy``."""
    found = moments(structure_of(net), vector(net), X, share)
    if noisy:
        mean, variance = found[-1]
        found[-1] = mean, variance + np.exp(2 * net[-1]["log_sn"])
    return found


def scattered(dims, inducing, rng, *, shared=True, spread=0.5):
    """Return a network with random parameters."""
    net = network(dims, inducing, shared=shared)
    for layer in net:
        for name in layer:
            layer[name] = layer[name] + spread * rng.normal(size=np.shape(layer[name]))
    return net


class DGPCase:
    """A problem with random parameters, and 30 draws for the softmax."""

    def __init__(
        self, likelihood, dims, *, propagation="diagonal", inducing=4, alpha=1.0, shared=True, n=10, seed=0, net=None
    ):
        self.rng = np.random.default_rng(seed)
        self.net = net or scattered(dims, inducing, self.rng, shared=shared)
        self.n, self.alpha, self.likelihood = n, alpha, likelihood
        self.X, self.y = rows(n, dims[0], likelihood, dims[-1])
        self.structure, self.theta = structure_of(self.net), vector(self.net)
        self.problem = DGPProblem(self.structure, likelihood, n, alpha, propagation)
        self.noise = self.rng.normal(size=(30, dims[-1])) if likelihood == "softmax" else None

    def energy(self, theta=None, rows=slice(None), noise=None, **changes):
        theta, noise = self.theta if theta is None else theta, self.noise if noise is None else noise
        return energy(self.problem._replace(**changes), theta, self.X[rows], self.y[rows], noise)

    def twin(self, theta=None, rows=slice(None)):
        """Return the energy by the slow version of this propagation."""
        net = unpacked(self.structure, self.theta if theta is None else theta)
        data = net, self.X[rows], self.y[rows], self.n
        if self.problem.propagation == "full":
            return plain_dgp_full.energy(*data, self.alpha, self.likelihood, self.noise)
        if self.alpha == 0:
            return plain_dgp.variational_energy(*data, self.likelihood, self.noise)
        return plain_dgp.energy(*data, self.alpha, self.likelihood, self.noise)


def check_derivatives(case, value, part, step, digits):
    """Compare each derivative of the energy by one kind of parameters with differences of ``value``."""
    _, gradient = case.energy()
    for l, found in enumerate(unpacked(case.structure, gradient)):
        scale = np.abs(found[part]).max()
        for place in np.ndindex(found[part].shape):
            values = []
            for change in (step, -step, 2 * step, -2 * step):
                theta = case.theta.copy()
                unpacked(case.structure, theta)[l][part][place] += change
                values.append(value(theta))
            fine, coarse = (values[0] - values[1]) / (2 * step), (values[2] - values[3]) / (4 * step)
            assert abs(found[part][place] - float((4 * fine - coarse) / 3)) <= digits * max(scale, 1.0)


def stiff():
    """Return two layers; the second has its initial values, with close inducing inputs on a line."""
    net = network((2, 2, 1), 20)
    net[1]["Z"] = np.repeat(np.linspace(-1.0, 1.0, 20)[None, :, None], 2, axis=2)
    net[1]["log_ls"], net[1]["log_sf"], net[1]["log_sn"] = np.zeros((1, 2)), np.zeros(1), np.array([-2.0])
    return net


def drawn(net, x, share, count, rng):
    """Yield draws (count, D_out) of every layer, with new draws of u, and of f given u and the layer below."""
    found, h = [], np.tile(x, (count, 1))
    for layer in net:
        columns = []
        for one in plain_dgp.outputs(layer):
            out = plain_dgp_full.floats(one)
            m, V = (np.asarray(part, dtype=float) for part in plain_dgp.gaussian(one, share))
            K = plain_dgp.gram(one).astype(float)
            u = m + rng.normal(size=(count, len(m))) @ np.linalg.cholesky(V).T
            k = out.sf**2 * np.exp(-0.5 * (((h[:, None] - out.Z) / out.l) ** 2).sum(-1))
            a = np.linalg.solve(K, k.T).T
            rest = np.maximum(out.sf**2 - (a * k).sum(1), 0.0)
            columns.append((a * u).sum(1) + np.sqrt(rest + out.sn**2) * rng.normal(size=count))
        h = np.stack(columns, axis=1)
        found.append(h)
    return found
