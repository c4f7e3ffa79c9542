"""Random restarts of expectation propagation for networks."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="network_restarts",
    version=1,
    package=__name__,
    caption=(
        "Fits from random starts on a standard split: numbers of fits that converged, failed, or have a score or "
        "log evidence that is not finite. Sweeps, and the largest relative step in the last sweep. Root mean "
        "squared error and mean test log-likelihood (original units) and log evidence (nats): minimum, median and"
        " maximum of all fits that did not fail. ll_of_highest_evidence: test log-likelihood of the fit with the "
        "highest log evidence. seconds: time of a fit while other programs were running."
    ),
)
