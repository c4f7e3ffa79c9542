"""Case 3: a noisy step by a finite network and by a network with infinitely many units."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="discontinuity",
    version=1,
    package=__name__,
    tolerance=None,  # a rounding difference can lead to another fixed point of EP
    caption=(
        "The mean of f near the discontinuity, on the first draw of the data and as median over all draws. rmse: "
        "root mean squared error (unit of y). fluctuation: total variation beyond that of a monotone function. "
        "overshoot: largest excess over the true values. width: distance over which the mean rises from 10 to 90 "
        "percent of the jump. settled: largest distance from the discontinuity at which the error exceeds the "
        "noise's standard deviation (units of x). Draws, of which failed or converged; draws on which no other "
        "method fluctuates less; standard deviation of the noise; log evidence (nats); time of a fit in seconds."
    ),
)
