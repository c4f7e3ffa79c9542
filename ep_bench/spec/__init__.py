"""From YAML to a checked study; one message names the file, line and field of every mistake."""

from ep_bench.spec.models import Accept, MethodEntry, Study
from ep_bench.spec.parse import parse_study, read_mapping
from ep_bench.spec.read import read_study
from ep_bench.spec.space import read_space

__all__ = ["Accept", "MethodEntry", "Study", "parse_study", "read_mapping", "read_space", "read_study"]
