"""Black-box alpha on linear regression with two data points."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="alpha_linear",
    version=2,
    package=__name__,
    caption="variance: first diagonal element of the fitted covariance. closed_form: its value by the closed form. "
    "relative_difference: the larger of both elements' relative differences.",
)
