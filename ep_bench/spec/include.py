"""The union of the entries of several study files.

A study with ``include`` has the data sets, methods, overrides, accepted differences, cells left out and rank groups of
the included files, followed by its own. The overrides of an included file apply to its own entries only; those of the
including file apply to all.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ep_bench import catalogue
from ep_bench.spec.models import Accept, LeftOut, MethodEntry, Study, override_blocks
from ep_bench.spec.problems import Place, Problems
from ep_bench.spec.shipped import shipped_studies
from ep_bench.types import DatasetRef

Options = Mapping[str, Any]


@dataclass
class _Method:
    """A method of the union: its entry, where it was read, and its options in its files by data set."""

    entry: MethodEntry
    where: str  # file:line
    options: dict[str, Options] = field(default_factory=dict)

    def on(self, dataset: str) -> Options:
        """Return the options on a data set, without the overrides of the including file."""
        return self.options.get(dataset, self.entry.options)


class StudyUnion:
    """The entries of the files that were added, without repetitions. Contradictions are added to ``problems``."""

    def __init__(self, base: Path, problems: Problems) -> None:
        self._base, self._problems = base, problems
        self._datasets: dict[str, tuple[DatasetRef, str]] = {}
        self._methods: dict[str, _Method] = {}
        self._accept: list[Accept] = []
        self._left_out: list[LeftOut] = []

    @property
    def datasets(self) -> list[DatasetRef]:
        return [ref for ref, _ in self._datasets.values()]

    @property
    def methods(self) -> list[MethodEntry]:
        return [method.entry for method in self._methods.values()]

    @property
    def places(self) -> dict[str, str]:
        """Return where each entry was read: ``file:line`` by ``datasets/<label>`` or ``methods/<label>``."""
        found = {f"datasets/{label}": where for label, (_, where) in self._datasets.items()}
        return found | {f"methods/{label}": method.where for label, method in self._methods.items()}

    def add(self, part: Study, place: Place) -> None:
        """Add the entries of an included file; ``place`` is that of its name in the including file."""
        for ref in part.datasets:
            self._add_dataset(ref, part.places[f"datasets/{ref.label}"], place)
        for entry in part.methods:
            moved = entry.model_copy(update={"use": self._moved(entry.use, part.path.parent)})
            options: dict[str, Options] = {ref.label: part.options_for(entry, ref) for ref in part.datasets}
            where = part.places[f"methods/{entry.label}"]
            self._add_method(_Method(moved, where, options), place)
        # Names of methods and data sets mean the entries of this file only.
        for entry, ref in itertools.product(part.methods, part.datasets):
            names = {entry.use, entry.label}, {ref.name, ref.label}
            new = {"method": entry.label, "dataset": ref.label}
            self._accept += [each.model_copy(update=new) for each in part.accept if _is_of(each, *names)]
            self._left_out += [each.model_copy(update=new) for each in part.left_out if _is_of(each, *names)]

    def add_own(
        self, datasets: Sequence[DatasetRef], methods: Sequence[MethodEntry], places: Mapping[str, str]
    ) -> None:
        """Add the entries of the including file."""
        for i, ref in enumerate(datasets):
            self._add_dataset(ref, places[f"datasets/{ref.label}"], ("datasets", i))
        for i, entry in enumerate(methods):
            self._add_method(_Method(entry, places[f"methods/{entry.label}"]), ("methods", i))

    def overrides(self, own: Mapping[str, Mapping[str, Options]]) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the options that differ from those of the entries, by the labels of data set and method.

        ``own`` are the overrides of the including file, which come last.
        """
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for ref in self.datasets:
            for label, method in self._methods.items():
                options = self._options(method, ref, own)
                if options != method.entry.options:
                    found.setdefault(ref.label, {})[label] = options
        return found

    def accept(self, own: Sequence[Accept]) -> list[Accept]:
        """Return the accepted differences; the including file's reasons replace those of included files."""
        return list({(a.method, a.dataset, a.metric): a for a in [*reversed(self._accept), *own]}.values())

    def left_out(self, own: Sequence[LeftOut]) -> list[LeftOut]:
        """Return the combinations left out; the including file's reasons replace those of included files."""
        return list({(each.method, each.dataset): each for each in [*reversed(self._left_out), *own]}.values())

    def _add_dataset(self, ref: DatasetRef, where: str, place: Place) -> None:
        known, first = self._datasets.setdefault(ref.label, (ref, where))
        if known != ref:
            self._contradiction(place, f"the data set {ref.label!r}", first, where)

    def _add_method(self, new: _Method, place: Place) -> None:
        """Add a method, or its options on further data sets if its label is known."""
        label = new.entry.label
        known = self._methods.setdefault(label, new)
        if known is new:
            return
        if difference := self._difference(known, new):
            self._contradiction(place, f"the method {label!r}", known.where, new.where, difference)
        known.options = {**new.options, **known.options}
        published = known.entry.published or new.entry.published
        known.entry = known.entry.model_copy(update={"published": published})

    def _difference(self, first: _Method, second: _Method) -> str:
        """Return how two entries differ, empty if they are the same on the data sets that both files have."""
        if text := _differing_entries(first, second):
            return text
        options = (self._resolved(each, each.entry.options) for each in (first, second))
        if text := _differing_options(*options):
            return text
        for dataset in first.options.keys() & second.options.keys():
            options = (self._resolved(each, each.options[dataset]) for each in (first, second))
            if text := _differing_options(*options):
                return f"on {dataset}, {text}"
        return ""

    def _options(
        self, method: _Method, ref: DatasetRef, overrides: Mapping[str, Mapping[str, Options]]
    ) -> dict[str, Any]:
        """Return the options of a method on a data set with the overrides of the including file."""
        options = dict(method.on(ref.label))
        for block in override_blocks(overrides, method.entry, ref):
            options |= block
        return options

    def _resolved(self, method: _Method, options: Options) -> Options:
        return catalogue.resolved_options(method.entry.use, options)

    def _moved(self, use: str, folder: Path) -> str:
        """Return a method in a file, relative to ``folder``, relative to the including file."""
        file, sign, name = use.rpartition(":")
        if not sign or not file.startswith("."):
            return use
        moved = os.path.relpath((folder / file).resolve(), self._base)
        return f"{moved if moved.startswith('.') else './' + moved}:{name}"

    def _contradiction(self, place: Place, what: str, first: str, second: str, difference: str = "") -> None:
        detail = f": {difference}" if difference else ""
        self._problems.add(place, f"{what} is not the same in {first} and in {second}{detail}; change one label")


def included_studies(
    raw: Any, stack: Sequence[Path], read: Callable[[Path, Sequence[Path]], Study], problems: Problems
) -> list[Study]:
    """Return the studies of the included files: paths relative to the including file, or names of shipped studies.

    ``stack`` are the including files, the innermost last. Raises UserError for mistakes in an included file.
    """
    found, folder = [], stack[-1].parent
    for i, name in enumerate(raw if isinstance(raw, list) else ()):
        place: Place = ("include", i)
        if not isinstance(name, str):
            continue  # reported with the other wrong types
        file = folder / name if (folder / name).is_file() else shipped_studies().get(name, folder / name)
        if file.is_dir():
            problems.add(place, "is a folder, not a study file", found=name)
        elif not file.is_file():
            near = {path.name for path in folder.glob("*.yaml") if path != stack[-1]} | shipped_studies().keys()
            problem = "no such study file, and no shipped study with this name"
            problems.add(place, problem, found=name, allowed=near, name=name)
        elif file.resolve() in stack:
            chain = [path.name for path in stack[stack.index(file.resolve()) :]]
            problems.add(place, f"includes itself: {' -> '.join([*chain, file.name])}", found=name)
        else:
            study = read(file, stack)
            if study.experiment is None:
                found.append(study)
            else:
                problems.add(place, "is an experiment; only studies with methods can be included", found=name)
    return found


def _is_of(each: Accept | LeftOut, methods: Collection[str], datasets: Collection[str]) -> bool:
    return each.method in methods and (each.dataset is None or each.dataset in datasets)


def _differing_entries(first: _Method, second: _Method) -> str:
    """Return how two entries differ apart from their options."""
    a, b = first.entry, second.entry
    if a.use != b.use:
        return f"{a.use} and {b.use}"
    if a.tune != b.tune:
        return "tune"
    if a.recalibrate != b.recalibrate:
        return "recalibrate"
    if a.published is not None and b.published is not None and a.published != b.published:
        return f"published {a.published} and {b.published}"
    return ""


def _differing_options(first: Options, second: Options) -> str:
    names = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return ", ".join(f"{name} {first.get(name)} and {second.get(name)}" for name in names)
