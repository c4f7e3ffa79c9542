"""Two contradicting observations: log evidence over two hyperparameters."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="conflict_evidence",
    version=1,
    package=__name__,
    caption=(
        "Differences from the log evidence by annealed importance sampling over the grid (nats), absolute and "
        "signed. points: points of the grid. without_solution: points at which the robust scheme finds no "
        "solution. sweeps_not_converged: points at which sequential sweeps with damping 0.8 do not converge. "
        "lengthscale, magnitude: hyperparameters of the highest evidence. largest_error: largest standard error "
        "of annealed importance sampling (nats)."
    ),
    tolerance=0.1,  # annealed importance sampling
)
