"""Two contradicting observations: their tilted distribution and site updates."""

from ep_bench.experiments.record import Experiment

EXPERIMENT = Experiment(
    name="conflict_tilted",
    version=1,
    package=__name__,
    caption=(
        "Number of modes, log normaliser (nats) and moments of the tilted distribution; precisions of the two "
        "sites after undamped updates. site: after the first sequential sweep, which updates both sites last. "
        "again: after the second sweep. cavity_1: precision of the cavity of site 1 in the second sweep; the "
        "cavity is improper if it is not positive. together: after a parallel update of both sites instead."
    ),
)
