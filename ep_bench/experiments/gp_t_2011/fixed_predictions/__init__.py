"""Predictions at fixed hyperparameters, compared with Markov chains."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="fixed_predictions",
    version=1,
    package=__name__,
    caption=(
        "Comparison with the first method on the test points of all folds, standardised units. mean_rms: root "
        "mean squared difference of the means of f. deviation_ratio: mean ratio of the standard deviations of f. "
        "log_density_rms: root mean squared difference of the log densities. log_density: mean log density "
        "(nats). seconds: time of fits and predictions. failed: number of failed folds. r_hat: largest R-hat of a"
        " sampler's predictions. r_hat_of_hyperparameters: R-hat of the chains that determined the "
        "hyperparameters."
    ),
    tolerance=0.1,  # chains
)
