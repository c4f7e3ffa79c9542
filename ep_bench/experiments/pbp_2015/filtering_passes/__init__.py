"""Probabilistic backpropagation pass by pass."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="filtering_passes",
    version=1,
    package=__name__,
    caption=(
        "Means over the splits. rmse and ll: scores on test points, original units. function_std: standard deviation "
        "of the network's function at the test inputs, noise not included, in standard deviations of the target. "
        "log_z_error: mean absolute error of log Z of a training point by the Gaussian in place of the Student t "
        "distribution (nats)."
    ),
)
