"""YAML to a checked study; every mistake in the file ends in one message that names file, line and field."""

from ep_bench.spec.models import ACCEPT_METRICS, Accept, Catalogue, Limits, MethodEntry, Study, Tune
from ep_bench.spec.read import read_study
from ep_bench.spec.space import read_space
from ep_bench.types import OptionProblem

__all__ = [
    "ACCEPT_METRICS", "Accept", "Catalogue", "Limits", "MethodEntry", "OptionProblem", "Study", "Tune", "read_space",
    "read_study",
]  # fmt: skip
