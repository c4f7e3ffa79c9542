"""The value function of the mountain car."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="mountain_car",
    version=1,
    package=__name__,
    caption=(
        "Comparison with the true values on held-out states, in steps: root mean squared error of the predictive "
        "mean, and mean log density of noisy evaluations (nats), over all states, near the cliff and elsewhere. "
        "Standard errors are over the draws of the data. lowest_rmse: number of draws on which the method has the "
        "lowest error. cliff_share: fraction of states near the cliff. mean_std: mean predictive "
        "standard deviation. fit_seconds: time of a fit."
    ),
)
