"""Log evidence by approximate inference, compared with annealed importance sampling, with known variances."""

from ep_bench.experiments.record import Experiment

THERE, BACK = "AIS", "AIS, back"  # annealed importance sampling from the prior to the posterior, and back

EXPERIMENT = Experiment(
    name="evidence",
    version=1,
    package=__name__,
    caption=(
        "Log evidence in nats, for the standardised target. The first two rows of each network are by annealed "
        "importance sampling: from the prior to the posterior (a lower bound in expectation) and back (an upper one, "
        "if the chain has reached the posterior). stderr: standard error over the runs. difference: from the first "
        "row. estimate: how a method estimates the evidence; ELBO: the variational lower bound of its approximation. "
        "log_copies: log of the number of equivalent modes by permuting units and, if the activation is odd, changing "
        "their signs; an approximation around one mode misses at most these. seconds: CPU time."
    ),
    tolerance=None,  # samples
)
