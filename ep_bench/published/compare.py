"""Comparison of means with published ones: z and a verdict for each published value that applies.

z = (ours - published) / sqrt(se_ours^2 + se_published^2 + unit^2 / 12), where unit is that of the last printed digit.
A rounded number is uniform over one unit, which has the variance unit^2 / 12. Our standard error is the standard
deviation over splits (ddof 0, as in the papers) divided by the square root of their number.

Some tables of cross-validation print standard deviations over test points (``spread: points``). Both standard errors
are then such a standard deviation divided by the square root of the number of points. Our mean is over the points of
all folds. Both means use the same observations, so |z| tends to be too small. For one random split, this standard error
ignores the variation between splits, which the reason states. If we have several splits, our standard error is that
over splits, and their standard deviation is added to the published standard error.

If the published values of all our splits are known, z is the corrected resampled t of the differences split by split
(Nadeau and Bengio 2003), which the reason states: both means share the difficulty of the splits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ep_bench.convergence import ConvergedSplits, count
from ep_bench.errors import UserError
from ep_bench.published.matching import Lock, by_splits, labels, options
from ep_bench.published.pooled import moments, pooled
from ep_bench.published.sources import CellOptions, load_sources
from ep_bench.published.values import METRICS, described_rows, place, rows_as_printed, source_names, values_by_split

if TYPE_CHECKING:
    import pandas as pd

CHECK_COLUMNS = (
    "source", "table", "method", "dataset", "metric", "published_mean", "published_stderr", "mean", "stderr",
    "n_splits", "z", "verdict", "reason",
)  # fmt: skip
COLUMN_NAMES = ("published_method", "published_dataset")  # as printed; they are no columns of check.csv
VERDICTS = ("worse", "better", "reproduced", "incomplete", "disputed", "yardstick")  # worst first
Z_LIMIT = 2.0
ACCEPTED = "accepted: "


class MeasuredMean(NamedTuple):
    """Our mean in a comparison."""

    mean: float
    stderr: float
    n_ok: int  # splits with a score
    n_other: int  # finished cells without a score
    converged: ConvergedSplits  # of the splits with a score
    split_std: float = 0.0  # standard deviation over random splits, not part of a published spread over points


def check(rows: pd.DataFrame, lock: Lock, against: Sequence[str] = ()) -> pd.DataFrame:
    """Return the comparison of a study's results with all published values that apply.

    The table has the columns of check.csv and the names of the published column and data set (``COLUMN_NAMES``).
    Further columns are ``repeats``, the earlier source from which a value is quoted, or empty, and ``unconverged``, the
    number of our splits that are known not to have converged.

    A published value applies if the method corresponds to its column, the data set and its irrelevant inputs are the
    same, and the split scheme is that of the table. If the table has its own random splits, a scheme of the same kind
    also applies. The means are then independent, which the reason states. ``mean`` and ``stderr`` are in the units of
    the published value.

    Parameters
    ----------
    rows : results.csv; ``method`` and ``dataset`` hold labels
    lock : study.lock.json, which has the meaning of the labels, the split scheme and the accepted differences
    against : sources to compare with, by default all

    Raises
    ------
    UserError
        Unknown source.
    """
    import pandas as pd

    wanted = _sources(against)
    cells = _cells(rows)
    found = [
        _compare(number, cells.get((method, dataset), []), lock, method, dataset)
        for printed in (*described_rows(), *rows_as_printed())
        if printed["source"] in wanted and printed["metric"] in METRICS and math.isfinite(printed["mean"])
        for number in by_splits(printed, lock.get("splits") or {})
        for method, dataset in labels(number, lock)
    ]
    found.sort(key=lambda row: tuple(str(row[key]) for key in CHECK_COLUMNS[:5]))
    frame = pd.DataFrame(found, columns=[*CHECK_COLUMNS, *COLUMN_NAMES, "repeats", "unconverged"])
    numbers = dict.fromkeys(("published_mean", "published_stderr", "mean", "stderr", "z"), "float64")
    return frame.astype({**numbers, "n_splits": "int64", "unconverged": "int64"})


def regressions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a comparison that are worse and not accepted."""
    return frame[(frame["verdict"] == "worse") & ~frame["reason"].str.startswith(ACCEPTED)]


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Return the number of published values per verdict, worst first, including verdicts without values.

    A value counts once, even if a later paper repeats it. If several entries correspond to it, its verdict is the worst
    one of those with all splits.
    """
    values = _by_value(counted_once(frame))
    return {verdict: int((values["verdict"] == verdict).sum()) for verdict in VERDICTS}


def verdict_counts(frame: pd.DataFrame) -> str:
    """Return the number of published values per verdict in words.

    The words include how many of the worse ones are accepted, how many of the better and reproduced ones are of splits
    that have not converged, and how many values are left out because they repeat those of an earlier paper.
    """
    once = counted_once(frame)
    found = counts(once)
    failed = int((_by_value(regressions(once))["verdict"] == "worse").sum())
    accepted = found["worse"] - failed
    values = _by_value(once)
    open_ones = values.loc[values["unconverged"] > 0, "verdict"].value_counts()
    of = {
        verdict: f" ({open_ones[verdict]} of them not converged)"
        for verdict in ("better", "reproduced")
        if verdict in open_ones
    }
    of["worse"] = _accepted_words(found["worse"], accepted)
    words = ", ".join(f"{count} {verdict}{of.get(verdict, '')}" for verdict, count in found.items() if count)
    repeated = len(_by_value(frame)) - sum(found.values())
    return words + (f"; not counted: {repeated} repeated from an earlier paper" if repeated else "")


def counted_once(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison without the values that are quoted from a source whose value is in the comparison.

    If several sources quote one value and its origin is not in the comparison, the rows of the first source remain.
    """
    quoted = frame["repeats"].ne("")
    ordered = frame.assign(_origin=frame["repeats"].where(quoted, frame["source"]), _quoted=quoted)
    ordered = ordered.sort_values(["_quoted", "source"], kind="stable")
    first = ordered.groupby(["_origin", "method", "dataset", "metric"], sort=False)["source"].transform("first")
    return frame[first.eq(ordered["source"]).reindex(frame.index)]


def _accepted_words(worse: int, accepted: int) -> str:
    if not accepted:
        return ""
    return " (accepted with a reason)" if accepted == worse else f" ({accepted} of them accepted with a reason)"


def _by_value(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per published value, the worst one."""
    return worst_first(frame).drop_duplicates(["source", "table", "metric", *COLUMN_NAMES])


def worst_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison sorted by verdict, accepted differences after others, then by decreasing absolute z."""
    place = frame["verdict"].map(VERDICTS.index) + 0.5 * frame["reason"].str.startswith(ACCEPTED)
    order = {"_place": place, "_size": frame["z"].abs()}
    ordered = frame.assign(**order).sort_values([*order], ascending=[True, False], kind="stable")
    return ordered.drop(columns=[*order])


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
    published = math.hypot(published, ours.split_std / math.sqrt(number["n_splits"]))
    width = math.sqrt((ours.stderr if ours.n_ok else 0.0) ** 2 + published**2 + number["unit"] ** 2 / 12.0)
    paired = _paired(number, cells)
    z = (ours.mean - number["mean"]) / width if paired is None else paired
    verdict = _verdict(number, ours, z)
    reasons = _reasons(number, ours, lock, method, dataset)
    if paired is not None:
        reasons.append("paired, split by split")
    if verdict == "worse":
        reasons = _accepted(number["metric"], lock, method, dataset) + reasons
    return {
        **{key: number[key] for key in ("source", "table", "metric")},
        "method": method,
        "dataset": dataset,
        "published_method": number["method"],
        "published_dataset": number["dataset"],
        "repeats": number["repeats"],
        "published_mean": number["mean"],
        "published_stderr": number["stderr"],
        "mean": ours.mean,
        "stderr": ours.stderr,
        "n_splits": ours.n_ok,
        "z": z,
        "verdict": verdict,
        "reason": "; ".join(reasons),
        "unconverged": ours.converged.unconverged,
    }


def _ours(number: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> MeasuredMean:
    """Return mean and standard error over the splits that have the score, in the units of the published value."""
    scored = [(moments(number["scored_by"], cell), cell) for cell in cells if cell.get("status") == "ok"]
    finite = [(part, cell) for part, cell in scored if math.isfinite(part.mean)]
    converged = count(cell for _, cell in finite)
    if not finite:
        return MeasuredMean(math.nan, math.nan, 0, len(cells), converged)
    parts, n = [part for part, _ in finite], len(finite)
    disjoint = number["scheme"] == "kfold" or n == 1  # each data point is tested at most once
    whole = pooled(parts)
    if number["spread"] == "points" and disjoint and math.isfinite(whole.deviation):
        stderr = whole.deviation / math.sqrt(whole.points)
        return MeasuredMean(whole.mean, stderr, n, len(cells) - n, converged)
    mean = math.fsum(part.mean for part in parts) / n
    std = math.sqrt(math.fsum((part.mean - mean) ** 2 for part in parts) / n)
    split = std if number["spread"] == "points" and not disjoint else 0.0
    return MeasuredMean(mean, std / math.sqrt(n), n, len(cells) - n, converged, split)


def _paired(number: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the corrected resampled t of the differences, None if the published value of a split is not known."""
    known = values_by_split().get(place(number), {})
    scores = [(cell, moments(number["scored_by"], cell).mean) for cell in cells if cell.get("status") == "ok"]
    scored = [(cell, mean) for cell, mean in scores if math.isfinite(mean)]
    if len(scored) < 2 or any(int(cell["split"]) not in known for cell, _ in scored):
        return None
    gaps = [mean - known[int(cell["split"])] for cell, mean in scored]
    ratio = statistics.fmean(cell["n_test"] / cell["n_train"] for cell, _ in scored)
    return statistics.fmean(gaps) / (statistics.stdev(gaps) * math.sqrt(1.0 / len(gaps) + ratio))


def _verdict(number: Mapping[str, Any], ours: MeasuredMean, z: float) -> str:
    if number["trust"] in {"disputed", "yardstick"}:
        return str(number["trust"])
    if ours.n_ok < number["n_splits"] or ours.n_other:
        return "incomplete"
    if abs(z) <= Z_LIMIT:
        return "reproduced"
    return "better" if z * METRICS[number["metric"]] > 0.0 else "worse"


def _reasons(number: Mapping[str, Any], ours: MeasuredMean, lock: Lock, method: str, dataset: str) -> list[str]:
    reasons = []
    if number["method"] != method:
        reasons.append(f"published as {number['method']}")
    if number["repeats"]:
        reasons.append(f"repeated from {number['repeats']}")
    if number["dataset"] != dataset:
        reasons.append(f"on {number['dataset']}")
    if ours.n_ok < number["n_splits"]:
        reasons.append(f"{ours.n_ok} of {number['n_splits']} splits")
    if ours.n_other:
        reasons.append(f"{ours.n_other} cells without a score")
    if ours.converged.shortfall:
        reasons.append(ours.converged.shortfall)
    if ours.n_ok == 1 and number["spread"] == "points":
        reasons.append("one split: standard errors over its test points alone")
    elif ours.n_ok == 1:
        reasons.append("one split, no spread of ours")
    if number["kindred_scheme"]:
        reasons.append("not the published splits but others of the same kind: independent means")
    if math.isnan(number["stderr"]):
        reasons.append("no published spread, taken as 0")
    elif number["stderr"] == 0.0:
        reasons.append("the printed standard error is 0 by rounding")
    if number["correction"]:
        reasons.append(str(number["correction"]))
    if number["trust"] == "disputed":
        reasons.append(str(number["why"]))
    return reasons + list(_remarks(number, lock, method, dataset))


def _remarks(number: Mapping[str, Any], lock: Lock, method: str, dataset: str) -> Iterator[str]:
    """Yield the remarks on the protocol of a published value, and on options that our cells do not share."""
    for remark in load_sources().table(number["source"], number["table"]).remarks:
        if number["method"] not in remark.methods or remark.dataset not in {None, number["dataset"]}:
            continue
        if remark.use not in {"", _use(lock, method)}:
            continue
        if remark.unless is None or not _remark_applies(remark.unless, lock, method, dataset):
            yield remark.text


def _use(lock: Lock, method: str) -> str:
    """Return the registry name or dotted path of an entry's method."""
    return str((lock.get("methods") or {}).get(method, {}).get("use"))


def _remark_applies(wanted: CellOptions, lock: Lock, method: str, dataset: str) -> bool:
    """Return whether our cells have the options that a remark names."""
    ref = (lock.get("datasets") or {}).get(dataset, {})
    return _has(ref, wanted.dataset) and _has(options(lock, method, dataset), wanted.options)


def _has(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(found.get(key) == value for key, value in wanted.items())


def _accepted(metric: str, lock: Lock, method: str, dataset: str) -> list[str]:
    """Return the reason for which a study accepts a difference, if there is one."""
    name = (lock.get("datasets") or {}).get(dataset, {}).get("name")
    items: Iterable[Mapping[str, Any]] = lock.get("accept") or ()
    return [
        ACCEPTED + str(item["reason"])
        for item in items
        if item["method"] in {method, _use(lock, method)}
        and item.get("metric", metric) == metric
        and item.get("dataset", dataset) in {dataset, name}
    ][:1]
