"""Samplers for the posterior of a network of 50 rectified units: effective samples of test predictions per CPU second.

All variants have the same CPU time, warm-up and starts included, and four chains; a quarter of the iterations is
warm-up. The noise and the variance of the weights are sampled. ``entry of the study`` has the settings of HMC-1 in
``configs/dgp_2016/bnn_sampling.yaml``; each other variant differs from it in one respect:

- ``variances integrated out``: trajectories of p(w | y), U(w) = (a_n + N/2) log(b_n + E) + (a_w + P/2) log(b_w + S),
  with E and S half the sums of squared residuals and of squared weights; the masses are constant after the warm-up;
- ``output weights integrated out``: with 100 steps per trajectory, see ``hmc_marginal``;
- ``microcanonical``: trajectories of constant speed with a Metropolis test (Robnik et al. 2023, 2025). In coordinates
  scaled by the roots of the masses, a kick by the gradient g over a step e turns the direction u (P,) towards -g and
  changes the energy by (P - 1) log(cosh d - (u.g / |g|) sinh d), d = e |g| / (P - 1);
- ``six temperatures``: the likelihood raised to the powers 1, 0.9, ..., 0.9^5. Neighbours exchange their weights
  with the noise integrated out. The CPU time is that of all six;
- ``started from the prior``: weights with variance 1 instead of points close to modes, found by L-BFGS;
- ``without rescaling``: without the slice updates along the orbits of rectified units (``hyperparameters.rescale``).

Columns of the table: ``ess_worst`` and ``ess_median`` of the bulk effective samples over test inputs, ``r_hat`` the
largest one, ``distance`` the root mean square over test inputs of the difference of the means from those of all other
runs of the case, in standard deviations of the posterior.

    python -m benchmarks.hmc_samplers DRAWS --seconds 20 --seed 0 --table docs/figures/hmc-samplers.csv

Draws are stored in the folder DRAWS. Runs that it has are not computed again; the table has all of them, and keeps its
other rows. The distance is empty without other runs of the case in the folder.
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.hmc_marginal import OutputsIntegrated
from ep_bench import load_dataset, standard_split
from ep_bench.methods import hmc
from ep_bench.methods.hmc import chain, hyperparameters
from ep_bench.methods.hmc import walker as walkers
from ep_bench.methods.hmc.chain import HMCChain
from ep_bench.methods.hmc.model import NetworkModel
from ep_bench.methods.hmc.trajectory import DIVERGENT, kinetic
from ep_bench.methods.hmc.walker import Walker
from ep_bench.models.rectified import single_half_squares
from ep_bench.models.residuals import chosen_half_squares
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.numerics.jit import REORDER, jit
from ep_bench.types import Rows

CHAINS, WARMUP, KEPT, INPUTS = 4, 0.25, 4000, 100
POWERS = 0.9 ** np.arange(6)
CASES = {
    "concrete": ("concrete", None, 0.01),
    "energy": ("energy", None, 0.01),
    "energy, b = 2": ("energy", None, 2.0),
    "kin8nm, 1,000 points": ("kin8nm", 1000, 0.01),
}


@jit(relaxed=REORDER)
def potential(rows, w, beta, tau, shapes, work, single, g):
    """Return U(w) and E, and write the gradient of U to g (P,).

    ``shapes`` has a_n + N/2, b_n, a_w + P/2, b_w if the variances are integrated out, or is empty if they are fixed.
    """
    if single is None:
        error = chosen_half_squares(rows.X, rows.y, w, rows.layers, rows.kind, work, work.rectified, work.S, g)
    else:
        error = single_half_squares(w, single, g)
    squares = 0.0
    for i in range(w.size):
        squares += 0.5 * w[i] * w[i]
    value = beta * error + tau * squares
    if shapes.size:
        beta, tau = shapes[0] / (shapes[1] + error), shapes[2] / (shapes[3] + squares)
        value = shapes[0] * math.log(shapes[1] + error) + shapes[2] * math.log(shapes[3] + squares)
    for i in range(w.size):
        g[i] = beta * g[i] + tau * w[i]
    return value, error


@jit(relaxed=REORDER)
def kick(p, g, root, step, is_microcanonical):
    """Move momenta or turn a direction p (P,) by the gradient g / root, in place; return the change of the energy."""
    if not is_microcanonical:
        for i in range(p.size):
            p[i] -= step * g[i] / root[i]
        return 0.0
    norm = along = 0.0
    for i in range(p.size):
        g[i] /= root[i]
        norm += g[i] * g[i]
        along -= p[i] * g[i]
    norm = math.sqrt(norm)
    along /= norm
    delta = step * norm / (p.size - 1)
    z = math.exp(-delta)
    scale = 0.5 * (1.0 + along + (1.0 - along) * z * z)  # (cosh + along sinh) e^-delta
    by_gradient = (0.5 * (1.0 - z * z) + along * (0.5 * (1.0 + z * z) - z)) / (scale * norm)
    for i in range(p.size):
        p[i] = p[i] * z / scale - by_gradient * g[i]
    return (p.size - 1) * (delta + math.log(scale))


@jit(relaxed=REORDER)
def trajectory(rows, w, p, beta, tau, shapes, root, step, count, is_microcanonical, work, single):
    """Do the same as ``hmc.trajectory.leapfrog`` for the two other dynamics; ``root`` (P,) is that of the masses."""
    g, ones = np.empty_like(w), np.ones_like(w)
    value, error = potential(rows, w, beta, tau, shapes, work, None, g)
    before = value if is_microcanonical else value + kinetic(p, ones)
    added = 0.0
    potential(rows, w, beta, tau, shapes, work, single, g)
    for k in range(count):
        added += kick(p, g, root, step if k else 0.5 * step, is_microcanonical)
        for i in range(w.size):
            w[i] += step * p[i] / root[i]
        value, _ = potential(rows, w, beta, tau, shapes, work, single, g)
        if not value + added - before < DIVERGENT:
            return np.inf, error, k + 3
    added += kick(p, g, root, 0.5 * step, is_microcanonical)
    value, error = potential(rows, w, beta, tau, shapes, work, None, g)
    change = value + added + (0.0 if is_microcanonical else kinetic(p, ones)) - before
    return (change if change < DIVERGENT else np.inf), error, count + 3


class OtherDynamics(Walker):
    """A walker whose trajectories are those of ``trajectory``."""

    is_integrated = False
    is_microcanonical = False

    @property
    def curvature(self) -> Any:
        return self._curvature

    @curvature.setter
    def curvature(self, value: Any) -> None:
        self._curvature, self._fixed = value, value / self.noise + self.tau  # set in the warm-up only

    def draw_hyperparameters(self) -> None:
        if self.is_integrated:  # the prior variance of the last iteration does not belong to the weights
            self.prior = hyperparameters.draw_prior_variances(
                self.w, self.model.group, self.model.weight_prior, self.rng
            )
        super().draw_hyperparameters()

    def move(self, step: float, steps: int) -> float:
        model, size = self.model, len(self.w)
        root = np.sqrt(self._fixed if self.is_integrated else self._curvature / self.noise + self.tau)
        (a_n, b_n), (a_w, b_w) = model.noise_prior, model.weight_prior
        shapes = np.array([a_n + 0.5 * len(model.rows.y), b_n, a_w + 0.5 * size, b_w] * self.is_integrated)
        p, w = self.rng.standard_normal(size), self.w.copy()
        step *= math.exp(self.rng.uniform(*walkers.JITTER_LOG_SIZE))
        if self.is_microcanonical:
            p, step = p / np.linalg.norm(p), step * math.sqrt(size)
        count = max(1, round(steps * (1.0 + walkers.JITTER_STEPS * self.rng.uniform(-1.0, 1.0))))
        change, error, gradients = trajectory(
            model.rows, w, p, 1.0 / self.noise, 1.0 / self.prior[0], shapes, root, step, count,
            self.is_microcanonical, self.work, self.single,
        )  # fmt: skip
        self.gradients += gradients
        acceptance = math.exp(min(0.0, -change))
        if self.rng.random() < acceptance:
            self.w, self.error = w, error
        return acceptance if change < np.inf else math.nan


class Integrated(OtherDynamics):
    is_integrated = True


class Microcanonical(OtherDynamics):
    is_microcanonical = True


class FromPrior(Walker):
    def start(self, iterations: int) -> None:  # noqa: ARG002
        self.draw_from_prior()


class Tempered(Walker):
    """A walker whose likelihood is raised to a power; ``noise`` is the variance divided by the power."""

    power = 1.0

    def draw_hyperparameters(self) -> None:
        super().draw_hyperparameters()
        shape, rate = self._noise_posterior(self.error)
        self.noise = float(hyperparameters.draw_variance(shape, rate, self.rng)) / self.power

    def _noise_posterior(self, error: float) -> tuple[float, float]:
        a, b = self.model.noise_prior
        return a + 0.5 * self.power * len(self.model.rows.y), b + self.power * error

    def log_density(self, error: float) -> float:
        """Return log p(y | w)^power, with the noise integrated out."""
        shape, rate = self._noise_posterior(error)
        return -shape * math.log(rate)


class TemperedChain:
    """The chains of all powers; the first one is that of the posterior."""

    def __init__(self, *of_chain: Any) -> None:
        self.chains = [HMCChain(*of_chain) for _ in POWERS]
        self.walker, self.rng, self.swaps = self.chains[0].walker, of_chain[-1], []
        for one, power in zip(self.chains, POWERS, strict=True):
            one.walker.power = power

    def warm_up(self, iteration: int) -> None:
        for one in self.chains:
            one.warm_up(iteration)
        self._swap()

    def step(self) -> None:
        for one in self.chains:
            one.step()
        self._swap()

    def _swap(self) -> None:
        ladder, first = [one.walker for one in self.chains], int(self.rng.integers(2))
        for a, b in zip(ladder[first::2], ladder[first + 1 :: 2], strict=False):
            gain = a.log_density(b.error) + b.log_density(a.error) - a.log_density(a.error) - b.log_density(b.error)
            swapped = self.rng.random() < math.exp(min(0.0, gain))
            self.swaps.append(swapped)
            if swapped:
                a.w, a.error, a.prior, b.w, b.error, b.prior = b.w, b.error, b.prior, a.w, a.error, a.prior

    def monitor(self) -> dict[str, Any]:
        return self.chains[0].monitor()


class Variant(NamedTuple):
    """Settings of a sampler."""

    steps: int = 300
    is_pooled: bool = True
    is_single: bool = True
    walker: type[Walker] = Walker
    chain: Any = HMCChain
    jitter: tuple[float, float] = walkers.JITTER_LOG_SIZE
    rescale: Any = hyperparameters.rescale
    longer: int = 1  # multiple of the CPU time


ENTRY = "entry of the study"
VARIANTS = {
    ENTRY: Variant(),
    "5 times as long": Variant(longer=5),
    "double precision": Variant(is_single=False),
    "100 steps": Variant(steps=100),
    "1,000 steps": Variant(steps=1000),
    "masses per weight": Variant(is_pooled=False),
    "narrow jitter of the step size": Variant(jitter=(-0.1, 0.1)),
    "without rescaling": Variant(rescale=lambda *_: None),
    "started from the prior": Variant(walker=FromPrior),
    "variances integrated out": Variant(walker=Integrated),
    "output weights integrated out": Variant(steps=100, walker=OutputsIntegrated),
    "microcanonical": Variant(walker=Microcanonical),
    "six temperatures": Variant(walker=Tempered, chain=TemperedChain),
}


def problem(case: str) -> tuple[NetworkModel, Any]:
    """Return the model of a case, and its test inputs, standardised."""
    name, points, rate = CASES[case]
    data = load_dataset(name)
    train, test = standard_split(len(data.y), 0)
    X, y = data.X[train[:points]], data.y[train[:points]]
    mean, std = X.mean(axis=0), X.std(axis=0)
    model = hmc.model_of(Rows((X - mean) / std, (y - y.mean()) / y.std()), hmc.Config(noise_prior=(0.1, rate)))
    return model, np.ascontiguousarray((data.X[test[:INPUTS]] - mean) / std)


def drawn(case: str, variant: Variant, seconds: float, seed: int) -> dict[str, Any]:
    """Return predictions (chains, draws, M) of chains that take ``seconds`` of CPU time, and their counts."""
    model, inputs = problem(case)
    rngs = np.random.default_rng(seed).spawn(CHAINS + 1)

    def schedule(warmup: int) -> chain.HMCSchedule:
        options = {"masses": "pooled" if variant.is_pooled else "per weight"}
        options["gradients"] = "single" if variant.is_single else "double"
        return hmc.schedule_of(hmc.Config(steps=variant.steps, warmup=warmup, **options))

    with (
        mock.patch.object(walkers, "JITTER_LOG_SIZE", variant.jitter),
        mock.patch.object(hyperparameters, "rescale", variant.rescale),
        mock.patch.object(chain, "Walker", variant.walker),
    ):
        trial = variant.chain(model, schedule(1), inputs, rngs[-1])
        for _ in range(2):  # the first compiles
            begun = time.process_time()
            for _ in range(5):
                trial.walker.draw_hyperparameters()
                trial.walker.move(1e-4, variant.steps)
                trial.monitor()
            iteration = (time.process_time() - begun) / 5 * len(getattr(trial, "chains", "1"))
        seconds *= variant.longer
        warmup = round(WARMUP * seconds / CHAINS / iteration)
        begun = time.process_time()
        chains = [variant.chain(model, schedule(warmup), inputs, rng) for rng in rngs[:-1]]
        for k in range(warmup):
            for one in chains:
                one.warm_up(k + 1)
        monitored = []
        while (spent := time.process_time() - begun) < seconds:
            for one in chains:
                one.step()
            monitored.append([one.monitor() for one in chains])
    predictions = np.array([[one["predictions"] for one in row] for row in monitored]).swapaxes(0, 1)
    parts = [part for one in chains for part in getattr(one, "chains", [one])]
    return {
        "predictions": predictions[:, :: -(-predictions.shape[1] // KEPT)].astype(np.float32),
        "cpu_seconds": spent, "warmup": warmup, "draws": predictions.shape[1],
        "gradients": sum(part.walker.gradients for part in parts),
        "divergent": sum(part.divergences for part in parts) / len(parts) / predictions.shape[1],
        "noise": np.mean([[one["noise_deviation"] for one in row] for row in monitored]),
        "swaps": np.mean(np.concatenate([one.swaps for one in chains])) if variant.chain is TemperedChain else np.nan,
    }  # fmt: skip


def measured(found: Any, others: Any) -> dict[str, Any]:
    """Return the row of a run, compared with predictions (chains, draws, M) of the other runs."""
    own, spent = found["predictions"], float(found["cpu_seconds"])
    values = mcmc_diagnostics.by_series(own)
    ess, r_hat = values["ess_bulk"], values["r_hat"]
    mean = np.mean([other.mean(axis=(0, 1)) for other in others], axis=0)
    distances = (own.mean(axis=(0, 1)) - mean) / np.mean([other.std(axis=(0, 1)) for other in others], axis=0)
    return {
        "cpu_seconds": round(spent, 1),
        **{name: int(found[name]) for name in ("warmup", "draws", "gradients")},
        **{name: round(float(found[name]), 4) for name in ("divergent", "noise", "swaps")},
        "ess_worst": round(float(ess.min()), 1),
        "ess_median": round(float(np.median(ess)), 1),
        "ess_worst_per_second": round(float(ess.min()) / spent, 3),
        "ess_median_per_second": round(float(np.median(ess)) / spent, 3),
        "r_hat": round(float(r_hat.max()), 3),
        "r_hat_median": round(float(np.median(r_hat)), 3),
        "distance": round(float(np.sqrt(np.mean(distances**2))), 3),
    }


def table(folder: Path, file: Path) -> pd.DataFrame:
    """Return one row per run of a folder, and the rows of other runs in a file."""
    runs = {tuple(file.stem.split("_")): dict(np.load(file)) for file in folder.glob("*.npz")}
    rows = []
    for (case, name, seconds, seed), found in runs.items():
        others = [run["predictions"] for key, run in runs.items() if key[0] == case and run is not found]
        rows.append({"case": case, "variant": name, "seconds": seconds, "seed": int(seed), **measured(found, others)})
    old = pd.read_csv(file).to_dict("records") if file.exists() else []
    runs_of = ("case", "variant", "seconds", "seed")
    known = {tuple(str(row[name]) for name in runs_of) for row in rows}
    rows += [row for row in old if tuple(str(row[name]) for name in runs_of) not in known]
    rows.sort(key=lambda row: (list(CASES).index(row["case"]), row["seed"], list(VARIANTS).index(row["variant"])))
    return pd.DataFrame(rows)


def main() -> None:
    """Run the variants that the folder does not have, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=CASES)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--table", type=Path, help="file of the table of all runs")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for case, name in product(given.cases, given.variants):
        file = given.folder / f"{case}_{name}_{given.seconds:g}_{given.seed}.npz"
        if not file.exists():
            np.savez(file, **drawn(case, VARIANTS[name], given.seconds, given.seed))
    if given.table:
        table(given.folder, given.table).to_csv(given.table, index=False)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
