"""Reference posteriors, as the studies of the experiment ``reference`` store them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.types import Array

STEPS = 128  # of stored draws, per standard deviation of the posterior


class ReferencePosterior(NamedTuple):
    """Draws of a network's output f at the N test inputs of a standard split, without noise, in the target's unit.

    The target is f plus Gaussian noise of standard deviation ``noise_deviation``. ``noise_variance`` and
    ``prior_variance`` (of all weights) are those of the model, for standardised inputs and target.
    """

    draws: Array  # (chains, draws per chain, N), rounded to 1/128 of the posterior's standard deviation
    r_hat: Array  # (N,) of the chains, which have more draws than are stored
    ess_bulk: Array  # (N,) effective sample sizes of the chains
    ess_tail: Array  # (N,)
    noise_deviation: float
    noise_variance: float
    prior_variance: float
    provenance: dict[str, Any]  # the lock file of the study: options, seed, versions, checksums, environment
    dataset: str
    split: int

    @property
    def checksum(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 checksum of the draws, which identify the reference."""
        return hashlib.sha256(self.draws.tobytes()).hexdigest()[:12]

    @property
    def pooled(self) -> Array:
        """The draws (S, N) of all chains."""
        return self.draws.reshape(-1, self.draws.shape[2])

    def __repr__(self) -> str:
        chains, count, inputs = self.draws.shape
        size = f"{chains} chains of {count} draws at {inputs} test inputs"
        return f"<ReferencePosterior of {self.dataset}, split {self.split}: {size}, R-hat at most {self.r_hat.max():.4f}>"


def rounded(draws: Array) -> dict[str, Array]:
    """Return draws (chains, draws, N) as integers ``draws``: multiples of ``step`` (N,) from ``start`` (N,)."""
    start, step = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1)) / STEPS
    step[step == 0.0] = 1.0
    return {"draws": np.rint((draws - start) / step).astype(np.int16), "start": start, "step": step}


def load_reference(
    dataset: str, split: int = 0, network: str = "relu", results: str | Path = "results"
) -> ReferencePosterior:
    """Return the reference posterior of a network on a standard split of a data set.

    Parameters
    ----------
    dataset : str
        Name of a data set.
    split : int
        Index of the standard split; test inputs are in its order (`standard_split`).
    network : str
        ``relu`` (50 rectified units) or ``probit`` (10 units of the networks of ``ep_nn``).
    results : str or Path
        Folder that contains ``reference-<dataset>``, as the folder ``results`` of a clone of the repository.

    Returns
    -------
    ReferencePosterior
        ``draws``, ``r_hat`` and the known variances.

    Raises
    ------
    UserError
        There is no such posterior or folder, or the file was altered after it was written.
    """
    folder = Path(results) / f"reference-{dataset}"
    if not folder.is_dir():
        known = [path.name.removeprefix("reference-") for path in Path(results).glob("reference-*")]
        if not known:
            problem = "no folder reference-<data set>; give the folder `results` of a clone or of a release as `results`"
            raise UserError(problem, where=str(results))
        raise UserError("no reference posteriors", where=str(results), found=dataset, allowed=known, name=dataset)
    study, prefix = store.read_intact(folder), f"{network}/{dataset}/{split}/"
    with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
        known = sorted(name.removesuffix("/draws") for name in stored.files if name.endswith("/draws"))
        if f"{prefix}draws" not in stored.files:
            raise UserError("no such reference posterior", where=str(folder), found=prefix[:-1], allowed=known)
        arrays = {name: stored[prefix + name] for name in ("r_hat", "ess_bulk", "ess_tail")}
        draws = stored[f"{prefix}start"] + stored[f"{prefix}step"] * stored[f"{prefix}draws"]
        deviation, variances = float(stored[f"{prefix}noise_deviation"]), stored[f"{prefix}variances"]
    return ReferencePosterior(draws, **arrays, noise_deviation=deviation, noise_variance=float(variances[0]),
                              prior_variance=float(variances[1]), provenance=study.lock, dataset=dataset,
                              split=split)  # fmt: skip
