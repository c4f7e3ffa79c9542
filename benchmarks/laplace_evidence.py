"""Log evidence of `laplace` and of laplace-torch's marginal-likelihood training, by one formula.

Both fit 50 rectified units with one prior precision and the full Gauss-Newton matrix to five standard splits.
laplace-torch trains by Adam on all data points (step size 0.01, 600 epochs, precisions updated every 20 epochs) and
keeps its best evidence. The formula is that of ``methods.laplace.evidence``, at laplace-torch's weights and at the
nearest mode of its precisions: away from a mode, Laplace's approximation is not defined.

    pip install -e '.[peers]'
    python -m benchmarks.laplace_evidence docs/figures/laplace-evidence.csv
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.vi_depth import standardised
from ep_bench.methods import laplace
from ep_bench.methods.laplace.curvature import spread_over
from ep_bench.methods.laplace.evidence import Precisions, approximate
from ep_bench.methods.laplace.mode_search import ModeProblem, most_probable
from ep_bench.models import mlp
from ep_bench.types import Array, Rows

DATASETS = ("boston", "concrete", "energy", "wine", "yacht")
SPLITS = 5
HIDDEN, EPOCHS, FREQUENCY, RATE = 50, 600, 20, 0.01


def trained_by_laplace_torch(train: Rows) -> tuple[Array, Precisions]:
    """Return the weights (P,) and precisions that laplace-torch's marginal-likelihood training keeps."""
    import torch
    from laplace import marglik_training
    from laplace.curvature import BackPackGGN
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    X, y = torch.tensor(train.X), torch.tensor(train.y)[:, None]
    layers = torch.nn.Linear(X.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
    found, model, *_ = marglik_training(
        torch.nn.Sequential(*layers), DataLoader(TensorDataset(X, y), batch_size=len(y)), "regression", "full",
        backend=BackPackGGN, optimizer_kwargs={"lr": RATE}, n_epochs=EPOCHS, n_epochs_burnin=50,
        marglik_frequency=FREQUENCY, prior_structure="scalar", n_hypersteps=20,
    )  # fmt: skip
    W, b, v, c = (one.detach().numpy() for one in model.parameters())
    alpha, beta = float(found.prior_precision.mean()), 1.0 / float(found.sigma_noise) ** 2
    return np.concatenate([W.T.ravel(), b, v.ravel(), c]), Precisions(np.full(2, alpha), beta)


def compared(dataset: str, split: int) -> dict[str, Any]:
    """Return the log evidences (nats) and CPU seconds of both on one split of a data set."""
    train = standardised(dataset, split)
    problem = ModeProblem(train.X, train.y, mlp.layout(train.X.shape[1], (HIDDEN,)))
    begun = time.process_time()
    w, precisions = trained_by_laplace_torch(train)
    theirs = time.process_time() - begun
    mode = most_probable(problem, w, spread_over(problem.layers, precisions.alpha), precisions.beta, 2000).weights
    laplace.fit(train, laplace.Config(**laplace.METHOD.warmup), np.random.default_rng(0))  # compile
    begun = time.process_time()
    several = laplace.fit(train, laplace.Config(), np.random.default_rng(0))[0].log_evidence
    ours = time.process_time() - begun
    single = laplace.fit(train, laplace.Config(starts=0), np.random.default_rng(0))[0].log_evidence
    evidences = {
        "starts_0": single,
        "starts_15": several,
        "laplace_torch": approximate(problem, w, precisions, "full").log_evidence,
        "laplace_torch_at_mode": approximate(problem, mode, precisions, "full").log_evidence,
    }
    seconds = {"cpu_seconds": ours, "laplace_torch_cpu_seconds": theirs}
    rounded = {name: round(float(value), 1) for name, value in (evidences | seconds).items()}
    return {"dataset": dataset, "split": split} | rounded


def main(path: str) -> None:
    """Write one row per data set and split to the file ``path``."""
    warnings.simplefilter("ignore")
    rows = [compared(dataset, split) for dataset in DATASETS for split in range(SPLITS)]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
