"""The cubic toy problem: predictions on 20 points of y = x^3 + noise."""

from ep_bench.experiments.pbp_2015.cubic_toy.distance_table import COLUMNS
from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="cubic_toy",
    version=1,
    package=__name__,
    caption=(
        "Comparison with the true function, in the unit of y. rmse: root mean squared error of the predictive "
        "mean inside and outside the range of the data. within_3sd: fraction of the grid points at which the true"
        " function is within 3 predictive standard deviations of the mean. fit_seconds: time of the fit."
    ),
    tabulated=COLUMNS,
    tolerance=0.1,  # samples
)
