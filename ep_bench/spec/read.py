"""The reader of studies: checks shapes first, then names, then the options of each method."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ep_bench import catalogue
from ep_bench.errors import OptionProblem, UserError, spell
from ep_bench.spec.comparisons import Comparisons, labels_of_experiment, labels_of_study
from ep_bench.spec.include import StudyUnion, included_studies
from ep_bench.spec.models import (
    SPLITS,
    Accept,
    CardEntry,
    Compare,
    FileEntry,
    LeftOut,
    Limits,
    MethodEntry,
    Recalibrate,
    Study,
    StudyFile,
    Tune,
    override_blocks,
)
from ep_bench.spec.problems import Place, Problems, validate
from ep_bench.spec.shipped import find_study
from ep_bench.spec.space import read_space
from ep_bench.spec.yaml_source import Document, read_document
from ep_bench.types import DatasetRef, SplitScheme

OWN_KEYS = ("use", "label", "tune", "recalibrate", "published")  # other keys of a method entry are its options
# Keys that a study with an experiment cannot have.
_GRID_KEYS = ("include", "datasets", "methods", "splits", "seeds", "overrides", "compare", "ranks", "left_out")
_DATASET_KEYS = tuple(dict.fromkeys((*CardEntry.model_fields, *FileEntry.model_fields)))
_TARGET = re.compile(r"[^:]+:[^\W\d]\w*(\.[^\W\d]\w*)*")
_S = TypeVar("_S", Limits, Compare)
_E = TypeVar("_E", DatasetRef, MethodEntry)


def read_study(path: str | Path, including: Sequence[Path] = ()) -> Study:
    """Return the study in a YAML file, or the study of this name that is shipped with the package.

    ``including`` are the files that include this one, directly or indirectly. Raises one UserError for all mistakes, of
    which it lists the first five. Each message has the file, line and field, the value found, the allowed values and
    the nearest correct name.
    """
    file = find_study(path)
    return check_document(read_document(file), file, including)


def check_document(document: Document, file: Path, including: Sequence[Path] = ()) -> Study:
    """Return the study in a document that belongs to the file ``file``; raises as `read_study` does."""
    problems = Problems(document.where, document.lines)
    study = _Reader(document, file, problems, including).read()
    problems.refuse()
    if study is None:  # every return of None must have recorded a mistake
        raise UserError("not a study", where=document.where)
    return study


class _Reader:
    """Reads one file and collects its mistakes in ``problems``."""

    def __init__(self, document: Document, path: Path, problems: Problems, including: Sequence[Path]) -> None:
        self.document, self.path, self.problems = document, path, problems
        self.base = path.parent.resolve()
        self._stack = (*including, path.resolve())

    def read(self) -> Study | None:
        raw = self.document.values
        file = validate(StudyFile, raw, (), self.problems)
        self._experiment(raw)
        included = included_studies(raw.get("include"), self._stack, read_study, self.problems)
        datasets = self._entries("datasets", "data set", self._dataset)
        methods = self._entries("methods", "method", self._method)
        splits = self._splits(raw["splits"]) if raw.get("splits") is not None else SplitScheme()
        limits = self._section(Limits, "limits")
        compare = self._section(Compare, "compare")
        if file is None:
            return None
        if len(datasets) < len(file.datasets) or len(methods) < len(file.methods):
            return None  # overrides and accept may refer to entries that could not be read
        union = StudyUnion(self.base, self.problems)
        for i, part in enumerate(included):
            union.add(part, ("include", i))
        places = self._places("datasets", datasets) | self._places("methods", methods)
        for entry in methods:
            places |= {f"methods/{each.label}": places[f"methods/{entry.label}"] for each in entry.by_budget()}
        methods = [each for entry in methods for each in entry.by_budget()]
        if included:
            if self.problems:
                return None
            union.add_own(datasets, methods, places)
            datasets, methods = union.datasets, union.methods
        self._overrides(file.overrides, datasets, methods)
        names = labels_of_experiment(raw) if "experiment" in raw else labels_of_study(datasets, methods)
        comparisons = Comparisons(self.problems, *names)
        accept = comparisons.exceptions(Accept, "accept", file.accept)
        left_out = comparisons.exceptions(LeftOut, "left_out", file.left_out)
        comparisons.check_labels(compare)
        ranks = comparisons.ranks(file.ranks, catalogue.known("sources"))
        overrides = file.overrides
        if included and not self.problems:
            overrides = union.overrides(overrides)
            accept, left_out = union.accept(accept), union.left_out(left_out)
            methods, places = union.methods, union.places
        if self.problems or splits is None or limits is None or compare is None:
            return None
        return Study(
            name=file.study, path=self.path, seed=file.seed, seeds=file.seeds, datasets=tuple(datasets), splits=splits,
            methods=tuple(methods), overrides=overrides, limits=limits, compare=compare, ranks=tuple(ranks),
            accept=tuple(accept), left_out=tuple(left_out), experiment=file.experiment, options=file.options,
            by_label=bool(included), places=places,
        )  # fmt: skip

    def _places(self, key: str, entries: Sequence[DatasetRef | MethodEntry]) -> dict[str, str]:
        """Return file and line of the entries of a list, by ``<key>/<label>``."""
        return {
            f"{key}/{entry.label}": f"{self.document.where}:{self.problems.line((key, i))}"
            for i, entry in enumerate(entries)
        }

    def _section(self, model: type[_S], key: str) -> _S | None:
        """Return a section of the file, its defaults if the file has none, or None if it has mistakes."""
        raw = self.document.values.get(key)
        return model() if raw is None else validate(model, raw, (key,), self.problems)

    def _experiment(self, raw: Mapping[str, Any]) -> None:
        """Record keys that are missing, or not allowed in this kind of study."""
        if "experiment" not in raw:
            for key in ("datasets", "methods"):
                if key not in raw and "include" not in raw:
                    self.problems.add((key,), "is missing; a study needs datasets and methods, or an experiment")
            if "options" in raw:
                self.problems.add(("options",), "requires an experiment; a method's options belong in its entry")
            return
        for key in _GRID_KEYS:
            if key in raw:
                hint = "; write it in `options`" if key in {"datasets", "methods"} else ""
                self.problems.add((key,), f"is not allowed with an experiment{hint}")
        name = raw["experiment"]
        if isinstance(name, str):
            known = self.problems.known(("experiment",), name, "unknown experiment", catalogue.known("experiments"))
            options = raw.get("options", {})
            if known and isinstance(options, dict):
                for problem in catalogue.check_experiment(name, options, self.base):
                    self.problems.add_option(("options",), problem)

    # data sets and splits

    def _entries(self, key: str, kind: str, read: Callable[[Any, Place], _E | None]) -> list[_E]:
        """Return the entries of a list of the file that can be read."""
        raw = self.document.values.get(key)
        entries = enumerate(raw if isinstance(raw, list) else ())
        found = [((key, i), one) for i, entry in entries if (one := read(entry, (key, i)))]
        self._unique([(place, one.label) for place, one in found], kind)
        return [one for _, one in found]

    def _dataset(self, entry: Any, place: Place) -> DatasetRef | None:
        raw = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(raw, dict):
            self.problems.add(place, "must be a data set's name or a mapping", found=entry, allowed=_DATASET_KEYS)
            return None
        own = "csv" in raw
        model = FileEntry if own else CardEntry
        foreign = [key for key in raw if key in _DATASET_KEYS and key not in model.model_fields]
        for key in foreign:
            self.problems.add((*place, key), "is not allowed with csv" if own else "requires csv")
        given = {key: value for key, value in raw.items() if key not in foreign}
        checked = validate(model, given, place, self.problems, _DATASET_KEYS)
        if isinstance(checked, FileEntry):
            return self._own_file(checked, place)
        if not isinstance(checked, CardEntry):
            return None
        name_place = place if isinstance(entry, str) else (*place, "name")
        problem = "unknown data set (a data file is {name: NAME, csv: FILE, target: COLUMN})"
        if not self.problems.known(name_place, checked.name, problem, catalogue.known("datasets")):
            return None
        return DatasetRef(
            name=checked.name, label=checked.label or checked.name, constant_inputs=checked.constant_inputs,
            irrelevant_inputs=checked.irrelevant_inputs, target_transform=checked.target_transform,
            drop_rows=checked.drop_rows, drop_inputs=checked.drop_inputs, train_points=checked.train_points,
        )  # fmt: skip

    def _own_file(self, entry: FileEntry, place: Place) -> DatasetRef | None:
        if entry.name in catalogue.known("datasets"):
            self.problems.add(
                (*place, "name"), "is the name of another data set; choose a different name", found=entry.name
            )
        file = self.base / entry.csv
        if not file.is_file():
            self.problems.add((*place, "csv"), "no such file", found=entry.csv)
        return DatasetRef(
            name=entry.name,
            label=entry.label or entry.name,
            csv=str(file.resolve()),
            target=entry.target,
            task=entry.task,
            missing=entry.missing,
            categories=entry.categories,
            dates=entry.dates,
        )

    def _splits(self, raw: Any) -> SplitScheme | None:
        given = {"scheme": raw} if isinstance(raw, str) else raw
        if not isinstance(given, dict):
            self.problems.add(("splits",), "must be a scheme's name or a mapping", found=raw, allowed=SPLITS)
            return None
        if given and given.keys() <= {"count"}:
            given = {"scheme": "standard", **given}
        scheme = given.get("scheme")
        place: Place = ("splits",) if isinstance(raw, str) else ("splits", "scheme")
        if not isinstance(scheme, str):
            keys = {key for model in SPLITS.values() for key in model.model_fields}
            for key in given.keys() - keys:
                self.problems.add(("splits", key), "unknown key", allowed=keys, name=str(key))
            problem = "is missing" if scheme is None else "must be a scheme's name"
            self.problems.add(place, problem, found=scheme, allowed=SPLITS)
            return None
        if not self.problems.known(place, scheme, "unknown split scheme", SPLITS):
            return None
        checked = validate(SPLITS[scheme], given, ("splits",), self.problems)
        return None if checked is None else SplitScheme(**checked.model_dump())

    def _unique(self, labels: Sequence[tuple[Place, str]], kind: str) -> None:
        first: dict[str, Place] = {}
        for place, label in labels:
            if label in first:
                line = self.problems.line(first[label])
                self.problems.add(
                    place, f"a second {kind} with the label of line {line}; choose another label", found=label
                )
            first.setdefault(label, place)

    # methods and their options

    def _method(self, entry: Any, place: Place) -> MethodEntry | None:
        raw = {"use": entry} if isinstance(entry, str) else entry
        if not isinstance(raw, dict) or "use" not in raw:
            allowed = "{use: NAME, OPTION: VALUE, ...}"
            self.problems.add(place, "must be a method's name or a mapping with use", found=entry, allowed=allowed)
            return None
        given = {key: value for key, value in raw.items() if key in OWN_KEYS}
        options = {key: value for key, value in raw.items() if key not in OWN_KEYS}
        given.setdefault("label", re.split("[:.]", str(raw["use"]))[-1] or str(raw["use"]))
        tune = None
        if given.get("tune") is not None:
            tune = validate(Tune, given.pop("tune"), (*place, "tune"), self.problems)
        recalibrate = self._recalibrate(given, options, tune, place)
        checked = validate(MethodEntry, given, place, self.problems, OWN_KEYS)
        if checked is None:
            return None
        use_place = place if isinstance(entry, str) else (*place, "use")
        if not self._usable(checked.use, use_place):
            return None
        self._published(checked, place)
        self._options(checked.use, options, place, tune)
        if tune is not None:
            tune = self._with_space(checked.use, tune, options, (*place, "tune"))
        return checked.model_copy(update={"options": options, "tune": tune, "recalibrate": recalibrate})

    def _recalibrate(
        self, given: dict[str, Any], options: dict[str, Any], tune: Tune | None, place: Place
    ) -> Recalibrate | None:
        """Return the recalibration of an entry; its name may have ``fraction`` next to it, which is then no option."""
        raw = given.pop("recalibrate", None)
        if raw is None:
            return None
        if isinstance(raw, str):
            raw = {"method": raw}
            if "fraction" in options:
                self._refuse_option_fraction(str(given["use"]), options, place)
                raw["fraction"] = options.pop("fraction")
        found = validate(Recalibrate, raw, (*place, "recalibrate"), self.problems)
        if found is not None and found.budgets and not set(found.budgets) <= set((tune and tune.budgets) or []):
            known = ", ".join(map(str, (tune and tune.budgets) or [])) or "none"
            problem = "are those of tune, of which some are recalibrated"
            self.problems.add((*place, "recalibrate", "budgets"), problem, found=found.budgets, allowed=known)
        if found is None or tune is None:
            return found
        if found.cross:
            problem = "is not possible with tune: the search may not use points that calibrate a model"
            self.problems.add((*place, "recalibrate", "cross"), problem, found=True, allowed="false")
        return found.model_copy(update={"cross": False})

    def _refuse_option_fraction(self, use: str, options: Mapping[str, Any], place: Place) -> None:
        """Record that ``fraction`` next to ``recalibrate`` may mean an option of the method."""
        problems = catalogue.check_options(use, {"fraction": options["fraction"]}, self.base)
        if not any(problem.path == ("fraction",) and problem.name == "fraction" for problem in problems):
            allowed = "recalibrate: {method: ..., fraction: 0.2}"
            self.problems.add((*place, "fraction"), f"may also be an option of {use}", allowed=allowed)

    def _with_space(self, use: str, tune: Tune, options: Mapping[str, Any], place: Place) -> Tune:
        """Return ``tune`` with its search space, or the one that the method declares, checked and in canonical form."""
        given = tune.space if tune.space is not None else catalogue.search_space(use, self.base)
        if not given:
            missing = f"{use} declares no search space; name the options to search and their ranges in space"
            self.problems.add(place, missing, allowed="space: {option: {log: [low, high]}, ...}")
            return tune

        def check(name: str, value: Any) -> list[OptionProblem]:
            return catalogue.check_options(use, {**options, name: value}, self.base)

        space, problems = read_space(given, check)
        for problem in problems:
            if tune.space is not None:
                self.problems.add_option((*place, "space"), problem)
            else:
                text = f"wrong search space declared by {use}: {spell(problem.path)}: {problem.problem}"
                self.problems.add_option(place, replace(problem, path=(), problem=text))
        return tune.model_copy(update={"space": space})

    def _usable(self, use: str, place: Place) -> bool:
        if ":" not in use:
            problem = "unknown method (an external class is package.module:Class or ./file.py:Class)"
            return self.problems.known(place, use, problem, catalogue.known("methods"))
        if not _TARGET.fullmatch(use):
            self.problems.add(place, "not a class", found=use, allowed="package.module:Class or ./file.py:Class")
            return False
        return True

    def _published(self, entry: MethodEntry, place: Place) -> None:
        if entry.published is not None:
            columns = catalogue.known("published")
            self.problems.known((*place, "published"), entry.published, "no published table has this column", columns)

    def _options(self, use: str, options: Mapping[str, Any], place: Place, tune: Tune | None) -> None:
        """Record the problems of a method's options; required ones may be searched, and a seed is given."""
        searched = {"random_state", *(tune.space or {} if tune else {})}
        for problem in catalogue.check_options(use, options, self.base):
            if not problem.path or problem.path[0] in options or problem.path[0] not in searched:
                self.problems.add_option(place, _with_own_keys(problem))

    def _overrides(
        self,
        overrides: Mapping[str, Mapping[str, Mapping[str, Any]]],
        datasets: list[DatasetRef],
        methods: list[MethodEntry],
    ) -> None:
        of_data = {key for ref in datasets for key in (ref.name, ref.label)}
        of_methods = {key for entry in methods for key in (entry.use, entry.label)}
        for dataset, by_method in overrides.items():
            if not self.problems.known(("overrides", dataset), dataset, "not a data set of this study", of_data):
                continue
            for method, options in by_method.items():
                place: Place = ("overrides", dataset, method)
                if self.problems.known(place, method, "not a method of this study", of_methods):
                    covered = [entry for entry in methods if method in {entry.use, entry.label}]
                    self._override(place, options, datasets, covered, overrides)

    def _override(
        self,
        place: Place,
        options: Mapping[str, Any],
        datasets: list[DatasetRef],
        methods: list[MethodEntry],
        overrides: Mapping[str, Mapping[str, Mapping[str, Any]]],
    ) -> None:
        for key in OWN_KEYS:
            if key in options:
                self.problems.add((*place, key), "cannot be overridden; only options of the method can")
        own = {key: value for key, value in options.items() if key not in OWN_KEYS}
        for entry, ref in ((entry, ref) for ref in datasets if place[1] in {ref.name, ref.label} for entry in methods):
            merged = dict(entry.options)
            for block in override_blocks(overrides, entry, ref):
                merged |= {key: value for key, value in block.items() if key not in OWN_KEYS}
            for problem in catalogue.check_options(entry.use, merged, self.base):
                if not problem.path or problem.path[0] in own:
                    self.problems.add_option(place, problem)


def _with_own_keys(problem: OptionProblem) -> OptionProblem:
    """Return the problem of an unknown option with the keys of every entry among the allowed names."""
    if len(problem.path) == 1 and problem.name == problem.path[0] and not isinstance(problem.allowed, str | None):
        return replace(problem, allowed=sorted({*problem.allowed, *OWN_KEYS}))
    return problem
