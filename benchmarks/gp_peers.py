"""Exact and sparse Gaussian processes in GPy and GPyTorch, as users of these libraries would write them, for timing.

The covariances are squared exponentials with one lengthscale per input, a magnitude and a noise variance, without
priors. GPy learns by its ``optimize`` (L-BFGS). GPyTorch has no L-BFGS: it learns by PyTorch's Adam as in its
documentation (step 0.1, 100 steps), or by SciPy's L-BFGS on its raw parameters with the gradient of autograd.
"""

from __future__ import annotations

from contextlib import ExitStack

import GPy
import gpytorch
import numpy as np
import torch
from scipy.optimize import minimize

STEPS = 1000  # maximum per L-BFGS: GPy's default


class Gpy:
    """A model of GPy; ``approximation`` is exact, fitc or vfe."""

    def __init__(self, rows, Z, approximation, lengthscale, magnitude, noise_variance, jitter=None):
        X, y = rows.X, rows.y[:, None]
        kernel = GPy.kern.RBF(X.shape[1], variance=magnitude, lengthscale=lengthscale.copy(), ARD=True)
        if approximation == "exact":
            self.model = GPy.models.GPRegression(X, y, kernel, noise_var=noise_variance)
            return
        self.model = GPy.models.SparseGPRegression(X, y, kernel, Z=Z.copy())
        if approximation == "fitc":
            self.model.inference_method = GPy.inference.latent_function_inference.FITC()
        if jitter is not None:
            self.model.inference_method.const_jitter = jitter
        self.model.likelihood.variance = noise_variance
        self.model.parameters_changed()

    def evidence(self):
        """Compute the evidence or bound and its gradient; return the value."""
        self.model.parameters_changed()
        return float(np.squeeze(self.model.log_likelihood()))

    def learn(self):
        self.model.optimize(max_iters=STEPS)
        return self.evidence()


class _Model(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood, Z, lengthscale, magnitude):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))
        base.base_kernel.lengthscale, base.outputscale = torch.tensor(lengthscale), magnitude
        sparse = gpytorch.kernels.InducingPointKernel
        self.covar_module = base if Z is None else sparse(base, inducing_points=Z, likelihood=likelihood)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Gpytorch:
    """A model of GPyTorch in double precision; ``approximation`` is exact or vfe."""

    def __init__(self, rows, Z, approximation, lengthscale, magnitude, noise_variance, jitter=None):
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        self.X, self.y, self.jitter = torch.tensor(rows.X), torch.tensor(rows.y), jitter
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        likelihood.noise = noise_variance
        centres = None if approximation == "exact" else torch.tensor(Z)
        self.model = _Model(self.X, self.y, likelihood, centres, lengthscale, magnitude)
        self.model.train()
        self.sum = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, self.model)
        self.parameters = [one for one in self.model.parameters() if one.requires_grad]

    def evidence(self):
        """Compute the evidence or bound and its gradient; return the value."""
        with ExitStack() as settings:
            if self.jitter is not None:
                settings.enter_context(gpytorch.settings.cholesky_jitter(double_value=self.jitter))
                settings.enter_context(gpytorch.settings.fast_computations(False, False, False))
            return -self._loss()

    def learn(self, optimiser):
        if optimiser == "adam":
            adam = torch.optim.Adam(self.parameters, lr=0.1)
            for _ in range(100):
                self._loss()
                adam.step()
            return self.evidence()
        start = torch.nn.utils.parameters_to_vector(self.parameters).detach().numpy().copy()
        found = minimize(self._at, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "maxfun": 2 * STEPS})
        return -float(found.fun)

    def _at(self, point):
        torch.nn.utils.vector_to_parameters(torch.tensor(point), self.parameters)
        loss = self._loss()
        return loss, np.concatenate([one.grad.reshape(-1).numpy() for one in self.parameters])

    def _loss(self):
        for one in self.parameters:
            one.grad = None
        loss = -self.sum(self.model(self.X), self.y) * len(self.y)
        loss.backward()
        return float(loss)
