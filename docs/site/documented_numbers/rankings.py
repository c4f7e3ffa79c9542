"""Tables of average ranks and losses: all complete entries, by family, on large sets, and within limits of CPU time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ep_bench.convergence import DAGGER
from ep_bench.plotting.method_families import DEEP, NETWORKS, PROCESSES, family_of
from ep_bench.report import summary
from ep_bench.report.leaderboard import Leaderboard, LeaderboardRow, leaderboard
from ep_bench.report.scores import MAIN
from ep_bench.report.summary import ScoreTable

from .leaderboard import SCORES, complete_entries, cpu_seconds
from .markdown import table, with_separator
from .stored import FIVE, board, comparison

LARGE = ("power", "kin8nm", "naval", "protein")
LIMITS = (1, 10, 100)  # CPU seconds

# Where the fixed options of each method are from, and the data on which they were chosen, as its module
# or its page states it.
ORIGINS = {
    "pbp": "the paper; on protein (epochs) and naval (second bias) those with which the printed test scores come out",
    "bp": "the paper; initial weights and schedule are ours",
    "vi_graves": "ours; the papers state none",
    "vi": "ours; initial standard deviations by the bound on training data of energy; step sizes with a noise "
    "head on naval and protein by the objective on training data of split 0",
    "dropout": "epochs and rates of the program; batch and step sizes by validation points of boston and yacht",
    "bb_alpha": "the authors' program; first step size by validation points",
    "hmc": "ours; numbers of steps and draws, fewer on larger sets, by the time they take",
    "sgld": "ours; the start by validation points of boston",
    "laplace": "starts by the evidence on splits 0 and 1 of the five data sets; a single start on larger sets",
    "ensemble": "the paper; step size by validation points of boston",
    "ep_nn": "the paper; rules of acceleration, order and damping on boston, with test scores in view",
    "dgp_ep": "the authors' program",
    "gp": "none; hyperparameters by the evidence",
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
    return f"{row.rank:.1f} ({row.low:.1f} to {row.high:.1f})"


def _loss(row: LeaderboardRow, score: str) -> str:
    return f"{row.loss:.2f} nats" if score == "LL" else f"{100.0 * row.loss:.0f} %"


def _marked(row: LeaderboardRow) -> str:
    """Return the name of an entry with the mark of its convergence on the ranked data sets."""
    return f"{row.method} {row.mark}".rstrip()


def _ranking(methods: Sequence[str], datasets: Sequence[str]) -> list[str]:
    """Return ranks with intervals, and losses, by three scores."""
    found = {score: _rows(score, methods, datasets) for score in SCORES}
    body = []
    for name, row in found["LL"].items():
        numbers = (text for score, rows in found.items() for text in (_rank(rows[name]), _loss(rows[name], score)))
        body.append([_marked(row), *numbers])
    body = with_separator(body, [row.mark == DAGGER for row in found["LL"].values()])
    return table(["Entry", *(head for score in SCORES for head in (f"Rank by {score}", "Loss"))], body)


def _uses() -> dict[str, str]:
    """Return the method of each entry, as studies name it."""
    return {label: str(entry["use"]) for study in board().studies for label, entry in study.lock["methods"].items()}


def _of_families(families: Sequence[str]) -> list[str]:
    uses = _uses()
    return [name for name in complete_entries() if family_of(uses[name]) in families]


def within_limits() -> list[str]:
    """Return the complete entries whose median fit stays within a limit on each of the five data sets, by rank."""
    body = []
    for limit in LIMITS:
        names = [name for name in complete_entries() if all(cpu_seconds(name, d) <= limit for d in FIVE)]
        if len(names) < 2:  # a single entry has no rank
            body.append([f"{limit} s", str(len(names)), *[", ".join(names)] * 2])
            continue
        order = (f"{_marked(row)} ({row.rank:.1f})" for row in _rows("LL", names, FIVE).values())
        best = _board("RMSE", tuple(names), FIVE).best
        lowest = min(_rows("RMSE", names, FIVE).values(), key=lambda row: row.rank)
        body.append([f"{limit} s", str(len(names)), ", ".join(order), _marked(best or lowest)])
    return table(["Limit", "Entries", "By average rank of LL", "First by RMSE"], body)


def tuning() -> list[str]:
    """Return the search for options of every complete entry, and where its fixed options are from."""
    uses = _uses()
    groups: dict[tuple[str, str], list[str]] = {}
    for name, row in _rows("LL", complete_entries(), FIVE).items():
        groups.setdefault((row.tuning, ORIGINS[uses[name]]), []).append(name)
    body = [["; ".join(names), tuning, origin] for (tuning, origin), names in groups.items()]
    return table(["Entries", "Search for options", "Fixed options"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "ranking": lambda: _ranking(complete_entries(), FIVE),
    "ranking-networks": lambda: _ranking(_of_families([NETWORKS]), FIVE),
    "ranking-processes": lambda: _ranking(_of_families([PROCESSES, DEEP]), FIVE),
    "ranking-large": lambda: _ranking(complete_entries(LARGE), LARGE),
    "within-limits": within_limits,
    "tuning": tuning,
}
