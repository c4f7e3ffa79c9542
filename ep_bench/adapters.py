"""Methods from outside: found by dotted path or file, given the face that the runner expects.

A target is ``package.module:Class`` or ``./file.py:Class`` (relative to the study). The class needs ``fit(X, y)`` and
one of ``predict_dist(X)`` returning a ``Predictive`` or ``predict(X, return_std=True)``; it sees original units. With
neither density nor deviation its log-likelihood is empty. The option ``standardize: true`` hands it standardised rows
and turns its predictions back. An option that is itself a mapping with ``use`` is built first:
``kernel: {use: "sklearn.gaussian_process.kernels:RBF", length_scale: 2.0}``.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ep_bench.estimator import standardisation
from ep_bench.types import Array, PointPrediction, Predictive, UserError

STANDARDIZE = "standardize"


def is_target(use: str) -> bool:
    """Tell whether a study's ``use`` names a class from outside rather than a registry entry."""
    return ":" in use


def resolve(use: str, base: Path) -> Any:
    """Return the class that a target names.

    Raises UserError where the module, the file or the class cannot be had.
    """
    place, _, attribute = use.rpartition(":")
    module = _module_of_file(_file(place, base)) if _is_file(place) else _module(place, use)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
        if found is None:
            public = [name for name in vars(module) if not name.startswith("_")]
            raise UserError(f"{place!r} has no {attribute!r}", found=use, allowed=public[:40], name=attribute)
    if not callable(found):
        raise UserError("names no class", found=use, allowed="a class with fit and predict")
    return found


def parameters(target: Any) -> dict[str, Any] | None:
    """Return a class's constructor parameters with their defaults, or None where it takes any keyword."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        return None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: p.default for name, p in signature.parameters.items() if p.kind in kinds}


def problems(use: str, options: Mapping[str, Any], base: Path) -> Iterator[tuple[Any, ...]]:
    """Yield what is wrong with a target and its options, each as place, problem, value, allowed, name."""
    if not callable(getattr(resolve(use, base), "fit", None)):
        yield ("use",), "names nothing with a fit", use, "a class with fit and predict", None
        return
    standardize = options.get(STANDARDIZE, False)
    if not isinstance(standardize, bool):
        yield (STANDARDIZE,), "wrong type", standardize, "true or false", None
    own = {key: value for key, value in options.items() if key != STANDARDIZE}
    yield from _option_problems(use, own, base, (), extra=(STANDARDIZE,))


def _option_problems(
    use: str, options: Mapping[str, Any], base: Path, place: tuple[Any, ...], extra: tuple[str, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    try:
        known = parameters(resolve(use, base))
    except UserError as error:
        yield (*place, "use"), str(error), None, None, None
        return
    for name in known or {}:
        if known[name] is inspect.Parameter.empty and name not in options:  # type: ignore[index]
            yield (*place, name), f"{use} needs this option", None, None, None
    for key, value in options.items():
        if known is not None and key not in known:
            yield (*place, key), f"{use} has no such option", None, sorted({*known, *extra}), key
        for inner, target, inner_options in _targets(value, (*place, key)):
            yield from _option_problems(target, inner_options, base, inner)


def _targets(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str, Mapping[str, Any]]]:
    """Yield the objects that an option spells out, the outermost of each: place, target, options."""
    if isinstance(value, Mapping):
        if isinstance(value.get("use"), str):
            yield place, value["use"], {key: item for key, item in value.items() if key != "use"}
            return
        for key, item in value.items():
            yield from _targets(item, (*place, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _targets(item, (*place, i))


def version(use: str, base: Path, options: Mapping[str, Any] | None = None) -> str:
    """Return what a target's numbers hang on: its own ``version``, its package's, or its file's checksum.

    Objects among its options count too, where theirs is another.
    """
    own = _own_version(use, base)
    nested = [version(inner, base, of) for _, inner, of in _targets(options or {}, ())]
    return "; ".join(dict.fromkeys([own, *nested]))


def _own_version(use: str, base: Path) -> str:
    target = resolve(use, base)
    declared = getattr(target, "version", None)
    if isinstance(declared, int | float | str):
        return str(declared)
    place = use.rpartition(":")[0]
    if _is_file(place):
        return "file " + hashlib.sha256(_file(place, base).read_bytes()).hexdigest()[:16]
    package = place.split(".")[0]
    for distribution in _distributions().get(package, ()):
        return f"{distribution} {'.'.join(importlib.metadata.version(distribution).split('.')[:2])}"
    source = inspect.getsourcefile(target)
    return "file " + hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16] if source else "unknown"


def build(use: str, options: Mapping[str, Any], base: Path, seed: int | None = None) -> OutsideRegressor:
    """Return the adapted method, its options given and its ``random_state``, where it has one, seeded."""
    target = resolve(use, base)
    own = {key: _value(value, base) for key, value in options.items() if key != STANDARDIZE}
    known = parameters(target)
    if seed is not None and known is not None and "random_state" in known and "random_state" not in own:
        own["random_state"] = seed % 2**32
    try:
        model = target(**own)
    except TypeError as error:
        raise UserError(f"cannot be built: {error}", found=use) from error
    return OutsideRegressor(model, standardize=bool(options.get(STANDARDIZE, False)))


class OutsideRegressor:
    """A model from outside behind the runner's face: ``fit`` and ``predict_dist`` in original units."""

    def __init__(self, model: Any, *, standardize: bool = False) -> None:
        self.model = model
        self.standardize = standardize
        self.trace_: dict[str, list[float]] = {}

    def fit(self, X: Array, y: Array) -> OutsideRegressor:
        """Fit to rows X (n, d) and targets y (n,)."""
        self._x_scaling, self._y_scaling = standardisation(X, y, active=self.standardize)
        # A copy each: a model that writes into its arguments must not spoil the cell's data.
        self.model.fit(self._x_scaling.apply(X), self._y_scaling.apply(y[:, None])[:, 0])
        return self

    def predict_dist(self, X: Array) -> Predictive | PointPrediction:
        """Return the predictive distribution of rows X (n, d), or points where the model gives no more."""
        inputs = self._x_scaling.apply(X)
        shift, scale = float(self._y_scaling.shift[0]), float(self._y_scaling.scale[0])
        if hasattr(self.model, "predict_dist"):
            return _as_predictive(self.model.predict_dist(inputs), len(X)).rescale(shift, scale)
        known = parameters(self.model.predict)
        if known is not None and "return_std" not in known:
            return PointPrediction(shift + scale * _vector(self.model.predict(inputs), len(X), "mean"))
        try:
            mean, std = self.model.predict(inputs, return_std=True)
        except TypeError:
            if known is not None:
                raise
            return PointPrediction(shift + scale * _vector(self.model.predict(inputs), len(X), "mean"))
        deviation = _vector(std, len(X), "deviation")
        if np.any(deviation < 0.0):
            raise ValueError(f"predict gave a negative deviation, {deviation.min():g}")
        return Predictive.gaussian(_vector(mean, len(X), "mean"), deviation**2).rescale(shift, scale)


def _as_predictive(found: Any, n: int) -> Predictive:
    if not isinstance(found, Predictive):
        raise TypeError(f"predict_dist must return an ep_bench.Predictive, found {type(found).__name__}")
    if found.means.shape[1] != n:
        raise ValueError(f"predict_dist gave {found.means.shape[1]} distributions for {n} rows")
    return found


def _vector(values: Any, n: int, what: str) -> Array:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (n,):
        raise ValueError(f"predict gave a {what} of shape {vector.shape} for {n} rows, expected ({n},)")
    return vector


def _value(value: Any, base: Path) -> Any:
    """Build the objects that a study spells out, however deep they stand."""
    if isinstance(value, Mapping):
        inner = {key: _value(item, base) for key, item in value.items() if key != "use"}
        return resolve(value["use"], base)(**inner) if "use" in value else inner
    return [_value(item, base) for item in value] if isinstance(value, list) else value


def _is_file(place: str) -> bool:
    return place.endswith(".py") or place.startswith((".", "/", "~"))


def _file(place: str, base: Path) -> Path:
    path = (base / Path(place).expanduser()).resolve()
    if not path.is_file():
        raise UserError("no such file", found=place, allowed=f"a path relative to {base}")
    return path


def _module(name: str, use: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise UserError(f"cannot import {name!r}: {type(error).__name__}: {error}", found=use) from error


@cache
def _module_of_file(path: Path) -> ModuleType:
    name = "ep_bench_file_" + hashlib.sha256(str(path).encode()).hexdigest()[:12]
    loader = importlib.util.spec_from_file_location(name, path)
    if loader is None or loader.loader is None:
        raise UserError("not a Python file", found=str(path))
    module = importlib.util.module_from_spec(loader)
    sys.modules[name] = module  # classes of the file pickle by this name
    sys.path.insert(0, str(path.parent))
    try:
        loader.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"fails on import: {type(error).__name__}: {error}", where=str(path)) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


@cache
def _distributions() -> dict[str, list[str]]:
    return {name: list(found) for name, found in importlib.metadata.packages_distributions().items()}
