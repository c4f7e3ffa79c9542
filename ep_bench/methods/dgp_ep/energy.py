"""The tied-factor energy of power EP, its gradient, and the moments of every layer, as Python functions."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri, softmax

from ep_bench.methods.dgp_ep import joint, network, stochastic_ep
from ep_bench.methods.dgp_ep.factor import Power, power
from ep_bench.methods.dgp_ep.layout import Structure, layers, offsets, size
from ep_bench.methods.dgp_ep.likelihoods import Likelihood, LikelihoodTerm
from ep_bench.methods.dgp_ep.outputs import DGPModel, allocate_parameters
from ep_bench.methods.dgp_ep.stochastic_ep import MomentMatching
from ep_bench.methods.dgp_ep.whitened_factor import whiten
from ep_bench.types import Array

DRAWS = 2**10  # quasi-random draws for evidence and predictions of the softmax
DIGITS, CHANGES, SOME = (
    1e-15,
    4,
    2000,
)  # relative changes of parameters, their number, and data points for rounding errors
MAX_TEMPORARY = 2**20  # maximum size of temporary arrays; larger inputs are processed in blocks


class DGPProblem(NamedTuple):
    """Model and number of data points of an energy."""

    structure: Structure
    likelihood: Likelihood
    n: int  # data points in total, of which a minibatch is a part
    alpha: float = 1.0
    propagation: Literal["diagonal", "full"] = "diagonal"


def energy(problem: DGPProblem, theta: Array, X: Array, y: Array, noise: Array | None = None) -> tuple[float, Array]:
    """Return the energy (nats, to be minimised) of a minibatch at theta (P,), and its gradient (P,).

    X (B, d); y (B,) targets, class indices for probit and softmax. ``noise`` (S, C) are standard normal draws for the
    softmax. If a matrix has no Cholesky factor, the value is nan and the gradient undefined. Whitened factors are
    fixed, with a gradient of 0.
    """
    gradient = np.empty(size(problem.structure))
    if noise is None:
        noise = np.zeros((1, problem.structure.dims[-1]))
    X = np.ascontiguousarray(X, dtype=np.float64)
    return evaluator(problem)(theta, X, targets(problem, y), noise, gradient), gradient


def targets(problem: DGPProblem, y: Array) -> Array:
    """Return targets (n,) as the likelihood requires them: -1 and 1 for the classes 0 and 1 of the probit."""
    y = np.asarray(y, dtype=np.float64)
    return 2.0 * y - 1.0 if problem.likelihood == "probit" else np.ascontiguousarray(y)


class EnergyEvaluator(Protocol):
    """The energy of minibatches as a function that writes its gradient."""

    def __call__(self, theta: Array, X: Array, y: Array, noise: Array, gradient: Array) -> float:
        """Return the energy of X (B, d), y (B,) at theta (P,), nats, nan if undefined; write its gradient (P,)."""
        ...

    def diagnostics(self) -> dict[str, float]:
        """Return values for the trace of the steps since the last call."""
        ...


class TiedEnergy:
    """The energy with tied factors R' R; reuses its arrays between calls."""

    def __init__(self, problem: DGPProblem) -> None:
        self._model = model_of(problem)
        self._term = LikelihoodTerm(problem.likelihood, problem.n, problem.alpha)
        self._noise_at = int(self._model.offsets[-1, 2])
        self._joint = problem.propagation == "full"
        self._kernels = joint if self._joint else network
        self._saved: Any = None

    def __call__(self, theta: Array, X: Array, y: Array, noise: Array, gradient: Array) -> float:
        """Return the energy of a minibatch, nan if a matrix has no Cholesky factor; write its gradient (P,)."""
        if self._saved is None or self._saved.k.shape[1] != len(X):
            self._saved = self._kernels.allocate_pass(self._model, len(X))
        last, s = self._saved.moments, self._saved.parameters.noise
        value = self._kernels.forward(self._model, theta, X, self._saved)
        gradient[:] = 0.0
        for slope in last[2:]:
            slope[:] = 0.0
        term = self._term.joint if self._joint else self._term.diagonal
        likelihood, slope_of_noise = term(last[0][-1], last[1][-1], y, s[-1], noise, last[2][-1], last[3][-1])
        gradient[self._noise_at] += slope_of_noise
        if not np.isfinite(value + likelihood):
            return np.nan
        self._kernels.backward(self._model, self._saved, gradient)
        return float(value + likelihood)

    def diagnostics(self) -> dict[str, float]:
        """Return no values."""
        return {}


def evaluator(problem: DGPProblem) -> EnergyEvaluator:
    """Return the energy of minibatches; whitened factors remain fixed."""
    if problem.structure.whitened:
        return _moment_matching(problem, 0.0)
    return TiedEnergy(problem)


def moment_matcher(problem: DGPProblem, theta: Array, rate: float) -> MomentMatching:
    """Return the energy with moment-matching steps of size ``rate``.

    Converts the factors in ``theta`` (P,) from those of ``network`` to whitened ones.
    """
    model = model_of(problem)
    whiten(model, theta, allocate_parameters(model, 1))
    return _moment_matching(problem, rate)


def _moment_matching(problem: DGPProblem, rate: float) -> MomentMatching:
    return MomentMatching(model_of(problem), LikelihoodTerm(problem.likelihood, problem.n, problem.alpha), rate)


def log_evidence(problem: DGPProblem, theta: Array, X: Array, y: Array, noise: Array | None = None) -> float:
    """Return minus the energy of all data X (n, d), y (n,), nats; arguments as in ``energy``."""
    parts = blocks(problem.structure, len(X))
    fractions = [(part.stop - part.start) / len(X) for part in parts]
    return -float(np.dot(fractions, [energy(problem, theta, X[part], y[part], noise)[0] for part in parts]))


def rounding_error(
    problem: DGPProblem, theta: Array, X: Array, y: Array, rng: np.random.Generator, noise: Array | None = None
) -> float:
    """Return the standard deviation of the energy (nats) over changes of the parameters' last digits.

    It is that of all data, estimated from at most ``SOME`` data points.
    """
    changed = [theta * (1.0 + DIGITS * rng.standard_normal(len(theta))) for _ in range(CHANGES)]
    return float(np.std([log_evidence(problem, point, X[:SOME], y[:SOME], noise) for point in changed]))


def moments(structure: Structure, theta: Array, X: Array, beta: float = 1.0) -> list[tuple[Array, Array]]:
    """Return means and variances (B, D_out) of every layer at inputs X (B, d).

    The noise of hidden layers is included, that of the last layer is not. ``beta`` is the fraction of the tied factors:
    1 for the posterior, (n - alpha) / n for the cavity.
    """
    found = _propagated(_kernels(structure), structure, theta, X, beta)
    means, variances = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    widths = structure.dims[1:]
    return [(means[i + 1, :, :width], variances[i + 1, :, :width]) for i, width in enumerate(widths)]


def joint_moments(structure: Structure, theta: Array, X: Array, beta: float = 1.0) -> list[tuple[Array, Array]]:
    """Return means (B, D_out) and covariances (B, D_out, D_out) of every layer; otherwise like ``moments``."""
    found = _propagated(joint, structure, theta, X, beta)
    means, covariances = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    widths = structure.dims[1:]
    return [(means[i + 1, :, :width], covariances[i + 1, :, :width, :width]) for i, width in enumerate(widths)]


def _propagated(kernels: Any, structure: Structure, theta: Array, X: Array, beta: float) -> list[tuple[Array, Array]]:
    """Return means (L + 1, B, W) and variances or covariances of every layer, block by block."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    model, found = _propagation_model(structure, beta), []
    for part in blocks(structure, len(X)):
        saved = kernels.allocate_pass(model, part.stop - part.start)
        kernels.forward(model, theta, X[part], saved)
        found.append((saved.moments[0], saved.moments[1]))
    return found


def sampled_moments(
    structure: Structure, theta: Array, X: Array, samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return means and variances (S, B, D_out) of the last layer, without its noise.

    X (B, d) is propagated through the hidden layers by sampling. Without hidden layers S is 1.
    """
    count = samples if structure.dims[1:-1] else 1
    means = np.empty((count, len(X), structure.dims[-1]))
    variances = np.empty_like(means)
    for first in range(0, len(X), rows := max(MAX_TEMPORARY // (count * structure.inducing), 1)):
        part = slice(first, first + rows)
        means[:, part], variances[:, part] = _samples_through(structure, theta, X[part], count, rng)
    return means, variances


def _samples_through(
    structure: Structure, theta: Array, X: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return means and variances (S, B, D_out) of the last layer for ``count`` samples through the others."""
    model, hidden = _propagation_model(structure), structure.dims[1:-1]
    x, workspace = np.ascontiguousarray(X, dtype=np.float64), allocate_parameters(model, 1)
    for layer, width in enumerate(hidden):
        m, v = np.empty((len(x), width)), np.empty((len(x), width))
        _kernels(structure).layer_moments(model, theta, layer, x, workspace, m, v)
        noise = rng.standard_normal((count, len(X), width))
        x = (m.reshape(-1, len(X), width) + np.sqrt(v).reshape(-1, len(X), width) * noise).reshape(-1, width)
    outputs = structure.dims[-1]
    m, v = np.empty((len(x), outputs)), np.empty((len(x), outputs))
    _kernels(structure).layer_moments(model, theta, len(hidden), x, workspace, m, v)
    return m.reshape(count, len(X), outputs), v.reshape(count, len(X), outputs)


def noise_variances(structure: Structure, theta: Array) -> Array:
    """Return the noise variances (G,) of the last layer."""
    return np.asarray(np.exp(2.0 * layers(structure, theta)[-1].log_noise))


def normal_draws(outputs: int, rng: np.random.Generator) -> Array:
    """Return quasi-random draws (DRAWS, C) of standard normals."""
    from scipy.stats import qmc

    points = qmc.Sobol(outputs, seed=rng).random_base2(DRAWS.bit_length() - 1)
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))


def softmax_probabilities(m: Array, V: Array, noise: Array) -> Array:
    """Return E softmax(f) (N, C), averaged over S, for Gaussian f with means m (S, N, C).

    V are variances (S, N, C) or covariances (S, N, C, C); ``noise`` (T, C) are standard normal draws.
    """
    total = np.zeros(m.shape[1:])
    roots = np.linalg.cholesky(V) if V.ndim == 4 else np.sqrt(V)[..., None] * np.eye(m.shape[2])
    rows = max(MAX_TEMPORARY // noise.size, 1)
    for mean, root in zip(m, roots, strict=True):
        for part in range(0, len(mean), rows):
            f = mean[part : part + rows, None] + noise @ root[part : part + rows].transpose(0, 2, 1)
            total[part : part + rows] += softmax(f, axis=2).mean(axis=1)
    return total / len(m)


def blocks(structure: Structure, n: int) -> list[slice]:
    """Return slices of n data points, small enough to limit the arrays of a pass to ``MAX_TEMPORARY``."""
    M = structure.inducing
    rows = max(MAX_TEMPORARY // (M * (M + 1) // 2 if len(structure.dims) > 2 else M), 1)
    return [slice(first, min(first + rows, n)) for first in range(0, n, rows)]


def _kernels(structure: Structure) -> Any:
    return stochastic_ep if structure.whitened else network


def _propagation_model(structure: Structure, beta: float = 1.0) -> DGPModel:
    """Return a model for propagation with a fraction beta of the tied factors."""
    return model_of(DGPProblem(structure, "gaussian", 1))._replace(power=Power(1.0, 1.0, beta))


def model_of(problem: DGPProblem) -> DGPModel:
    """Return the model of a problem as kernels require it."""
    structure = problem.structure
    groups = [1 if structure.shared else width for width in structure.dims[1:]]
    return DGPModel(
        np.array(structure.dims, dtype=np.int64), offsets(structure), np.array(groups, dtype=np.int64),
        structure.inducing, power(problem.n, problem.alpha),
    )  # fmt: skip
