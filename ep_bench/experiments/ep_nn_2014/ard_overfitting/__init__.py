"""Case 1: two relevant inputs, of which point estimates of relevance prune one."""

from ep_bench.experiments.record import Experiment

PRUNED, USED = 0.01, 0.1  # fraction of the weaker input: below, it is pruned; above, both inputs are used

EXPERIMENT = Experiment(
    name="ard_overfitting",
    version=1,
    package=__name__,
    caption=(
        "Numbers of draws of the data on which the fit failed or converged, the weaker input was pruned (share "
        "below 0.01) or both inputs were used (share above 0.1), and the median share. The share is the fraction "
        "of the variation of the mean of f along the weaker input. First draw: share, effect of each input (unit "
        "of y), weight variances, number of hidden units whose weight to the input has a 95 percent interval "
        "without 0 (clear), standard deviation of the noise. seconds: time of a fit."
    ),
)
