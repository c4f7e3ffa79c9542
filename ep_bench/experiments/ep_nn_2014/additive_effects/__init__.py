"""Case 2: ten additive effects, from none to strongly nonlinear."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="additive_effects",
    version=2,
    package=__name__,
    tolerance=None,  # a rounding difference can lead to another fixed point of EP
    caption=(
        "f along each input (all other inputs are 0) within [-pi, pi] on the draw that is shown, and at held-"
        "out inputs (all), in the unit of y. rmse: root mean squared error against the true function, with its "
        "median over the draws and the number of draws on which it is the lowest. correlation: with the true "
        "function. range: of the mean of f. deviation: mean posterior standard deviation of f. clear: number of "
        "hidden units whose weight to the input has a 95 percent interval without 0. scale: prior scale exp(phi /"
        " 2). Draws, of which failed or converged; standard deviation of the noise; log evidence (nats); time of "
        "a fit in seconds."
    ),
)
