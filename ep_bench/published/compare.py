"""Our means beside the published ones: z and a verdict for each that applies.

z = (ours - published) / sqrt(se_ours^2 + se_published^2 + unit^2 / 12), where unit is that of the last printed digit:
a rounded number is uniform over one unit, whose variance is unit^2 / 12. Our standard error is the standard deviation
over splits (ddof 0, as in the papers) over the root of their number.

Where the table prints deviations over test points (``spread: points``), as cross-validation has them, both standard
errors are such a deviation over the root of the number of points, and our mean is over the points of all folds. Both
rest on the same observations, so that z is rather small than large. Of one random split such an error leaves out what
other training rows would have given: the reason says so; with several splits of ours their deviation is added to the
published side, and our standard error is that over splits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ep_bench.published.matching import Lock, by_splits, labels
from ep_bench.published.pooled import moments, pooled
from ep_bench.published.sources import CellOptions, load_sources
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


class MeasuredMean(NamedTuple):
    """Our side of a comparison."""

    mean: float
    stderr: float
    n_ok: int  # splits with a score
    n_other: int  # finished cells without one
    n_unconverged: int  # of the splits with a score, those whose method said that it had not converged
    split_deviation: float = 0.0  # over random splits, which a number printed with a deviation over points leaves out


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
        for number in by_splits(printed, lock.get("splits") or {})
        for method, dataset in labels(number, lock)
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


def _compare(
    number: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], lock: Lock, method: str, dataset: str
) -> dict[str, Any]:
    ours = _ours(number, cells)
    published = 0.0 if math.isnan(number["stderr"]) else number["stderr"]
    published = math.hypot(published, ours.split_deviation / math.sqrt(number["n_splits"]))
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


def _ours(number: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> MeasuredMean:
    """Return mean and standard error over the splits that have the score, in the units of the published number."""
    scored = [(moments(number["metric"], cell), cell) for cell in cells if cell.get("status") == "ok"]
    there = [(part, cell) for part, cell in scored if math.isfinite(part.mean)]
    unconverged = sum(str(cell.get("reason")).startswith(UNCONVERGED) for _, cell in there)
    if not there:
        return MeasuredMean(math.nan, math.nan, 0, len(cells), 0)
    parts, n = [part for part, _ in there], len(there)
    one_test = number["scheme"] == "kfold" or n == 1  # no row is tested on twice
    whole = pooled(parts)
    if number["spread"] == "points" and one_test and math.isfinite(whole.deviation):
        stderr = whole.deviation / math.sqrt(whole.points)
        return MeasuredMean(whole.mean, stderr, n, len(cells) - n, unconverged)
    mean = math.fsum(part.mean for part in parts) / n
    deviation = math.sqrt(math.fsum((part.mean - mean) ** 2 for part in parts) / n)
    split = deviation if number["spread"] == "points" and not one_test else 0.0
    return MeasuredMean(mean, deviation / math.sqrt(n), n, len(cells) - n, unconverged, split)


def _verdict(number: Mapping[str, Any], ours: MeasuredMean, z: float) -> str:
    if number["trust"] == "disputed":
        return "disputed"
    if ours.n_ok < number["n_splits"] or ours.n_other:
        return "incomplete"
    if abs(z) <= Z_LIMIT:
        return "reproduced"
    return "better" if z * METRICS[number["metric"]] > 0.0 else "worse"


def _reasons(number: Mapping[str, Any], ours: MeasuredMean, lock: Lock, method: str, dataset: str) -> list[str]:
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
    if ours.n_ok == 1 and number["spread"] == "points":
        reasons.append("one split: standard errors over its test points alone")
    elif ours.n_ok == 1:
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
        if remark.unless is None or not _remark_applies(remark.unless, lock, method, dataset):
            yield remark.text


def _remark_applies(wanted: CellOptions, lock: Lock, method: str, dataset: str) -> bool:
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
