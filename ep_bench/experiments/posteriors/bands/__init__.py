"""Predictive bands of approximate posteriors along a line through a gap in the data, and those of long chains."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="bands",
    version=1,
    package=__name__,
    caption=(
        "The network's output without noise along a line through a gap in the data, compared with long chains of "
        "Hamiltonian Monte Carlo: means over the points of the line in the gap, and over the others (std ratios: "
        "medians). Errors and W2 are in standard deviations of the chains. r_hat: of the chains, the largest value on "
        "the line. seconds: CPU time of a fit."
    ),
    tolerance=None,  # samples
)
