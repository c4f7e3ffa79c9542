"""Mean-variance estimation: a network for mean and variance (Nix and Weigend 1994; Seitzer et al., ICLR 2022).

With K > 1 ``components`` it is a mixture density network (Bishop 1994).

A network of rectified linear units has two outputs at an input x: a mean m(x) and a number a(x). The variance of the
observation is s(x) = log(1 + exp(a(x))) + s_min. Adam follows, for minibatches of B data points, the gradient of

    mean_b [s_b^beta] [log(2 pi s_b) + (y_b - m_b)^2 / s_b] / 2,

where the factor s_b^beta is not differentiated. With beta = 0 this is the likelihood, whose gradient by m_b
is small where s_b is large, so that data points with large residuals are hardly fitted. With beta = 1 that gradient is
the one of the squared error. The predictive distribution is N(m(x), s(x)).

A mixture density network has 3 K outputs: means m_k(x), numbers a_k(x) of the variances s_k(x), and logits l_k(x) of
the weights pi_k(x) = exp(l_k) / sum_j exp(l_j). The predictive density is sum_k pi_k N(y | m_k, s_k), the loss is its
negative logarithm. With the responsibilities r_k = pi_k N(y | m_k, s_k) / sum_j pi_j N(y | m_j, s_j), its derivatives
are

    by l_k:  pi_k - r_k,    by m_k:  r_k (m_k - y) / s_k,    by s_k:  r_k (1 - (y - m_k)^2 / s_k) / (2 s_k),

of which the last two have the factor s_k^beta. With K = 1 these are the equations above.

As in the authors' program, the number of epochs is the one with the highest likelihood of validation points, and a
second fit uses all training points (``models.early_stopping``). ``ensemble`` trains several such networks by
likelihood; ``vi`` with ``noise: heteroscedastic`` has a second output for the logarithm of the variance.

Deviation: Bishop's variances are exp(a_k), and he has no factor, as with beta = 0; the one for mixtures is ours. The
first biases of the means are the normal quantiles at (k - 1/2) / K, so that components start apart.
Deviation: minibatches have 32 data points, where the program has 256.
Deviation: the program searches six step sizes from 0.0001 to 0.007. Here it is 0.007 unless ``tune`` searches it: with
0.003, the mean log density of validation points was lower (20 % of the training points of splits 0 and 1 of boston,
energy, wine and yacht, not used by the fit).
Deviation: s_min is 1e-6 as in ``ensemble``; the program has 1e-8, and 100 as an upper limit of the variance.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from ep_bench.models import mlp
from ep_bench.models.early_stopping import EarlyStoppingConfig, TrainingProblem
from ep_bench.models.early_stopping import train as train_network
from ep_bench.models.last_layer import features, hidden_gradient, hidden_outputs
from ep_bench.numerics.minibatch import Trace
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows

UNIT = math.log(math.expm1(1.0))  # a(x) of the variance 1


class Config(EarlyStoppingConfig):
    """Options of the network."""

    hidden: tuple[PositiveInt, ...] = Field((50,), description="units per hidden layer; the paper: 50")
    learning_rate: PositiveFloat = Field(7e-3, description="step size of Adam; the program: searched; ours")
    beta: float = Field(0.5, ge=0.0, le=1.0, description="exponent of the weights; the paper: 0.5; 0 is the likelihood")
    minimum_variance: PositiveFloat = Field(
        1e-6, description="lower limit of the variance, squared units of the standardised target; as ensemble"
    )
    components: int = Field(
        1,
        ge=1,
        le=50,
        description="Gaussians per prediction, with weights by input; Bishop (1994): a mixture; 1 is one Gaussian",
        json_schema_extra={NEUTRAL: 1},
    )


class State(NamedTuple):
    """Weights in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (P,)
    minimum_variance: float
    components: int = 1


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, Trace]:
    """Fit the network to standardised data X (n, d), y (n,).

    Returns the state, and one value per epoch of ``objective``: the negative log-likelihood per data point (nats),
    without the factor s^beta, averaged over the steps. Raises FloatingPointError if a step ends with a number that is
    not finite, or if the mean has diverged (``mlp.refuse_residuals``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    K, minimum = config.components, config.minimum_variance
    layers = mlp.layout(X.shape[1], config.hidden, outputs=_outputs(K))

    def start(rng: np.random.Generator) -> Array:
        w: Array = mlp.initial_weights(layers, rng)
        biases = w[len(w) - _outputs(K) :]
        biases[:K] = [NormalDist().inv_cdf((k + 0.5) / K) for k in range(K)]
        biases[K : 2 * K] = UNIT
        return w

    def loss(w: Array, X: Array, y: Array) -> float:
        return -float(predict(State(layers, w, minimum, K), X, rng).logpdf(y).mean())

    likelihood = weighted_likelihood if K == 1 else mixture_likelihood

    def objective(w: Array, X: Array, y: Array, _: int, gradient: Array) -> float:
        return likelihood(w, X, y, layers, config.beta, minimum, gradient)

    w, trace = train_network(TrainingProblem(start, objective, loss), X, y, config, rng)
    state = State(layers, w, minimum, K)
    mlp.refuse_residuals(y - predict(state, X, rng).mean(), y)
    return state, trace


def _outputs(components: int) -> int:
    """Return the number of outputs of the network; a single component has no logit."""
    return 2 if components == 1 else 3 * components


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one mixture of K Gaussians per data point of X (n, d), standardised units; ``rng`` is not used."""
    K = state.components
    last = state.weights[state.layers[-1, 0] :].reshape(-1, _outputs(K))
    F = (features(X, state.weights, state.layers) @ last).T
    variances = np.logaddexp(0.0, F[K : 2 * K]) + state.minimum_variance
    if K == 1:
        return Predictive.gaussian(F[0], variances[0])
    return Predictive(np.exp(_log_normalised(F[2 * K :].T).T), F[:K], variances)


def _log_normalised(logits: Array) -> Array:
    """Return the logarithms of exp(logits) (B, K), divided by their sums over the components."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def weighted_likelihood(
    w: Array, X: Array, y: Array, layers: Array, beta: float, minimum: float, gradient: Array
) -> float:
    """Return the negative log-likelihood per data point of X (B, d), y (B,); write the weighted gradient (P,)."""
    first = int(layers[-1, 0])
    outputs, last = hidden_outputs(X, w, layers), w[first:].reshape(-1, 2)
    mean, a = (outputs[-1] @ last[:-1] + last[-1]).T
    above_minimum = np.logaddexp(0.0, a)
    s, residual = above_minimum + minimum, mean - y
    square = residual**2 / s
    slope = -np.expm1(-above_minimum)  # of s by a
    factor = s**beta / (s * len(y))
    above = np.column_stack([factor * residual, 0.5 * factor * (1.0 - square) * slope])
    by_last = gradient[first:].reshape(-1, 2)
    by_last[:-1], by_last[-1] = outputs[-1].T @ above, above.sum(axis=0)
    hidden_gradient(outputs, above @ last[:-1].T, w, layers, gradient)
    return 0.5 * float(np.mean(np.log(2.0 * np.pi * s) + square))


def mixture_likelihood(
    w: Array, X: Array, y: Array, layers: Array, beta: float, minimum: float, gradient: Array
) -> float:
    """Return the negative log-likelihood per data point of mixtures; write the weighted gradient (P,).

    X is (B, d), y (B,); the layers have 3 K outputs.
    """
    first, outputs_count = int(layers[-1, 0]), int(layers[-1, 2])
    K = outputs_count // 3
    outputs, last = hidden_outputs(X, w, layers), w[first:].reshape(-1, outputs_count)
    F = outputs[-1] @ last[:-1] + last[-1]
    above_minimum = np.logaddexp(0.0, F[:, K : 2 * K])
    s, residual, log_weights = above_minimum + minimum, F[:, :K] - y[:, None], _log_normalised(F[:, 2 * K :])
    square = residual**2 / s
    joint = log_weights - 0.5 * (np.log(2.0 * np.pi * s) + square)
    highest = joint.max(axis=1, keepdims=True)
    density = np.exp(joint - highest)
    total = density.sum(axis=1, keepdims=True)
    responsibility = density / total
    slope = -np.expm1(-above_minimum)  # of s by a
    factor = responsibility * s**beta / s
    above = np.concatenate(
        [factor * residual, 0.5 * factor * (1.0 - square) * slope, np.exp(log_weights) - responsibility], axis=1
    )
    above /= len(y)
    by_last = gradient[first:].reshape(-1, outputs_count)
    by_last[:-1], by_last[-1] = outputs[-1].T @ above, above.sum(axis=0)
    hidden_gradient(outputs, above @ last[:-1].T, w, layers, gradient)
    return -float(np.mean(highest + np.log(total)))


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core; the number of epochs is unknown before the fit."""
    rows = min(config.batch_size, n)
    weights = mlp.count(mlp.layout(d, config.hidden, outputs=_outputs(config.components)))
    step = 1e-4 if config.components == 1 else 2e-4
    return (config.epochs or 300) * max(n // rows, 1) * (step + 0.6e-9 * weights * rows)


METHOD = Method(
    name="mve",
    equality="optimised",
    version=1,
    title="Mean-variance estimation",
    paper="Seitzer et al. (2022), after Nix and Weigend (1994)",
    style=("ensembles, point", "v"),
    bibtex="""
    @inproceedings{seitzer2022,
      author = {Seitzer, Maximilian and Tavakoli, Arash and Antić, Dimitrije and Martius, Georg},
      title = {{On the Pitfalls of Heteroscedastic Uncertainty Estimation with Probabilistic Neural Networks}},
      booktitle = {International Conference on Learning Representations}, year = {2022}}""",
    density="Gaussian or mixture of Gaussians, noise by input",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    validated=lambda config: "" if config.epochs else "epochs",
    space={
        "learning_rate": {"log": [3e-4, 3e-2]},
        "beta": {"choice": [0.0, 0.5, 1.0]},
    },
)
