"""Reference posteriors of networks with known variances, by long chains of Hamiltonian Monte Carlo."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="reference",
    version=2,
    package=__name__,
    caption=(
        "Reference posteriors. Variances are of the standardised target. r_hat: largest over the test inputs, and "
        "ess_bulk and ess_tail: smallest effective sample sizes, of more draws than are stored (draws). grade: R-hat "
        "at most 1.01 or 1.05, or not converged. floor: 2-Wasserstein distance between the two halves of the stored "
        "chains, mean over the test inputs, in standard deviations of the posterior. gradients: of all chains, in "
        "millions."
    ),
    tolerance=None,  # chains
)
