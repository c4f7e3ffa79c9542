"""The fit of a sparse Gaussian process does not depend on the number of threads of linear algebra."""

from __future__ import annotations

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
