"""The posterior of ``hmc`` in JAX, with the No-U-Turn samplers of NumPyro and BlackJAX, for timing.

A point z consists of the weights (P,), the log of their variance and the log of the noise variance; the densities of
the two logs include the Jacobians. Both samplers receive the same function, start from the same points and adapt step
size and diagonal masses by Stan's windows, each with its own defaults (trees of at most 2^10 steps, a mean acceptance
of 0.8). A chain with warm-up and draws is one compiled function.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def outputs(X, w, hidden):
    """Return the outputs (N,) at X (N, d) of a network with one hidden layer and weights w (P,)."""
    d = X.shape[1]
    W, bias, v, constant = jnp.split(w, [d * hidden, (d + 1) * hidden, (d + 2) * hidden])
    return jax.nn.relu(X @ W.reshape(d, hidden) + bias) @ v + constant


def potential(w, X, y, hidden, beta, tau):
    """Return U(w) of ``ep_bench.methods.hmc.trajectory``: noise precision beta, prior precisions tau (P,)."""
    return 0.5 * beta * jnp.sum((outputs(X, w, hidden) - y) ** 2) + 0.5 * jnp.sum(tau * w * w)


def gradients(w, X, y, hidden, beta, tau, *, count):
    """Return a compiled function without arguments that computes ``count`` gradients in sequence."""
    X, y, tau = jnp.asarray(X), jnp.asarray(y), jnp.asarray(tau)

    def step(carry, _):
        w, total = carry
        value, gradient = jax.value_and_grad(potential)(w, X, y, hidden, beta, tau)
        return (w - 1e-300 * gradient, total + value), None  # the compiler must not detect that w is constant

    chain = jax.jit(lambda w: jax.lax.scan(step, (w, 0.0), None, length=count)[0])
    start = jnp.asarray(w)
    return lambda: jax.block_until_ready(chain(start))


def log_density(z, X, y, hidden, weight_prior, noise_prior):
    """Return the log joint density of a point z and the targets, without constants."""
    w, log_v, log_s2 = z[:-2], z[-2], z[-1]
    fit = -potential(w, X, y, hidden, jnp.exp(-log_s2), jnp.exp(-log_v)) - 0.5 * (len(w) * log_v + len(y) * log_s2)
    priors = ((weight_prior, log_v), (noise_prior, log_s2))
    return fit - sum(a * log_x + b * jnp.exp(-log_x) for (a, b), log_x in priors)


def numpyro_chain(density, start, warmup, draws):
    """Return a compiled function key -> draws (draws, P + 2) and their gradients (draws,), by NumPyro's NUTS."""
    from numpyro.infer import NUTS

    kernel = NUTS(potential_fn=lambda z: -density(z))
    first = kernel.init(jax.random.key(0), warmup, start, (), {})

    def chain(key):
        def step(state, _):
            state = kernel.sample(state, (), {})
            return state, (state.z, state.num_steps)

        state, _ = jax.lax.scan(step, first._replace(rng_key=key), None, length=warmup)
        return jax.lax.scan(step, state, None, length=draws)[1]

    return jax.jit(chain).lower(first.rng_key).compile()


def blackjax_chain(density, start, warmup, draws):
    """Return a compiled function key -> draws (draws, P + 2) and their gradients (draws,), by BlackJAX's NUTS."""
    import blackjax
    from blackjax.adaptation.base import get_filter_adapt_info_fn

    adaptation = blackjax.window_adaptation(blackjax.nuts, density, adaptation_info_fn=get_filter_adapt_info_fn())

    def chain(key):
        first, second = jax.random.split(key)
        (state, parameters), _ = adaptation.run(first, start, warmup)
        kernel = blackjax.nuts(density, **parameters)

        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, state, jax.random.split(second, draws))[1]

    return jax.jit(chain).lower(jax.random.key(0)).compile()


SAMPLERS = {"numpyro": numpyro_chain, "blackjax": blackjax_chain}
