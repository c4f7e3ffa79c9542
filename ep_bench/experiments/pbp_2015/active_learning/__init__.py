"""Active learning: training points added one at a time (Hernandez-Lobato and Adams 2015, section 5.4)."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="active_learning",
    version=1,
    package=__name__,
    caption="The scores after each addition are in summary.csv.",
    tabulated=frozenset({
        "dataset", "method", "additions", "rmse", "rmse_stderr", "ll", "ll_stderr", "repetitions", "seconds",
    }),
    tolerance=0.2,  # a rounding difference can choose another point
)  # fmt: skip
