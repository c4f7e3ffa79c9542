"""Distances of approximate posteriors from reference posteriors of the same networks with the same variances."""

from ep_bench.experiments.posteriors.distances import NAMES
from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="fidelity",
    version=1,
    package=__name__,
    caption=(
        "One row per network, data set, split and method; reference: the first digits of the checksum of its "
        "draws. ll: mean test log-likelihood in nats. seconds: CPU time of the fit."
    ),
    tabulated=frozenset(NAMES) - {"mean_error", "std_ratio", "wasserstein_2"},
    tolerance=None,  # samples
)
