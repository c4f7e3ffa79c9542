"""Reads the entries of a study on its methods and data sets: comparisons, accepted differences, cells left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from ep_bench.spec.models import Accept, Compare, LeftOut, MethodEntry, RankGroup
from ep_bench.spec.problems import Place, Problems, validate
from ep_bench.types import DatasetRef

_E = TypeVar("_E", Accept, LeftOut)
Names = tuple[str, str]  # name and label of a method or a data set


def labels_of_study(datasets: Sequence[DatasetRef], methods: Sequence[MethodEntry]) -> tuple[list[Names], list[Names]]:
    """Return the names and labels of the data sets and methods of a study."""
    return [(ref.name, ref.label) for ref in datasets], [(entry.use, entry.label) for entry in methods]


def labels_of_experiment(raw: Mapping[str, Any]) -> tuple[list[Names], list[Names]]:
    """Return the names and labels of the data sets and methods in the options of an experiment, which may be wrong."""
    options = raw.get("options")
    found = options if isinstance(options, dict) else {}
    lists: list[list[Any]] = [found[key] if isinstance(found.get(key), list) else [] for key in ("datasets", "methods")]
    entries = [entry for entry in lists[1] if isinstance(entry, dict)]
    methods = [(str(entry.get("use")), str(entry.get("label", entry.get("use")))) for entry in entries]
    return [(str(name), str(name)) for name in lists[0]], methods


class Comparisons:
    """Reads entries and adds their mistakes to ``problems``. Methods and data sets are named by name or label.

    ``datasets`` and ``methods`` are pairs of name and label.
    """

    def __init__(self, problems: Problems, datasets: Sequence[Names], methods: Sequence[Names]) -> None:
        self._problems, self._labels = problems, [label for _, label in methods]
        self._datasets = {key for names in datasets for key in names}
        self._methods = {key for names in methods for key in names}

    def check_labels(self, compare: Compare | None) -> None:
        """Record labels to compare with that no method has."""
        for key, label in (compare.model_dump(exclude_none=True) if compare else {}).items():
            self._problems.known(("compare", key), label, "not a method of this study", self._labels)

    def ranks(self, raw: Sequence[Any], sources: Collection[str]) -> list[RankGroup]:
        """Return the groups to rank; their labels may belong to other studies in the same report."""
        kept: list[RankGroup] = []
        for i, item in enumerate(raw):
            place: Place = ("ranks", i)
            group = validate(RankGroup, item, place, self._problems)
            if group is None:
                continue
            if group.beside is not None:
                self._problems.known((*place, "beside"), group.beside, "unknown source of published tables", sources)
            if group.name in {other.name for other in kept}:
                self._problems.add((*place, "name"), "a second group with this name", found=group.name)
            for j, pair in enumerate(group.pairs):
                for k, label in enumerate(pair):
                    self._problems.known((*place, "pairs", j, k), label, "not a method of this group", group.methods)
            kept.append(group)
        return kept

    def exceptions(self, model: type[_E], key: str, raw: Sequence[Any]) -> list[_E]:
        """Return the entries of a list, which differ in more than their reason; an item may name several data sets."""
        kept: dict[tuple[str | None, ...], _E] = {}
        for i, single in ((i, single) for i, item in enumerate(raw) for single in _by_dataset(item)):
            place: Place = (key, i)
            checked = validate(model, single, place, self._problems)
            if checked is None:
                continue
            self._check_names(place, checked.method, checked.dataset)
            same = tuple(checked.model_dump(exclude={"reason"}).values())
            if same in kept:
                self._problems.add(place, "is in the list already")
            kept[same] = checked
        return list(kept.values())

    def _check_names(self, place: Place, method: str, dataset: str | None) -> None:
        self._problems.known((*place, "method"), method, "not a method of this study", self._methods)
        if dataset is not None:
            self._problems.known((*place, "dataset"), dataset, "not a data set of this study", self._datasets)


def _by_dataset(item: Any) -> list[Any]:
    """Return an item once per data set that it names, as it is if it does not name a list."""
    names = item.get("dataset") if isinstance(item, Mapping) else None
    return [{**item, "dataset": name} for name in names] if isinstance(names, list) and names else [item]
