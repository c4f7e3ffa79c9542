"""Our means beside the published ones: z and a verdict for each that applies.

z = (ours - published) / sqrt(se_ours^2 + se_published^2 + unit^2 / 12), where unit is that of the last printed digit:
a rounded number is uniform over one unit, whose variance is unit^2 / 12. Our standard error is the standard deviation
over splits (ddof 0, as in the papers) over the root of their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ep_bench.published.sources import Options, load_sources
from ep_bench.published.tables import METRICS, described_rows, source_names
from ep_bench.types import UNCONVERGED, UserError

if TYPE_CHECKING:
    import pandas as pd

CHECK_COLUMNS = (
    "source", "table", "method", "dataset", "metric", "published_mean", "published_stderr", "mean", "stderr",
    "n_splits", "z", "verdict", "reason",
)  # fmt: skip
VERDICTS = ("reproduced", "better", "worse", "disputed", "incomplete")
Z_LIMIT = 2.0
_ACCEPTED = "accepted: "
_DEFAULTS = {"folds": 10, "test_fraction": 0.1}

Lock = Mapping[str, Any]


class Ours(NamedTuple):
    """Our side of a comparison."""

    mean: float
    stderr: float
    n_ok: int  # splits with a score
    n_other: int  # finished cells without one
    n_unconverged: int  # of the splits with a score, those whose method said that it had not converged


def check(rows: pd.DataFrame, lock: Lock, against: Sequence[str] = ()) -> pd.DataFrame:
    """Return the published numbers that apply to one study's results, ours beside them, with the columns of check.csv.

    Parameters
    ----------
    rows : results.csv; ``method`` and ``dataset`` hold labels
    lock : study.lock.json: what the labels stand for, the split scheme, the accepted differences
    against : sources to compare with, by default all

    A number applies where a method's label answers to its column, the data set is the same with the same irrelevant
    inputs and no file of the user's, and the split scheme is that of the table. Where the table's splits are random
    ones of its own, a kindred scheme serves as well: the means are then independent, each with its standard error, and
    the reason says so. Splits that were planned and are not there count as missing. ``mean`` and ``stderr`` are in the
    published number's units.

    Raises UserError for a source that there is not.
    """
    import pandas as pd

    wanted = _sources(against)
    cells = _cells(rows)
    found = [
        _compare(number, cells.get((method, dataset), []), lock, method, dataset)
        for printed in described_rows()
        if printed["source"] in wanted and printed["metric"] in METRICS and math.isfinite(printed["mean"])
        for number in _under(printed, lock.get("splits") or {})
        for method, dataset in _labels(number, lock)
    ]
    found.sort(key=lambda row: tuple(str(row[key]) for key in CHECK_COLUMNS[:5]))
    frame = pd.DataFrame(found, columns=list(CHECK_COLUMNS))
    numbers = dict.fromkeys(("published_mean", "published_stderr", "mean", "stderr", "z"), "float64")
    return frame.astype({**numbers, "n_splits": "int64"})


def regressions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a check that are worse and not accepted."""
    return frame[(frame["verdict"] == "worse") & ~frame["reason"].str.startswith(_ACCEPTED)]


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Return how often each verdict stands in a check, every verdict named."""
    return {verdict: int((frame["verdict"] == verdict).sum()) for verdict in VERDICTS}


def _sources(against: Sequence[str]) -> frozenset[str]:
    known = source_names()
    for name in against:
        if name not in known:
            raise UserError("unknown source", where="--against", found=name, allowed=known, name=name)
    return frozenset(against or known)


def _cells(rows: pd.DataFrame) -> dict[tuple[str, str], list[dict[str, Any]]]:
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows.to_dict("records"):
        cells.setdefault((str(row["method"]), str(row["dataset"])), []).append({str(k): v for k, v in row.items()})
    return cells


def _labels(number: Mapping[str, Any], lock: Lock) -> Iterator[tuple[str, str]]:
    """Yield the labels of method and data set to which a published number applies."""
    for method, entry in (lock.get("methods") or {}).items():
        for dataset, ref in (lock.get("datasets") or {}).items():
            if number["method"] in (entry.get("published") or ()) and _same_data(number, dataset, ref):
                yield method, dataset


def _under(number: Mapping[str, Any], splits: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the number as it stands under a study's splits, with how many of them it takes; none where it does not."""
    if _scheme_fits(number, splits):
        yield number
    elif number["kindred_scheme"] and splits.get("scheme", "standard") == number["kindred_scheme"]:
        yield {**number, "n_splits": number["kindred_splits"]}


def _scheme_fits(number: Mapping[str, Any], splits: Mapping[str, Any]) -> bool:
    if not number["scheme"] or splits.get("scheme", "standard") != number["scheme"]:
        return False
    return all(
        number[key] is None or math.isclose(splits.get(key) or default, number[key])
        for key, default in _DEFAULTS.items()
    )


def _same_data(number: Mapping[str, Any], label: str, ref: Mapping[str, Any]) -> bool:
    own_file = ref.get("csv") is not None or ref.get("target") is not None
    same_name = ref.get("name", label) == number["name"]
    return same_name and not own_file and (ref.get("irrelevant_inputs") or 0) == number["irrelevant_inputs"]


def _compare(
    number: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], lock: Lock, method: str, dataset: str
) -> dict[str, Any]:
    ours = _ours(number["metric"], cells)
    published = 0.0 if math.isnan(number["stderr"]) else number["stderr"]
    width = math.sqrt((ours.stderr if ours.n_ok else 0.0) ** 2 + published**2 + number["unit"] ** 2 / 12.0)
    z = (ours.mean - number["mean"]) / width
    verdict = _verdict(number, ours, z)
    reasons = _reasons(number, ours, lock, method, dataset)
    if verdict == "worse":
        reasons = _accepted(number["metric"], lock, method, dataset) + reasons
    return {
        **{key: number[key] for key in ("source", "table", "metric")},
        "method": method,
        "dataset": dataset,
        "published_mean": number["mean"],
        "published_stderr": number["stderr"],
        "mean": ours.mean,
        "stderr": ours.stderr,
        "n_splits": ours.n_ok,
        "z": z,
        "verdict": verdict,
        "reason": "; ".join(reasons),
    }


def _ours(metric: str, cells: Sequence[Mapping[str, Any]]) -> Ours:
    """Return mean and standard error over the splits that have the score, in the units of the published metric."""
    scored = [(_score(metric, cell), cell) for cell in cells if cell.get("status") == "ok"]
    values = [score for score, _ in scored if math.isfinite(score)]
    unconverged = sum(str(cell.get("reason")).startswith(UNCONVERGED) for score, cell in scored if math.isfinite(score))
    n = len(values)
    if n == 0:
        return Ours(math.nan, math.nan, 0, len(cells), 0)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / n
    return Ours(mean, math.sqrt(variance / n), n, len(cells) - n, unconverged)


def _score(metric: str, cell: Mapping[str, Any]) -> float:
    """Return a cell's score as the published metric has it.

    ``lpd-mean`` and ``se-mean`` are of the standardised target: with its deviation s, log density + log s and squared
    error / s^2.
    """
    deviation = _float(cell.get("target_std"))
    if metric == "lpd-mean":
        return _float(cell.get("ll")) + (math.log(deviation) if deviation > 0.0 else math.nan)
    if metric == "se-mean":
        return (_float(cell.get("rmse")) / deviation) ** 2 if deviation > 0.0 else math.nan
    return _float(cell.get(metric))


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _verdict(number: Mapping[str, Any], ours: Ours, z: float) -> str:
    if number["trust"] == "disputed":
        return "disputed"
    if ours.n_ok < number["n_splits"] or ours.n_other:
        return "incomplete"
    if abs(z) <= Z_LIMIT:
        return "reproduced"
    return "better" if z * METRICS[number["metric"]] > 0.0 else "worse"


def _reasons(number: Mapping[str, Any], ours: Ours, lock: Lock, method: str, dataset: str) -> list[str]:
    reasons = []
    if number["method"] != method:
        reasons.append(f"published as {number['method']}")
    if number["dataset"] != dataset:
        reasons.append(f"on {number['dataset']}")
    if ours.n_ok < number["n_splits"]:
        reasons.append(f"{ours.n_ok} of {number['n_splits']} splits")
    if ours.n_other:
        reasons.append(f"{ours.n_other} cells without a score")
    if ours.n_unconverged:
        reasons.append(f"{ours.n_unconverged} of {ours.n_ok} splits not converged")
    if ours.n_ok == 1:
        reasons.append("one split, no spread of ours")
    if number["kindred_scheme"]:
        reasons.append("not the published splits but others of the same kind: independent means")
    if math.isnan(number["stderr"]):
        reasons.append("no published spread, taken as 0")
    if number["correction"]:
        reasons.append(str(number["correction"]))
    if number["trust"] == "disputed":
        reasons.append(str(number["why"]))
    return reasons + list(_remarks(number, lock, method, dataset))


def _remarks(number: Mapping[str, Any], lock: Lock, method: str, dataset: str) -> Iterator[str]:
    """Yield what is to be said of a number's protocol, or because our cells lack the options that it rests on."""
    for remark in load_sources().table(number["source"], number["table"]).remarks:
        if number["method"] not in remark.methods or remark.dataset not in {None, number["dataset"]}:
            continue
        if remark.unless is None or not _met(remark.unless, lock, method, dataset):
            yield remark.text


def _met(wanted: Options, lock: Lock, method: str, dataset: str) -> bool:
    """Return whether our cells have the options that a remark names."""
    ref = (lock.get("datasets") or {}).get(dataset, {})
    return _has(ref, wanted.dataset) and _has(_options(lock, method, dataset), wanted.options)


def _has(options: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(options.get(key) == value for key, value in wanted.items())


def _options(lock: Lock, method: str, dataset: str) -> Mapping[str, Any]:
    """Return the resolved options of a method on a data set, the entry's own where the lock has no others."""
    for group in lock.get("groups") or ():
        if (group.get("method"), group.get("dataset")) == (method, dataset):
            return dict((group.get("factors") or {}).get("options") or {})
    return dict((lock.get("methods") or {}).get(method, {}).get("options") or {})


def _accepted(metric: str, lock: Lock, method: str, dataset: str) -> list[str]:
    """Return the reason for which a study accepts a difference, if it does."""
    use = (lock.get("methods") or {}).get(method, {}).get("use")
    name = (lock.get("datasets") or {}).get(dataset, {}).get("name")
    items: Iterable[Mapping[str, Any]] = lock.get("accept") or ()
    return [
        _ACCEPTED + str(item["reason"])
        for item in items
        if item["metric"] == metric and item["method"] in {method, use} and item["dataset"] in {dataset, name}
    ][:1]
