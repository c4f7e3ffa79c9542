"""EP for networks: the numbers of iterations of section 3.3.1, for parts of the sites alone, on one fold of boston."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench import data
from ep_bench.methods import ep_nn
from ep_bench.methods.ep_nn import initialisation, schedule
from ep_bench.methods.ep_nn.approximation import NetworkApproximation
from ep_bench.methods.ep_nn.posterior import output_sums
from ep_bench.methods.ep_nn.prior_sweeps import output_priors
from ep_bench.methods.ep_nn.sites import OUTPUT, OUTPUT_PRIOR, SCALE, WEIGHT_PRIOR, record
from ep_bench.types import SplitScheme

pytestmark = pytest.mark.slow

STEPS = (1e-2, 1e-4)  # relative steps that count as convergence, which the paper does not state
ENOUGH = 60


@pytest.fixture(scope="module")
def fitted():
    """Return an approximation after the sweeps before the release of the priors of input weights, and its sites."""
    whole = data.load_dataset("boston")
    scheme = data.resolve_scheme(SplitScheme("kfold", folds=10), whole.card)
    rows = data.make_split(scheme, whole, 0).train
    X, y = ((part[rows] - part[rows].mean(axis=0)) / part[rows].std(axis=0) for part in (whole.X, whole.y))
    X = np.column_stack([X, np.ones(len(X))])
    config = ep_nn.Config()
    order = initialisation.along_a_direction(X, np.random.default_rng(0))
    approximation = NetworkApproximation(ep_nn.problem(X, y, config), ep_nn.NOISE_START, order)
    initialisation.start(approximation, config.weight_variance, config.bias_variance)
    schedule.run(approximation, ep_nn.schedule_of(config)._replace(sweeps=schedule.WEIGHTS_FROM))
    approximation.released.noise = False
    return approximation, approximation.snapshot()


def with_first_output_priors(approximation, here):
    """Restore the sites, with those of the priors of output weights as at the start; return the approximation."""
    approximation.restore(here)
    prior, K = approximation.prior, len(approximation.problem.linear)
    prior.output_tau[:-1] = 1.0 / initialisation.OUTPUT_VARIANCE
    prior.output_nu[:-1] = np.linspace(*initialisation.OUTPUT_MEANS, K) / initialisation.OUTPUT_VARIANCE
    assert approximation.refresh()
    return approximation


def iterations(step):
    """Return after how many calls the relative step is below each of ``STEPS``."""
    sizes = [step() for _ in range(ENOUGH)]
    return [1 + next(i for i, size in enumerate(sizes) if size < limit) for limit in STEPS]


def relative(found, *groups):
    return max(float(np.sqrt(found.steps[group, 0] / found.steps[group, 1])) for group in groups)


def test_sites_of_output_weights_converge_in_at_most_five_iterations(fitted):
    approximation = with_first_output_priors(*fitted)
    approximation.released.outputs = False
    approximation.sites.alpha[:] = approximation.sites.beta[:] = 0.0
    assert approximation.refresh()

    def step():
        before = approximation.snapshot()
        found = approximation.sweep(0.0, 1.0, 0.0)
        approximation.recover(before, found)
        return relative(found, OUTPUT)

    few, many = iterations(step)
    assert 2 <= few <= many <= 5


def test_priors_of_output_weights_converge_in_five_to_ten_iterations(fitted):
    approximation = with_first_output_priors(*fitted)
    problem, sums = approximation.problem, output_sums(approximation.sites)

    def step():
        found = record()
        options = problem.prior_fraction, *problem.output_prior, 1, 0.0, found
        assert output_priors(*sums, approximation.prior, approximation.post, *options)
        return relative(found, OUTPUT_PRIOR)

    few, many = iterations(step)
    assert 5 <= few <= many <= 10


def test_priors_of_input_weights_converge_in_ten_to_forty_iterations(fitted):
    approximation, here = fitted
    approximation.restore(here)

    def step():
        found = record()
        approximation.sweep_weight_priors(0.6, found)  # section 3.3.1: 0.5 to 0.7
        assert approximation.refresh()
        return relative(found, WEIGHT_PRIOR, SCALE)

    few, many = iterations(step)
    assert 10 <= few <= many <= 40
