"""Steps of deep Gaussian processes: equal bits for any alignment of arrays, and memory that is reused."""

import subprocess
import sys

import numpy as np
import pytest

from ep_bench.methods import dgp_ep
from ep_bench.types import Rows

pytestmark = pytest.mark.usefixtures("short_search")

OFFSETS = (0, 1, 3, 4, 7)  # doubles after a cache line


def begun_at(array, offset):
    """Return a copy that begins ``offset`` doubles after a cache line."""
    buffer = np.empty(array.size + 16)
    first = -buffer.ctypes.data % 64 // 8 + offset
    copy = buffer[first : first + array.size].reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize(("hidden", "inducing"), [((), 37), ((2,), 20), ((2,), 66)])
def test_fits_have_equal_bits_for_any_alignment(hidden, inducing):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((91, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(91)
    config = dgp_ep.Config(hidden=hidden, inducing=inducing, steps=30)
    found, between = [], []
    for offset in OFFSETS:
        between.append(np.empty(17 * offset + 1))  # shifts later allocations
        rows = Rows(begun_at(X, offset), begun_at(y, offset))
        state, trace = dgp_ep.fit(rows, config, np.random.default_rng(1))
        predicted = dgp_ep.predict(state, begun_at(X[:41], offset), np.random.default_rng(2))
        found.append((state.theta, state.log_evidence, trace["objective"], predicted.means, predicted.variances))
    for others in zip(*found, strict=True):
        for other in others[1:]:
            np.testing.assert_array_equal(others[0], other)


STEPS = """
import resource
import numpy as np
from ep_bench.methods.dgp_ep.energy import DGPProblem, evaluator
from ep_bench.methods.dgp_ep.layout import Structure
from ep_bench.methods.dgp_ep.initialisation import start
from ep_bench.methods.dgp_ep.training import run
from ep_bench.numerics.minibatch import AdamSchedule

rng = np.random.default_rng(0)
X, structure = rng.standard_normal((100, 3)), Structure((3, 2, 2, 1), 100)
theta, faults = start(structure, X, X, rng), []
evaluate, schedule = evaluator(DGPProblem(structure, "gaussian", 100)), AdamSchedule(16, 50, 0.005, None)
run(
    evaluate, theta, X, X[:, 0].copy(), schedule, (0, 1), rng,
    lambda: faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt) or {},
)
print((faults[-1] - faults[1]) / (2 * (len(faults) - 2)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts pages as Linux does")
def test_steps_reuse_their_memory():
    found = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True)
    assert float(found.stdout) < 100.0  # page faults per step; 2,400 if the allocator returns the memory
