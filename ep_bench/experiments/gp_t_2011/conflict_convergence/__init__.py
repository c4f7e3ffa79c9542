"""Two contradicting observations: convergence of expectation propagation."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="conflict_convergence",
    version=3,
    package=__name__,
    caption=(
        "Final state of each scheme. converged: whether all moments match to 1e-9. mismatch: the largest "
        "difference of moments. log_evidence: log Z (nats). undefined: number of sweeps after which a cavity was "
        "improper, so that log Z was undefined."
    ),
)
