"""Our engines and other programs in one run on one core: processor time, and what both sides reach.

Whole fits: sparse Gaussian processes and GPy, from the same inducing inputs and hyperparameters without priors; exact
ones and GPy; Laplace approximations and laplace-torch, with evidences by one formula. Steps of training: ``vi`` and
``bb_alpha`` and PyTorch. Gradients of ``hmc`` and JAX; effective draws of predictions by ``hmc`` and by NumPyro. Both
sides of a row run one after the other; repeated rows report medians. Stop other programs first. With names of parts
(``PARTS``), only their rows are measured again, in the environment of the file.

    pip install -e '.[peers]'
    python -m benchmarks.peers_table docs/figures/peers.json
    python -m benchmarks.peers_table docs/figures/peers.json fitc vfe
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks import bench_gp, bench_networks, bench_sampling, jax_sampling, laplace_evidence, torch_networks
from benchmarks.conftest import environment_lines
from ep_bench.methods import sgp

SPARSE = "kin8nm"
EXACT = ("boston", "concrete")
LAPLACE = ("boston", "concrete", "energy", "wine", "yacht")
STEPS = [
    (name, kind, compiled)
    for name in bench_networks.SIZES
    for kind, compiled in (("float64", False), ("float32", True))
]
SAMPLED = "boston"
ROUNDS = 7  # of steps and gradients

Row = dict[str, Any]


def cpu_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of one call (seconds) and its result."""
    return bench_gp.seconds(function, time.process_time)


def row(method: str, program: str, what: str, unit: str, ours: float, theirs: float, **reached: float) -> Row:
    """Return a row; ``reached`` are the evidences or bounds (nats) of both sides, if they have any."""
    times = {"ours": float(f"{ours:.4g}"), "theirs": float(f"{theirs:.4g}")}
    return {"method": method, "program": program, "what": what, "unit": unit} | times | reached


def sparse_fits(approximation: str) -> Iterator[Row]:
    """Yield whole fits of sparse Gaussian processes, by the default search and by GPy."""
    for inducing in bench_gp.INDUCING:
        rows, Z = bench_gp.sparse_rows(SPARSE, inducing)
        ours = partial(bench_gp.our_learning, rows, Z, approximation, 1)
        ours(1)()  # compiles
        spent, value = cpu_seconds(ours(sgp.Config().steps))
        other, reached = cpu_seconds(bench_gp.learning_of_peers(rows, Z, approximation)["gpy"])
        what = f"whole fit, {approximation}, {inducing} inducing inputs, {SPARSE}"
        yield row("sgp", "GPy", what, "CPU s", spent, other, our_value=round(value, 1), their_value=round(reached, 1))


def exact_fits() -> Iterator[Row]:
    """Yield whole fits of exact Gaussian processes from one start."""
    for dataset in EXACT:
        rows, Z = bench_gp.sparse_rows(dataset)
        ours = partial(bench_gp.our_learning, rows, Z, "exact", 1)
        ours(1)()
        spent, value = cpu_seconds(ours(500))
        other, reached = cpu_seconds(bench_gp.learning_of_peers(rows, Z, "exact")["gpy"])
        what = f"whole fit, one start, {dataset}"
        yield row("gp", "GPy", what, "CPU s", spent, other, our_value=round(value, 1), their_value=round(reached, 1))


def laplace_fits() -> Iterator[Row]:
    """Yield whole fits of Laplace approximations on split 0."""
    for dataset in LAPLACE:
        found = laplace_evidence.compared(dataset, 0)
        times = found["cpu_seconds"], found["laplace_torch_cpu_seconds"]
        values = {"our_value": found["starts_15"], "their_value": found["laplace_torch"]}
        yield row("laplace", "laplace-torch", f"whole fit, {dataset}", "CPU s", *times, **values)


def training_steps() -> Iterator[Row]:
    """Yield steps of training, from epochs that alternate; ours are in double precision."""
    torch.set_num_threads(1)
    for name, kind, compiled in STEPS:
        problem = bench_networks.StepProblem(name)
        vi = problem.method == "vi"
        objective = torch_networks.vi_bound if vi else torch_networks.bb_alpha_energy
        options = (1.0,) if vi else (1.0, bench_networks.ALPHA)
        peer = torch_networks.Trainer(
            objective, problem.theta, problem.X, problem.y, problem.samples, problem.hidden, bench_networks.RATE,
            bench_networks.BATCH, *options, kind=getattr(torch, kind), compiled=compiled,
        )  # fmt: skip
        sides = problem.epoch, partial(peer.epoch, problem.order)
        for side in sides:
            side()  # compiles
        taken, _ = bench_gp.alternate(sides, problem.rounds, time.process_time)
        spent, other = 1e6 * np.median(taken, axis=0) / problem.steps_per_epoch
        what = f"step of training, {name.split('-')[1]}, {kind}{', compiled' if compiled else ''}"
        yield row(problem.method, "PyTorch", what, "CPU µs", spent, other)


def gradients() -> Iterator[Row]:
    """Yield gradients of the potential of ``hmc``, in double precision."""
    for name, (_, _, count) in bench_sampling.SIZES.items():
        X, y, w, tau, _, (our_side, _) = bench_sampling.setting(name, "relu")
        other_side = jax_sampling.gradients(w, X, y, bench_sampling.HIDDEN, bench_sampling.BETA, tau, count=count)
        our_side(), other_side()
        taken, _ = bench_gp.alternate((our_side, other_side), ROUNDS, time.process_time)
        yield row("hmc", "JAX", f"gradient, {name}", "CPU µs", *(1e6 * np.median(taken, axis=0) / count))


def effective_draws() -> Iterator[Row]:
    """Yield seconds per effective draw of the median prediction (bulk, two chains with their warm-up)."""
    ours = bench_sampling.ours(SAMPLED)
    theirs = bench_sampling.theirs(jax_sampling, SAMPLED, "numpyro")
    times = (1.0 / one["median_per_second"] for one in (ours, theirs))
    yield row("hmc", "NumPyro (NUTS)", f"effective draw of a prediction, {SAMPLED}", "s", *times)


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "gradients": gradients,
    "steps": training_steps,
    "gp": exact_fits,
    "laplace": laplace_fits,
    "draws": effective_draws,
    "fitc": partial(sparse_fits, "fitc"),
    "vfe": partial(sparse_fits, "vfe"),
}


def _name(one: Row) -> tuple[str, str, str]:
    return one["method"], one["program"], one["what"]


def main(path: str, *names: str) -> None:
    """Write environment and rows to the file ``path``; with names of parts, replace only the rows of these names."""
    if unknown := set(names) - PARTS.keys():
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    file, environment = Path(path), environment_lines()
    found: dict[str, Any] = json.loads(file.read_text()) if names else {"environment": environment, "rows": []}
    if found["environment"] != environment:
        raise SystemExit(f"{path} is of another environment; measure all parts again")
    rows = {_name(one): one for one in found["rows"]}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both sides can warn that they end before an optimum
        for name in names or PARTS:
            for one in PARTS[name]():
                print(one, flush=True)
                rows[_name(one)] = one
    found["rows"] = list(rows.values())
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
