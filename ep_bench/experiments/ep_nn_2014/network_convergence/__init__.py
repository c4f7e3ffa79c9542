"""Expectation propagation for networks sweep by sweep, and Monte Carlo by time."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="network_convergence",
    version=1,
    package=__name__,
    caption=(
        "converged_after: number of sweeps after which every relative step of the sites is below 0.0001; with "
        "processor seconds, mean test log-likelihood (nats, original units) and squared error (in variances of "
        "the target) of a fit that ends there. The same at the last sweep, or at the last draw of a chain. "
        "ll_best: highest test log-likelihood, and after how many sweeps or draws. last_step, least_step: "
        "relative step in the last sweep, and the minimum over all sweeps."
    ),
)
