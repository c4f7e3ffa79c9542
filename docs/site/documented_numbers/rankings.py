"""Tables of average ranks and losses: all complete entries, by family, on large sets, and within limits of CPU time.

Losses are against the best mean without a dagger on each data set, so that no unconverged entry is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from ep_bench.convergence import DAGGER
from ep_bench.plotting.method_families import DEEP, NETWORKS, PROCESSES, family_of
from ep_bench.report import summary
from ep_bench.report.leaderboard import Leaderboard, LeaderboardRow, leaderboard
from ep_bench.report.scores import MAIN
from ep_bench.report.summary import ScoreTable

from .convergence_blocks import HEADINGS, block_of, counts_over, in_blocks, mark_on, with_headings
from .leaderboard import SCORES, WALL, complete_entries, cpu_seconds, has_wall_times
from .markdown import table
from .stored import FIVE, LARGE, board, board_cells, comparison

LIMITS = (1, 10, 100, 1000)  # CPU seconds

# Where the fixed options of each method are from, and the data on which they were chosen, as its module
# or its page states it.
ORIGINS = {
    "pbp": "the paper; on protein (epochs) and naval (second bias) those with which the printed test scores come out",
    "bp": "the paper; initial weights and schedule are ours",
    "vi_graves": "ours; the papers state none",
    "vi": "ours; initial standard deviations by the bound on training data of energy; step sizes with a noise "
    "head on naval and protein by the objective on training data of split 0; five starts on the five data sets",
    "dropout": "epochs and rates of the program; batch and step sizes by validation points of boston and yacht",
    "bb_alpha": "the authors' program; first step size by validation points",
    "hmc": "ours; draws on the five data sets by R-hat of predictions, on larger sets by the time they take",
    "hmc, b = 2": "as HMC-1, but the noise prior by printed test log-likelihoods of energy, yacht and naval",
    "sgld": "ours; the start by validation points of boston",
    "laplace": "starts by the evidence on splits 0 and 1 of the five data sets; a single start on larger sets",
    "ensemble": "the paper; step size by validation points of boston; up to 10,000 epochs on concrete, energy and "
    "yacht, because the limit of 2,000 was chosen there",
    "ep_nn": "the paper; rules of acceleration, order and damping on boston, with test scores in view",
    "dgp_ep": "the authors' program",
    "dgp_ep, cosine": "ours; steps, schedule and start by the energy of training data on some splits of five data sets",
    "gp": "hyperparameters by the evidence; 20 starts on boston and yacht, because scores with three depend on the "
    "seed",
    "gp_t": "none; hyperparameters by the evidence",
    "sgp": "number of inducing inputs in the label; hyperparameters by the bound or the evidence",
    "ep_bench.baselines:NGBoostRegressor": "the defaults of the package, but at most 2,000 trees",
    "ep_bench.baselines:ConstantRegressor": "none",
    "sklearn.linear_model:BayesianRidge": "the defaults of scikit-learn",
}


@cache
def _score_table(score: str) -> ScoreTable:
    found = summary.score_table(board(), next(one for one in MAIN if one.name == SCORES[score][0]))
    if found is None:
        raise ValueError(f"no row has {score}")
    return found


@cache
def _board(score: str, methods: tuple[str, ...], datasets: tuple[str, ...]) -> Leaderboard:
    return leaderboard(board(), _score_table(score), comparison(), methods, datasets)


def _rows(score: str, methods: Sequence[str], datasets: Sequence[str]) -> dict[str, LeaderboardRow]:
    """Return the rows of the ranked methods, sorted by rank; those that have not converged are last."""
    return {row.method: row for row in _board(score, tuple(methods), tuple(datasets)).ranked}


def _rank(row: LeaderboardRow) -> str:
    """Return the rank with the mark of the data sets that count in it, and the interval."""
    return f"{row.rank:.1f} {row.mark}".rstrip() + f" ({row.low:.1f} to {row.high:.1f})"


def _counted(score: str, datasets: Sequence[str]) -> list[str]:
    """Return the data sets on which a score is bounded, and counts in ranks and losses."""
    return [dataset for dataset in datasets if dataset not in _score_table(score).unbounded]


@cache
def _losses(score: str, datasets: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Return the losses of complete entries against the best mean without a dagger, by entry and data set.

    A loss is a difference in nats, or a relative difference of errors; it is negative below that mean.
    """
    metric, higher = SCORES[score]
    found: dict[tuple[str, str], float] = {}
    methods = complete_entries(datasets)
    for dataset in datasets:
        means = {name: float(np.mean([row[metric] for row in board_cells(name, dataset)])) for name in methods}
        valid = [mean for name, mean in means.items() if mark_on(name, dataset) != DAGGER]
        best = max(valid) if higher else min(valid)
        found |= {(name, dataset): best - mean if higher else mean / best - 1.0 for name, mean in means.items()}
    return found


def _loss_text(loss: float, score: str) -> str:
    if score == "LL":
        return f"{loss + 0.0:.2f} nats".replace("-0.00", "0.00")
    return f"{100.0 * loss:.0f} %".replace("-0 ", "0 ")


def _loss(method: str, score: str, datasets: Sequence[str]) -> str:
    """Return the mean loss of an entry: of differences, or the geometric mean of ratios."""
    losses = np.array([_losses(score, tuple(datasets))[method, dataset] for dataset in _counted(score, datasets)])
    mean = losses.mean() if SCORES[score][1] else np.exp(np.log1p(losses).mean()) - 1.0
    return _loss_text(float(mean), score)


def _ranking(methods: Sequence[str], datasets: Sequence[str]) -> list[str]:
    """Return ranks with intervals, and losses, by three scores."""
    found = {score: _rows(score, methods, datasets) for score in SCORES}

    def line(name: str) -> list[str]:
        numbers = (text for score, rows in found.items() for text in (_rank(rows[name]), _loss(name, score, datasets)))
        return [name, _converged(name, datasets), *numbers]

    body = with_headings(_by_rank(methods, datasets), datasets, line)
    return table(["Entry", "Converged", *(head for score in SCORES for head in (f"Rank by {score}", "Loss"))], body)


def _converged(method: str, datasets: Sequence[str]) -> str:
    """Return the number of converged splits and of those that state whether they have, or a dash if none does."""
    counts = counts_over(method, datasets)
    unstated = f", {counts.unstated} not stated" if counts.unstated else ""
    return f"{counts.converged} of {counts.judged}{unstated}" if counts.judged else "–"


def _by_rank(methods: Sequence[str], datasets: Sequence[str]) -> list[str]:
    """Return entries by their average rank of the log-likelihood."""
    rows = _rows("LL", methods, datasets)
    return sorted(rows, key=lambda name: rows[name].rank)


def losses_by_data_set(score: str, datasets: tuple[str, ...]) -> list[str]:
    """Return the losses on each data set against the best mean without a dagger."""

    def line(name: str) -> list[str]:
        return [name, *(f"{_number(name, dataset)} {mark_on(name, dataset)}".rstrip() for dataset in datasets)]

    def _number(name: str, dataset: str) -> str:
        return _loss_text(_losses(score, datasets)[name, dataset], score).removesuffix(" nats")

    return table(["Entry", *datasets], with_headings(_by_rank(complete_entries(datasets), datasets), datasets, line))


def _uses() -> dict[str, str]:
    """Return the method of each entry, as studies name it."""
    return {label: str(entry["use"]) for study in board().studies for label, entry in study.lock["methods"].items()}


def _of_families(families: Sequence[str], datasets: Sequence[str] = FIVE) -> list[str]:
    uses = _uses()
    return [name for name in complete_entries(datasets) if family_of(uses[name]) in families]


def within_limits(datasets: tuple[str, ...]) -> list[str]:
    """Return the complete entries of which every fit stays within a limit of CPU time, by rank and block."""
    head = ["Limit", "Entries", *(heading.capitalize() for heading in HEADINGS), "First by RMSE, without a dagger"]
    body = [[f"{limit:,} s", *_within(limit, datasets)] for limit in LIMITS]
    return table(head, body)


def _within(limit: int, datasets: tuple[str, ...]) -> list[str]:
    """Return the number of entries within a limit, those of each block by rank, and the first one by RMSE."""
    names = [name for name in complete_entries(datasets) if _longest_fit(name, datasets) <= limit]
    if len(names) < 2:  # a single entry has no rank
        return [str(len(names)), *["–"] * len(HEADINGS), ", ".join(names) or "–"]
    ranks, by_rmse = (_rows(score, names, datasets) for score in ("LL", "RMSE"))
    blocks: list[list[str]] = [[] for _ in HEADINGS]
    for name in _by_rank(names, datasets):
        blocks[block_of(counts_over(name, datasets))].append(f"{_timed(name, datasets)} ({ranks[name].rank:.1f})")
    valid = [row for row in by_rmse.values() if row.mark != DAGGER]
    first = _timed(min(valid, key=lambda row: row.rank).method, datasets) if valid else "–"
    return [str(len(names)), *(", ".join(block) or "–" for block in blocks), first]


def _longest_fit(method: str, datasets: Sequence[str]) -> float:
    """Return the CPU seconds of the longest fit, search included, infinite if some data set has no times."""
    return max(max(cpu_seconds(method, dataset), default=float("inf")) for dataset in datasets)


def _timed(method: str, datasets: Sequence[str]) -> str:
    return method + (WALL if has_wall_times(method, datasets) else "")


def tuning() -> list[str]:
    """Return the search for options of every complete entry, and where its fixed options are from."""
    uses = _uses()
    groups: dict[tuple[str, str], list[str]] = {}
    rows = _rows("LL", complete_entries(), FIVE)
    for name in in_blocks(_by_rank(complete_entries(), FIVE), FIVE):
        row = rows[name]
        groups.setdefault((row.tuning, _origin(name, uses[name])), []).append(name)
    body = [["; ".join(names), tuning, origin] for (tuning, origin), names in groups.items()]
    return table(["Entries", "Search for options", "Fixed options"], body)


def _origin(name: str, use: str) -> str:
    """Return where the fixed options of an entry are from, by a part of its label if its method has several."""
    parts = (key for key in ORIGINS if key.startswith(f"{use}, ") and key.removeprefix(f"{use}, ") in name)
    return ORIGINS[next(parts, use)]


SIZES = {"small": FIVE, "large": LARGE}
TABLES: dict[str, Callable[[], list[str]]] = {
    "ranking": lambda: _ranking(complete_entries(), FIVE),
    "ranking-networks": lambda: _ranking(_of_families([NETWORKS]), FIVE),
    "ranking-processes": lambda: _ranking(_of_families([PROCESSES, DEEP]), FIVE),
    "ranking-large": lambda: _ranking(complete_entries(LARGE), LARGE),
    "ranking-large-networks": lambda: _ranking(_of_families([NETWORKS], LARGE), LARGE),
    "ranking-large-processes": lambda: _ranking(_of_families([PROCESSES, DEEP], LARGE), LARGE),
    "within-limits": partial(within_limits, FIVE),
    "within-limits-large": partial(within_limits, LARGE),
    **{
        f"losses-{size}-{score.lower()}": partial(losses_by_data_set, score, datasets)
        for size, datasets in SIZES.items()
        for score in SCORES
    },
    "tuning": tuning,
}
