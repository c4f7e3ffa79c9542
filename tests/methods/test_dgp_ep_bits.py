"""Steps of deep Gaussian processes reuse their memory."""

import subprocess
import sys

import pytest

STEPS = """
import resource
import numpy as np
from ep_bench.methods.dgp_ep.energy import DGPProblem, evaluator
from ep_bench.methods.dgp_ep.layout import Structure
from ep_bench.methods.dgp_ep.initialisation import start
from ep_bench.covariances.energy_training import run
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
