"""The union of the entries of several study files.

A study with ``include`` has the data sets, methods, overrides, accepted differences and rank groups of the included
files, followed by its own. The overrides of an included file apply to its own entries only; those of the including file
apply to all. Methods with the same options are one entry with the first label; further labels are aliases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ep_bench.spec.models import Accept, Catalogue, Compare, MethodEntry, RankGroup, Study, override_blocks
from ep_bench.spec.problems import Place, Problems
from ep_bench.spec.shipped import shipped_studies
from ep_bench.types import DatasetRef

Options = Mapping[str, Any]


@dataclass
class _Method:
    """A method of the union: its entry, where it was read, and its resolved options on the data sets of its files."""

    entry: MethodEntry
    place: str  # file:line
    options: Options
    by_dataset: dict[str, Options] = field(default_factory=dict)


class Union:
    """The entries of the files that were added, without repetitions. Contradictions are added to ``problems``."""

    def __init__(self, base: Path, catalogue: Catalogue, problems: Problems) -> None:
        self.aliases: dict[str, str] = {}
        self._base, self._catalogue, self._problems = base, catalogue, problems
        self._datasets: dict[str, tuple[DatasetRef, str]] = {}
        self._methods: dict[str, _Method] = {}
        self._blocks: dict[tuple[str, str], dict[str, Any]] = {}  # overrides by the labels of data set and method
        self._accept: list[Accept] = []
        self._ranks: dict[str, tuple[RankGroup, str]] = {}

    @property
    def datasets(self) -> list[DatasetRef]:
        return [ref for ref, _ in self._datasets.values()]

    @property
    def methods(self) -> list[MethodEntry]:
        return [method.entry for method in self._methods.values()]

    @property
    def places(self) -> dict[str, str]:
        """Return where each entry was read: ``file:line`` by ``datasets/<label>`` or ``methods/<label>``."""
        found = {f"datasets/{label}": place for label, (_, place) in self._datasets.items()}
        return found | {f"methods/{label}": method.place for label, method in self._methods.items()}

    def add(self, part: Study, place: Place) -> None:
        """Add the entries of an included file; ``place`` is that of its name in the including file."""
        for ref in part.datasets:
            self._add_dataset(ref, part.places[f"datasets/{ref.label}"], place)
        for entry in part.methods:
            given = {ref.label: part.options_for(entry, ref) for ref in part.datasets}
            moved = entry.model_copy(update={"use": self._moved(entry.use, part.path.parent)})
            others = list(self._methods.values())
            label = self._add_method(moved, part.places[f"methods/{entry.label}"], place, given, others)
            for dataset, options in given.items():
                if options != entry.options:
                    self._blocks[dataset, label] = options
        for alias, label in part.aliases.items():
            self.aliases.setdefault(alias, self._label(label))
        self._accept += part.accept
        for group in part.ranks:
            known, where = self._ranks.setdefault(group.name, (group, str(part.path)))
            if known != group:
                self._contradiction(place, f"the rank group {group.name!r}", where, str(part.path))

    def add_own(
        self, datasets: Sequence[DatasetRef], methods: Sequence[MethodEntry], places: Mapping[str, str]
    ) -> None:
        """Add the entries of the including file. Two of them may have the same options."""
        included = list(self._methods.values())
        for i, ref in enumerate(datasets):
            self._add_dataset(ref, places[f"datasets/{ref.label}"], ("datasets", i))
        for i, entry in enumerate(methods):
            self._add_method(entry, places[f"methods/{entry.label}"], ("methods", i), {}, included)

    def _add_dataset(self, ref: DatasetRef, where: str, place: Place) -> None:
        known, first = self._datasets.setdefault(ref.label, (ref, where))
        if known != ref:
            self._contradiction(place, f"the data set {ref.label!r}", first, where)

    def _add_method(
        self,
        entry: MethodEntry,
        where: str,
        place: Place,
        given: Mapping[str, Options],
        others: Sequence[_Method],
    ) -> str:
        """Add a method unless it is known by its label or is one of ``others``; return its label in the union.

        ``given`` are its options by data set, with the overrides of its file.
        """
        new = _Method(entry, where, self._resolved(entry, entry.options))
        new.by_dataset = {dataset: self._resolved(entry, options) for dataset, options in given.items()}
        known = self._methods.get(self._label(entry.label))
        if known is None:
            known = next((each for each in others if not _difference(each, new)), None)
        elif difference := _difference(known, new):
            self._contradiction(place, f"the method {entry.label!r}", known.place, where, difference)
        if known is None:
            self._methods[entry.label] = new
            return entry.label
        if entry.label != known.entry.label:
            self.aliases[entry.label] = known.entry.label
        known.by_dataset = {**new.by_dataset, **known.by_dataset}
        if known.entry.published is None:
            known.entry = known.entry.model_copy(update={"published": entry.published})
        return known.entry.label

    def overrides(self, own: Mapping[str, Mapping[str, Options]]) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the options that differ from those of the entries, by the labels of data set and method.

        ``own`` are the overrides of the including file, which come last.
        """
        named = {
            dataset: _merged((self._label(method), options) for method, options in by_method.items())
            for dataset, by_method in own.items()
        }
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for ref in self.datasets:
            for entry in self.methods:
                block = dict(self._blocks.get((ref.label, entry.label), {}))
                for options in override_blocks(named, entry, ref):
                    block |= options
                if block:
                    found.setdefault(ref.label, {})[entry.label] = block
        return found

    def accept(self, own: Sequence[Accept]) -> list[Accept]:
        """Return the accepted differences; the including file's reasons replace those of included files."""
        found = {
            (self._label(each.method), each.dataset, each.metric): each for each in [*reversed(self._accept), *own]
        }
        return [each.model_copy(update={"method": label}) for (label, _, _), each in found.items()]

    def compare(self, own: Compare) -> Compare:
        """Return the comparisons of the including file."""
        return Compare(
            rows=self._label(own.rows) if own.rows else None, times=self._label(own.times) if own.times else None
        )

    def ranks(self, own: Sequence[RankGroup]) -> list[RankGroup]:
        """Return the rank groups; the including file replaces groups of included files with the same name."""
        groups = {name: group for name, (group, _) in self._ranks.items()} | {group.name: group for group in own}
        return [self._relabelled(group) for group in groups.values()]

    def _label(self, label: str) -> str:
        return self.aliases.get(label, label)

    def _relabelled(self, group: RankGroup) -> RankGroup:
        labels = list(dict.fromkeys(map(self._label, group.methods)))
        pairs = [[self._label(first), self._label(second)] for first, second in group.pairs]
        return group.model_copy(update={"methods": labels, "pairs": pairs})

    def _moved(self, use: str, folder: Path) -> str:
        """Return a method in a file, relative to ``folder``, relative to the including file."""
        file, sign, name = use.rpartition(":")
        if not sign or not file.startswith("."):
            return use
        moved = os.path.relpath((folder / file).resolve(), self._base)
        return f"{moved if moved.startswith('.') else './' + moved}:{name}"

    def _resolved(self, entry: MethodEntry, options: Options) -> Options:
        return self._catalogue.resolved_options(entry.use, options, self._base)

    def _contradiction(self, place: Place, what: str, first: str, second: str, difference: str = "") -> None:
        detail = f": {difference}" if difference else ""
        self._problems.add(place, f"{what} is not the same in {first} and in {second}{detail}; change one label")


def included_studies(raw: Any, stack: Sequence[Path], read: Callable[[Path], Study], problems: Problems) -> list[Study]:
    """Return the studies of the included files: paths relative to the including file, or names of shipped studies.

    ``stack`` are the including files, the innermost last. Raises UserError for mistakes in an included file.
    """
    found, folder = [], stack[-1].parent
    for i, name in enumerate(raw if isinstance(raw, list) else ()):
        place: Place = ("include", i)
        if not isinstance(name, str):
            continue  # reported with the other wrong types
        file = folder / name if (folder / name).is_file() else shipped_studies().get(name, folder / name)
        if not file.is_file():
            near = sorted(path.name for path in folder.glob("*.yaml") if path != stack[-1])
            problems.add(place, "no such study file", found=name, allowed=near or None, name=name)
        elif file.resolve() in stack:
            problems.add(place, "includes itself", found=name)
        else:
            study = read(file)
            if study.experiment is None:
                found.append(study)
            else:
                problems.add(place, "is an experiment; only studies with methods can be included", found=name)
    return found


def _difference(first: _Method, second: _Method) -> str:
    """Return how two methods differ, empty if they are the same on all data sets that both files have."""
    a, b = first.entry, second.entry
    if a.use != b.use:
        return f"{a.use} and {b.use}"
    if a.tune != b.tune:
        return "tune"
    if a.published is not None and b.published is not None and a.published != b.published:
        return f"published {a.published} and {b.published}"
    if text := _differing_options(first.options, second.options):
        return text
    for dataset in first.by_dataset.keys() & second.by_dataset.keys():
        if text := _differing_options(first.by_dataset[dataset], second.by_dataset[dataset]):
            return f"on {dataset}, {text}"
    return ""


def _differing_options(first: Options, second: Options) -> str:
    names = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return ", ".join(f"{name} {first.get(name)} and {second.get(name)}" for name in names)


def _merged(items: Iterator[tuple[str, Options]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, options in items:
        found.setdefault(name, {}).update(options)
    return found
