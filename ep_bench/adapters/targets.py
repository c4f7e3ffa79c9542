"""Targets: the class that a study names, its tasks, parameters, files and version."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import platformdirs

from ep_bench.adapters.source_checksums import checksums, sibling_modules, source_checksum
from ep_bench.errors import UserError, nearest
from ep_bench.types import TASKS, Task

_copies: dict[Path, Path] = {}
_loaded: dict[Path, tuple[str, ...]] = {}  # checksums of a file and its sibling modules at the time of the import
OBJECT = "object"  # key of an option that is a class or function itself, not an instance


def is_target(use: str) -> bool:
    """Return whether ``use`` in a study names an external class, not a method of the registry."""
    return ":" in use


def resolve(use: str, base: Path) -> Any:
    """Return the class that a target names.

    Raises UserError if the module, the file or the class does not exist or cannot be imported.
    """
    place, _, attribute = use.rpartition(":")
    if not place or not attribute:
        raise UserError("not a class or function", found=use, allowed="package.module:Class or ./file.py:Class")
    if place == "__main__":
        problem = "other processes cannot import from a running script or notebook"
        raise UserError(problem, found=use, allowed=f"the class itself in `ep_bench.run`, or ./file.py:{attribute}")
    module = _module_of_file(_file(place, base)) if _is_file(place) else _module(place, use)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
        if found is None:
            public = [name for name in vars(module) if not name.startswith("_")]
            allowed = {*public[:40], nearest(attribute, public) or attribute} - {attribute}
            raise UserError(f"{place!r} has no {attribute!r}", found=use, allowed=allowed, name=attribute)
    if not callable(found):
        raise UserError("does not name a class", found=use, allowed="a class with fit and predict")
    return found


def resolve_for_use(use: str, base: Path) -> Any:
    """Return the same; functions of a file can then import its sibling modules, and other processes the file.

    Its folder, and one with a link to it by the name of its module, remain in ``sys.path``, which multiprocessing and
    joblib pass on.
    """
    found, place = resolve(use, base), use.rpartition(":")[0]
    if _is_file(place):
        path = _file(place, base)
        for folder in (str(path.parent), *_folder_of_link(path)):
            if folder not in sys.path:
                sys.path.insert(0, folder)
    return found


def _folder_of_link(path: Path) -> Iterator[str]:
    """Yield a folder in which the file has the name of its module, if it can be written."""
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        folder = platformdirs.user_cache_path("ep-bench") / "modules"
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / f"{_module_name(path)}.py"
        if not link.is_symlink():
            with contextlib.suppress(FileExistsError):
                link.symlink_to(path)
        yield str(folder)


def names_a_file(use: str, options: Mapping[str, Any]) -> bool:
    """Return whether a target or one of its nested objects is in a file that is relative to a study."""
    inner = (names_a_file(target, of or {}) for _, target, of in nested(dict(options), ()))
    return _is_file(use.rpartition(":")[0]) or any(inner)


def tasks(use: str, base: Path) -> tuple[Task, ...]:
    """Return the tasks of a target: its attribute ``tasks``, else those of scikit-learn's mixins, else both."""
    target = resolve(use, base)
    declared = getattr(target, "tasks", None)
    if isinstance(declared, tuple | list) and declared and set(declared) <= set(TASKS):
        return tuple(declared)
    if "sklearn" not in sys.modules:  # the target cannot be derived from its classes, whose import is slow
        return TASKS
    from sklearn.base import ClassifierMixin, RegressorMixin

    bases = target if isinstance(target, type) else object
    kinds = {"classification": issubclass(bases, ClassifierMixin), "regression": issubclass(bases, RegressorMixin)}
    return tuple(task for task in TASKS if kinds[task]) or TASKS


def parameters(target: Any) -> dict[str, Any] | None:
    """Return the parameters of a class or function with their defaults, or None if it accepts any keyword."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        return None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: p.default for name, p in signature.parameters.items() if p.kind in kinds}


def reference(value: Any) -> str | None:
    """Return the target of an option that is a class or function, ``{object: "package.module:Name"}``, else None."""
    if isinstance(value, Mapping) and value.keys() == {OBJECT}:
        target = value[OBJECT]
        return target if isinstance(target, str) else None
    return None


def nested(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str, Mapping[str, Any] | None]]:
    """Yield the outermost nested objects of an option: place, target, options.

    The options are None for a class or function that is passed itself.
    """
    itself = reference(value)
    if itself is not None:
        yield place, itself, None
    elif isinstance(value, Mapping):
        if isinstance(value.get("use"), str):
            yield place, value["use"], {key: item for key, item in value.items() if key != "use"}
            return
        for key, item in value.items():
            yield from nested(item, (*place, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from nested(item, (*place, i))


def version(use: str, base: Path, options: Mapping[str, Any] | None = None, *, loaded: bool = False) -> str:
    """Return the version of a target, a factor of its cells.

    It is the class's own ``version``, else the version of the package, else the checksum of the source. The version of
    an editable package has both. ``loaded`` uses the checksum of a file at the time of the import instead of that on
    disk. Versions of nested objects are appended if they differ.
    """
    own = _own_version(use, base, loaded=loaded)
    inner = [version(target, base, of, loaded=loaded) for _, target, of in nested(options or {}, ())]
    return "; ".join(dict.fromkeys([own, *inner]))


def _own_version(use: str, base: Path, *, loaded: bool) -> str:
    target = resolve(use, base)
    declared = getattr(target, "__dict__", {}).get("version")  # not inherited: a subclass may change the results
    if isinstance(declared, int | float | str):
        return str(declared)
    place = use.rpartition(":")[0]
    if _is_file(place):
        path = _file(place, base)
        return "; ".join(_loaded[path] if loaded else checksums(path))
    for distribution in distributions().get(place.split(".")[0], ()):
        return _version_of(distribution, target)
    return source_checksum(target)


def _version_of(distribution: importlib.metadata.Distribution, target: Any) -> str:
    """Return name and release of a package; an editable one adds the checksum of its source, which can change."""
    number = ".".join(distribution.version.split(".")[:2])  # patch releases are assumed not to change results
    release = f"{distribution.metadata['Name']} {number}"
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    is_editable = bool(origin.get("dir_info", {}).get("editable"))
    return f"{release}; {source_checksum(target)}" if is_editable else release


def files(use: str, base: Path, options: Mapping[str, Any]) -> set[Path]:
    """Return the files of a target and of its nested objects, with the sibling modules that they import."""
    place = use.rpartition(":")[0]
    own = {_file(place, base), *sibling_modules(_file(place, base))} if _is_file(place) else set()
    return own.union(*(files(target, base, of or {}) for _, target, of in nested(dict(options), ())))


def use_copies(places: Mapping[str, str]) -> None:
    """Use copies on this machine for files that are named by their paths on another machine."""
    _copies.clear()
    _copies.update({Path(path): Path(copy) for path, copy in places.items()})


def _is_file(place: str) -> bool:
    return place.endswith(".py") or place.startswith((".", "/", "~"))


def _file(place: str, base: Path) -> Path:
    path = base / place
    with contextlib.suppress(RuntimeError, OSError, ValueError):  # an unknown user, a loop of links, an impossible name
        path = (base / Path(place).expanduser()).resolve()
    path = _copies.get(path, path)
    if not path.is_file():
        raise UserError("no such file", found=place, allowed=f"a path relative to {base}")
    return path


def _module(name: str, use: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        allowed = "an installed module, or ./file.py:Class for a file next to the study"
        problem = f"cannot import {name!r}: {type(error).__name__}: {error}"
        raise UserError(problem, found=use, allowed=allowed) from error


def _module_name(path: Path) -> str:
    return "ep_bench_file_" + hashlib.sha256(str(path).encode()).hexdigest()[:12]


@cache
def _module_of_file(path: Path) -> ModuleType:
    name = _module_name(path)
    loader = importlib.util.spec_from_file_location(name, path)
    if loader is None or loader.loader is None:
        raise UserError("is not a Python file", found=str(path))
    _loaded[path] = checksums(path)
    _forget_namesakes(path)
    module = importlib.util.module_from_spec(loader)
    sys.modules[name] = module  # classes of the file pickle by this name
    sys.path.insert(0, str(path.parent))
    try:
        loader.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(f"fails on import: {type(error).__name__}: {error}", where=str(path)) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def forget(path: Path) -> None:
    """Import a file again when it is needed, since it has changed."""
    sys.modules.pop(_module_name(path.resolve()), None)
    _module_of_file.cache_clear()


def _forget_namesakes(path: Path) -> None:
    """Remove imported modules of other folders that have the name of a sibling module and would be used instead."""
    for neighbour in sibling_modules(path):
        name = neighbour.relative_to(path.parent).with_suffix("").parts[0]
        for known in [known for known in sys.modules if known.partition(".")[0] == name]:
            file = getattr(sys.modules[known], "__file__", None)
            if file is None or path.parent not in Path(file).parents:
                del sys.modules[known]


@cache
def distributions() -> dict[str, list[importlib.metadata.Distribution]]:
    """Return the installed distributions by the name of a package or module that they contain.

    This is ``importlib.metadata.packages_distributions``, eight times as fast because it neither makes an object per
    file nor parses the metadata.
    """
    found: dict[str, list[importlib.metadata.Distribution]] = {}
    for distribution in importlib.metadata.distributions():
        for name in _top_level(distribution):
            found.setdefault(name, []).append(distribution)
    return found


def _top_level(distribution: importlib.metadata.Distribution) -> set[str]:
    """Return the packages and modules of a distribution: those that it lists, else those of its files."""
    listed = distribution.read_text("top_level.txt")
    if listed and listed.split():
        return set(listed.split())
    files = {line.partition(",")[0].split("/")[0] for line in (distribution.read_text("RECORD") or "").splitlines()}
    return {inspect.getmodulename(file) or file for file in files}
