"""Two contradicting observations: the latent function between them."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="conflict_posteriors",
    version=2,
    package=__name__,
    caption=(
        "Mean, standard deviation and 1-Wasserstein distance from the first method of f(2), in the unit of y. "
        "Hyperparameters (medians of the draws for Markov chains), log evidence (nats), the largest R-hat of f(2) and "
        "of the hyperparameters, and time of the fit in seconds."
    ),
    tolerance=0.1,  # chains
)
