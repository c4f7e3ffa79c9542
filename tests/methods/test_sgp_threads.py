"""The fit of a sparse Gaussian process does not depend on the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ep_bench import Estimator, load_dataset


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_outside_a_study_is_that_of_a_cell() -> None:
    boston = load_dataset("boston")
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = Estimator("sgp", approximation="vfe", inducing=50, starts=1, steps=40, random_state=0)
            models.append(model.fit(boston.X, boston.y))
    with threadpool_limits(1):
        first, second = (model.predict(boston.X) for model in models)
    assert np.array_equal(first, second)


def test_the_first_fit_of_a_process_starts_as_the_next() -> None:
    """The first fit loads the library of k-means, which a limit of threads that was set before does not concern."""
    program = """
import numpy as np
from threadpoolctl import threadpool_limits
from ep_bench.covariances.inducing import centres
found = []
for _ in range(2):
    with threadpool_limits(1):
        X = np.random.default_rng(0).normal(size=(9, 300, 3))
        found.append([centres(part, 20, np.random.default_rng(1)) for part in X])
print(np.array_equal(*found))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | {"OMP_NUM_THREADS": "2"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "True"
