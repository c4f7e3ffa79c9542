"""The spread of scores over seeds, compared with the spread over splits (Bouthillier and others 2021)."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="seed_spread",
    version=1,
    package=__name__,
    caption="One row per data set, method and score.",
    tabulated=frozenset({
        "dataset", "method", "score", "mean", "stderr", "seed_std", "split_std", "seed_fraction",
        "lowest_mean", "highest_mean", "splits", "seeds", "seconds",
    }),
    tolerance=0.2,  # a rounding difference can lead to another optimum
)  # fmt: skip
