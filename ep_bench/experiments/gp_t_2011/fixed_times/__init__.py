"""Times of inference at fixed hyperparameters."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="fixed_times",
    version=1,
    package=__name__,
    measured=frozenset({"relative"}),
    caption=(
        "seconds: mean time of one inference over the configurations at which every method finds a solution. "
        "configurations: number of these. without_solution: number of configurations at which the method finds "
        "none. r_hat: R-hat of the chains that determined the posterior means."
    ),
)
