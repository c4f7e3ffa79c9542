"""Simulation-based calibration of Hamiltonian Monte Carlo."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="calibration",
    version=1,
    package=__name__,
    caption=(
        "Ranks compared with the uniform distribution. Pearson's chi-square with one bar per rank, and its "
        "p-value. shift: difference between the mean rank and the middle rank. spread: difference between the "
        "mean squared distance from the middle and its expectation. Both are in standard errors; for an exact "
        "sampler they are within 2 in 19 of 20 cases. First and second output: the network's outputs at two "
        "further inputs."
    ),
    tolerance=None,  # test statistics of chains
)
