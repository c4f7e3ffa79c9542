"""Deep Gaussian processes in PyTorch and GPyTorch, as users of these libraries would write them, for timing.

``TiedEnergy`` is the energy of ``ep_bench.methods.dgp_ep`` at alpha = 1 with a Gaussian likelihood, in a form without
an inverse of K. The outputs of a layer are one batch of matrices, each pair of inducing inputs needs one exponential,
and the variances of later layers are the psi2 term minus the squared mean. Autograd computes the gradient.

The parameters are one vector with our layout. ``Sampled`` is GPyTorch's deep Gaussian process, which approximates the
posterior differently and has another bound: doubly stochastic, by samples through the layers. Both use PyTorch's fused
Adam in double precision.
"""

from __future__ import annotations

import gpytorch
import numpy as np
import torch
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer

from ep_bench.methods.dgp_ep.layout import shapes

JITTER = 1e-6


class TiedEnergy:
    """The energy of one structure with n data points, and steps of Adam."""

    def __init__(self, structure, n, start, rate):
        self.n, self.beta, M = n, (n - 1) / n, structure.inducing
        self.shapes = [shape for layer in shapes(structure) for shape in layer]
        self.sizes = [int(np.prod(shape)) for shape in self.shapes]
        rows, columns = np.triu_indices(M)
        self.upper = torch.from_numpy(rows * M + columns)
        self.pairs = torch.from_numpy(rows), torch.from_numpy(columns)
        self.counted = torch.from_numpy(np.where(rows == columns, 1.0, 2.0))
        self.eye = torch.eye(M, dtype=torch.float64)
        self.theta = torch.tensor(start, requires_grad=True)
        self.optimiser = torch.optim.Adam([self.theta], lr=rate, fused=True)

    def value(self, X, y):
        """Return the energy of data X (B, d), y (B,)."""
        flat = torch.split(self.theta, self.sizes)
        parts = [part.view(shape) for part, shape in zip(flat, self.shapes, strict=True)]
        value, mean, variance = 0.0, X, None
        for first in range(0, len(parts), 6):
            log_l, log_s, log_noise, Z, packed, theta_2 = parts[first : first + 6]
            l2, s2, noise = torch.exp(2.0 * log_l), torch.exp(2.0 * log_s), torch.exp(2.0 * log_noise)
            K = s2 * torch.exp(_exponents(Z, Z, l2.expand(len(Z), *l2.shape))) + JITTER * self.eye
            S, A, fraction = self.tied(K, self.factor(packed), theta_2)
            value = value + fraction
            if variance is None:
                mean, variance = _first(mean, Z, l2, s2, S, A)
            else:
                mean, variance = self.later(mean, variance, Z, l2, s2, S, A)
            variance = variance + noise
        log_z = -0.5 * (torch.log(2.0 * torch.pi * variance) + (y[:, None] - mean) ** 2 / variance)
        return value - self.n / len(y) * log_z.sum()

    def factor(self, packed):
        M = len(self.eye)
        R = torch.zeros(len(packed), M * M, dtype=torch.float64).index_copy(1, self.upper, packed).view(-1, M, M)
        return torch.where(self.eye > 0.0, torch.exp(R), R)

    def tied(self, K, R, theta_2):
        """Return S (O, M, M) and A (O, M) of the cavities, and the contribution of the outputs to the energy."""
        spread = R @ K @ R.mT
        S, A, cavity = self.state(K, R, spread, theta_2, self.beta)
        _, _, posterior = self.state(K, R, spread, theta_2, 1.0)
        return S, A, (self.n - 1.0) * posterior - self.n * cavity

    def state(self, K, R, spread, theta_2, fraction):
        L = torch.linalg.cholesky(self.eye + fraction * spread)
        S = fraction**0.5 * torch.linalg.solve_triangular(L, R, upper=False)
        t = fraction * theta_2
        Kt = (K @ t.unsqueeze(2)).squeeze(2)
        A = t - (S.mT @ (S @ Kt.unsqueeze(2))).squeeze(2)
        log_root = torch.log(torch.diagonal(L, dim1=1, dim2=2)).sum()
        return S, A, 0.5 * (Kt * A).sum() - log_root

    def later(self, x, v, Z, l2, s2, S, A):
        """Return means and variances (B, O), without noise, from inputs of means and variances (B, D)."""
        scale = l2 + v
        k = s2 * torch.sqrt((l2 / scale).prod(1))[:, None] * torch.exp(_exponents(x, Z, scale))
        mean = (k @ A.unsqueeze(2)).squeeze(2)
        a, b = self.pairs
        Za, Zb = Z[:, a], Z[:, b]
        bars, apart = 0.5 * (Za + Zb), ((Za - Zb) ** 2 / (4.0 * l2)).sum(2)
        Q = (A.unsqueeze(2) * A.unsqueeze(1) - S.mT @ S)[:, a, b]
        wide = l2 + 2.0 * v
        parts = torch.exp(_exponents(x, bars, 0.5 * wide))
        sums = (parts @ (self.counted * Q * torch.exp(-apart)).unsqueeze(2)).squeeze(2)
        second = s2 * s2 * torch.sqrt((l2 / wide).prod(1)) * sums
        return mean.T, (s2 + second - mean**2).T

    def step(self, X, y):
        self.optimiser.zero_grad()
        loss = self.value(X, y)
        loss.backward()
        self.optimiser.step()
        return loss.item()


def _exponents(x, Z, scale):
    """Return -sum_j (x_j - z_j)^2 / (2 scale_j), (O, B, M), for x (B, D) or (O, B, D), Z (O, M, D), as products."""
    c = 0.5 / scale
    return -((c * x * x).sum(-1, keepdim=True) - 2.0 * (c * x) @ Z.mT + c.expand(x.shape) @ (Z * Z).mT)


def _first(x, Z, l2, s2, S, A):
    k = s2 * torch.exp(_exponents(x, Z, l2))
    Sk = k @ S.mT
    return (k @ A.unsqueeze(2)).squeeze(2).T, (s2 - (Sk * Sk).sum(2)).T


class _Layer(DeepGPLayer):
    def __init__(self, inputs, outputs, Z, lengthscale):
        batch = torch.Size([] if outputs is None else [outputs])
        centres = torch.tensor(Z).expand(*batch, *Z.shape).clone()
        own = gpytorch.variational.CholeskyVariationalDistribution(len(Z), batch_shape=batch)
        strategy = gpytorch.variational.VariationalStrategy(self, centres, own, learn_inducing_locations=True)
        super().__init__(strategy, inputs, outputs)
        self.mean_module = gpytorch.means.ZeroMean(batch_shape=batch)
        base = gpytorch.kernels.RBFKernel(batch_shape=batch, ard_num_dims=inputs)
        self.covar_module = gpytorch.kernels.ScaleKernel(base, batch_shape=batch)
        base.lengthscale = lengthscale

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class _Chain(DeepGP):
    def __init__(self, hidden, Z):
        super().__init__()
        between = np.linspace(-1.0, 1.0, len(Z))[:, None]
        found = []
        for i, (d, out) in enumerate(zip([Z.shape[1], *hidden], [*hidden, None], strict=True)):
            at, scale = (Z, np.sqrt(d)) if i == 0 else (np.repeat(between, d, axis=1), 1.0)
            found.append(_Layer(d, out, at, scale))
        self.chain = torch.nn.ModuleList(found)

    def forward(self, x):
        for layer in self.chain:
            x = layer(x)
        return x


class Sampled:
    """GPyTorch's deep Gaussian process: hidden dimensions, initial inducing inputs (M, d), n data points."""

    def __init__(self, hidden, Z, n, samples, rate):
        torch.set_default_dtype(torch.float64)
        self.model, self.samples = _Chain(hidden, Z), samples
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.bound = gpytorch.mlls.DeepApproximateMLL(gpytorch.mlls.VariationalELBO(likelihood, self.model, n))
        everything = [*self.model.parameters(), *likelihood.parameters()]
        self.optimiser = torch.optim.Adam(everything, lr=rate, fused=True)

    def step(self, X, y):
        with gpytorch.settings.num_likelihood_samples(self.samples):
            self.optimiser.zero_grad()
            loss = -self.bound(self.model(X), y)
            loss.backward()
            self.optimiser.step()
        return loss.item()
