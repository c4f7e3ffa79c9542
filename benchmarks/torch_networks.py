"""The models of ``vi`` and ``bb_alpha`` with one hidden layer, as users of PyTorch would write them, for timing.

All weights are one parameter vector, and all samples are one batched product. Autograd computes the gradient, and Adam
is PyTorch's fused one. With ``compiled``, the objective is also compiled by torch.compile. The parameters
theta = (m, rho, log sigma2) and the objectives are those of ``ep_bench.models.variational_bound`` and
``ep_bench.methods.bb_alpha.energy``.
"""

from __future__ import annotations

import math

import torch


def outputs(X, w, hidden):
    """Return the outputs (K, B) of networks with weights w (K, P) on rows X (B, d)."""
    K, d = w.shape[0], X.shape[1]
    W, bias, v, constant = torch.split(w, [d * hidden, hidden, hidden, 1], dim=1)
    a = torch.baddbmm(bias.unsqueeze(1), X.expand(K, *X.shape), W.reshape(K, d, hidden))
    return torch.baddbmm(constant.unsqueeze(1), torch.relu(a), v.unsqueeze(2)).squeeze(2)


def vi_bound(theta, X, y, noise, n, hidden, prior_variance):
    """Return the negative bound at noise (K, P)."""
    P = noise.shape[1]
    m, log_s, log_sigma2 = torch.split(theta, [P, P, 1])
    s = torch.exp(log_s)
    f = outputs(X, torch.addcmul(m, s, noise), hidden)
    squares = torch.sum((y - f).square())
    divergence = 0.5 * torch.sum((s * s + m * m) / prior_variance - 1.0 + math.log(prior_variance)) - log_s.sum()
    likelihood = 0.5 * n * (math.log(2.0 * math.pi) + log_sigma2)
    return (divergence + likelihood + 0.5 * n / f.numel() * torch.exp(-log_sigma2) * squares).squeeze()


def bb_alpha_energy(theta, X, y, noise, n, hidden, prior_variance, alpha):
    """Return the energy at noise (K, P)."""
    K, P = noise.shape
    m, rho, log_sigma2 = torch.split(theta, [P, P, 1])
    share = torch.sigmoid(rho)
    v = prior_variance * share
    w = torch.addcmul(m, torch.sqrt(v), noise)
    factor = w @ (m / (v * n)) - (w * w) @ (0.5 * torch.exp(-rho) / (prior_variance * n))
    residual = y - outputs(X, w, hidden)
    log_p = -0.5 * (math.log(2.0 * math.pi) + log_sigma2) - 0.5 * torch.exp(-log_sigma2) * residual.square()
    tilted = torch.logsumexp(alpha * (log_p - factor.unsqueeze(1)), 0) - math.log(K)
    normalisers = -0.5 * torch.sum(torch.log(share) + m * m / v)
    return normalisers - n / (len(y) * alpha) * tilted.sum()


class Trainer:
    """Steps of Adam down an objective, with fresh noise each."""

    def __init__(self, objective, start, X, y, samples, hidden, rate, batch, *options, kind, compiled):
        self.objective = torch.compile(objective, dynamic=False) if compiled else objective
        self.theta = torch.tensor(start, dtype=kind, requires_grad=True)
        self.X, self.y = torch.tensor(X, dtype=kind), torch.tensor(y, dtype=kind)
        self.shape, self.hidden, self.batch, self.options = (samples, len(start) // 2), hidden, batch, options
        self.optimiser = torch.optim.Adam([self.theta], lr=rate, fused=True)

    def epoch(self, order):
        """Take the rows in their order, one step a batch; return the mean objective."""
        total, n = 0.0, len(self.y)
        batches = torch.from_numpy(order).split(self.batch)
        for rows in batches:
            noise = torch.randn(self.shape, dtype=self.theta.dtype)
            self.optimiser.zero_grad()
            loss = self.objective(self.theta, self.X[rows], self.y[rows], noise, n, self.hidden, *self.options)
            loss.backward()
            self.optimiser.step()
            total += loss.item()
        return total / len(batches)
