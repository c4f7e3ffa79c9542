"""Loading of data sets by their card or from a user's file."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np

from ep_bench.data import class_labels, embedded, locations, targets, user_csv
from ep_bench.data.cards import Card, card
from ep_bench.data.splits import COUNT
from ep_bench.errors import UnquotedText, UserError
from ep_bench.types import Array, Dataset, DatasetInfo, DatasetRef, Preparation

# Communities and Crime, columns of the raw file: the 124 inputs except the 22 of the police survey, and the target.
COMMUNITIES_INPUTS = (*range(5, 103), 120, 121, 122, 127)
COMMUNITIES_TARGET = 145


def load_dataset(
    name: str,
    constant_inputs: Literal["zero", "paper"] = "zero",
    irrelevant_inputs: int = 0,
    target_transform: Literal["none", "log", "square_root", "cube_root"] = "none",
    drop_rows: Literal["none", "suspect"] = "none",
    drop_inputs: Literal["none", "leak"] = "none",
    train_points: int | None = None,
) -> Dataset:
    """Return a data set by its name, in original units.

    Parameters
    ----------
    name : str
        One of `ep_bench.data.names()`.
    constant_inputs : str
        ``zero``, or ``paper``, which treats the constant input of naval as in the published results; see its card.
    irrelevant_inputs : int
        Number of inputs of uniform noise to append, the same on every call.
    target_transform : str
        ``none``, ``log``, ``square_root`` or ``cube_root`` of the target, applied before splitting and standardisation.
    drop_rows : str
        ``none``, or ``suspect``, which leaves the suspect points of the card out of the splits of all points.
    drop_inputs : str
        ``none``, or ``leak``, which removes the inputs that determine the target, as the card names them.
    train_points : int, optional
        Number of training points, drawn from those of each split; by default all.

    Returns
    -------
    Dataset
        Inputs ``X`` (N, d), targets ``y`` (N,), names and card.

    Raises
    ------
    UserError
        Unknown name (the message suggests the most similar one), a file that is missing or cannot be read, or an option
        that does not apply to the data set.
    """
    plain = DatasetRef(name, name, constant_inputs=constant_inputs, irrelevant_inputs=irrelevant_inputs)
    changed = replace(plain, target_transform=target_transform, drop_rows=drop_rows)
    return load(replace(changed, drop_inputs=drop_inputs, train_points=train_points))


def load(ref: DatasetRef) -> Dataset:
    """Return the data set that a study names, in original units; X (n, d) and y (n,) are read-only and may be shared.

    ``checksum`` is that of the file that was read. A file in EP_BENCH_DATA may differ from that of the card;
    `ep_bench.data.verify` reports this.

    Raises
    ------
    UserError
        As `load_dataset`, or a user's own file is not valid.
    """
    if ref.csv is not None:
        return _load(ref, *_stamp(user_csv.require_file(ref.csv)))
    found = card(ref.name)
    _check_changes(ref, found)
    if found.embedded:
        return _load(ref, "", 0, 0)
    path = locations.find_file(found)
    if path is None:
        raise missing(found)
    return _load(ref, *_stamp(path))


def describe(ref: DatasetRef) -> DatasetInfo:
    """Return size, checksum and number of standard splits; only a user's own file is read.

    Raises
    ------
    UserError
        Unknown name, an option that does not apply to the data set, or a user's own file that is not valid.
    """
    if ref.csv is not None:
        dataset = load(ref)
        n, d = dataset.X.shape
        few = targets.few_values(dataset.y) if dataset.task == "regression" else None
        incomplete = zip(dataset.names, dataset.preparation, strict=False)  # there is no preparation if none is needed
        kept = tuple(name for name, each in incomplete if each.leaves_missing())
        return DatasetInfo(
            n, d, dataset.checksum, COUNT, task=dataset.task, target_values=few, inputs_with_missing=kept
        )
    found = card(ref.name)
    _check_changes(ref, found)
    path = locations.find_file(found)
    checksum = locations.data_checksum(found, path) if path else found.sha256 or ""
    return DatasetInfo(
        n=found.n,
        d=found.d + ref.irrelevant_inputs - len(_dropped_inputs(found, ref)),
        checksum=checksum,
        splits=found.n_splits,
        parts=found.parts,
        task=found.task,
        present=found.embedded or path is not None,
        target_values=found.target_values,
        unranked=None if _dropped_inputs(found, ref) else found.unranked,
    )


def missing(found: Card) -> UserError:
    """Return the error for a data set without a data file."""
    remedy = f"run `ep-bench data fetch {found.name}`" if found.urls else "install ep-bench again"
    return UserError(
        f"no data file found; {remedy}, or put the file at {found.path} in the folder named by {locations.VARIABLE}",
        where=found.name,
    )


def _check_changes(ref: DatasetRef, found: Card) -> None:
    constants_of(ref, found)
    targets.check_transform(ref, found.task)
    for field, known in (("drop_rows", found.suspect_rows), ("drop_inputs", found.leak_inputs)):
        if (value := getattr(ref, field)) != "none" and not known:
            problem = f"the card of the data set names no {value} {field.removeprefix('drop_')}"
            raise UserError(problem, where=ref.label, field=field, found=value, allowed="none")


def _dropped_inputs(found: Card, ref: DatasetRef) -> tuple[int, ...]:
    return found.leak_inputs if ref.drop_inputs == "leak" else ()


def constants_of(ref: DatasetRef, found: Card | None) -> dict[int, float]:
    """Return the values after standardisation of constant inputs that do not become 0, by column."""
    known = dict(found.paper_constants) if found else {}
    allowed = ("zero", "paper") if known else ("zero",)
    if ref.constant_inputs not in allowed:
        problem = "the data set has no such treatment of constant inputs; paper applies to naval only"
        place = {"where": ref.label, "field": "constant_inputs"}
        raise UserError(problem, found=ref.constant_inputs, allowed=allowed, **place)
    return known if ref.constant_inputs == "paper" else {}


def _stamp(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _load(ref: DatasetRef, path: str, _mtime_ns: int, _size: int) -> Dataset:
    """Read a data set; the last few are cached, since a worker runs many cells of one data set."""
    found = None if ref.csv else card(ref.name)
    classes = tuple(found.classes.values()) if found else ()
    preparation: tuple[Preparation, ...] = ()
    if found is None:
        target = str(ref.target)
        X, y, names, classes, preparation, checksum = user_csv.read(Path(path), ref)
    else:
        X, y, names, checksum = _read_card(found, path)
        kept = [j for j in range(found.d) if j not in _dropped_inputs(found, ref)]
        X, names = np.ascontiguousarray(X[:, kept]), tuple(names[j] for j in kept)
        target = targets.words(found.target, ref.target_transform)
        y = targets.transformed(y, ref)
    X, names = _append_irrelevant(X, names, ref)
    for array in (X, y):
        array.flags.writeable = False
    return Dataset(
        name=ref.label,
        X=X,
        y=y,
        names=names,
        target=target,
        card=found,
        checksum=checksum,
        task=found.task if found else ref.task,
        constants=constants_of(ref, found),
        classes=classes,
        preparation=preparation,
        dropped=found.suspect_rows if found and ref.drop_rows == "suspect" else (),
        train_points=ref.train_points,
    )


def _read_card(found: Card, path: str) -> tuple[Array, Array, tuple[str, ...], str]:
    if found.embedded:
        X, y = embedded.generate(found.name)
        # The checksum of the card is used even if the arrays differ from it by rounding errors of another libm.
        names, checksum = found.input_names(), str(found.sha256)
    else:
        checksum = locations.data_checksum(found, Path(path))
        X, y, names = _read_file(found, Path(path))
    if X.shape != (found.n, found.d):
        raise UserError(
            f"expected {found.n} data points with {found.d} inputs as on the card",
            where=path or found.name,
            found=UnquotedText(f"{X.shape[0]} with {X.shape[1]}"),
        )
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise UserError("the data contain missing or infinite numbers", where=path or found.name)
    return np.ascontiguousarray(X), np.ascontiguousarray(y), names, checksum


def _read_file(found: Card, path: Path) -> tuple[Array, Array, tuple[str, ...]]:
    if path.stat().st_size == 0:
        raise UserError("the file is empty", where=str(path))
    try:
        if found.layout == "bits":
            return *_read_bits(found, path), found.input_names()
        with open_text(path) as file:
            if found.layout == "communities":
                return _read_communities(file)
            if found.layout in {"classes", "libsvm"}:
                read = class_labels.read_table if found.layout == "classes" else class_labels.read_libsvm
                return *read(file, found), found.input_names()
            first = file.readline()
            delimiter = "," if "," in first else None
            table = np.loadtxt(chain([first], file), delimiter=delimiter, ndmin=2, comments=None)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, IndexError, KeyError) as error:
        raise UserError(f"the file cannot be read: {error}", where=str(path)) from error
    target = found.target_column if found.target_column is not None else found.d
    inputs = [j for j in range(table.shape[1]) if j != target][: found.d]
    if target >= table.shape[1]:
        raise UserError(
            f"the file has {table.shape[1]} columns, but the target is column {target}, counted from 0", where=str(path)
        )
    return table[:, inputs], table[:, target].copy(), found.input_names()


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file, which may be compressed by gzip or xz or be the first member of a zip archive."""
    with ExitStack() as stack:
        if path.suffix == ".zip":
            archive = stack.enter_context(zipfile.ZipFile(path))
            content: Any = archive.open(archive.namelist()[0])
        else:
            content = gzip.open(path) if path.suffix == ".gz" else locations.open_data(path)  # noqa: SIM115
        yield io.TextIOWrapper(stack.enter_context(content), encoding="latin-1")


def _read_bits(found: Card, path: Path) -> tuple[Array, Array]:
    """Return binary inputs (n, d) and targets (n,) from a NumPy file of records (packed bits, target)."""
    with locations.open_data(path) as file:
        table = np.load(io.BytesIO(file.read()), allow_pickle=False)
    bits, target = table.dtype.names or ("", "")
    return np.unpackbits(table[bits], axis=1, count=found.d).astype(np.float64), table[target].astype(np.float64)


def _read_communities(file: TextIO) -> tuple[Array, Array, tuple[str, ...]]:
    """Read Communities and Crime as described on its card: 1993 complete lines with 102 inputs."""
    header, *lines = file.read().splitlines()
    columns = (*COMMUNITIES_INPUTS, COMMUNITIES_TARGET)
    names = header.split(",")
    rows = [[fields[j] for j in columns] for fields in (line.split(",") for line in lines if line)]
    table = np.array([row for row in rows if "?" not in row], dtype=np.float64)
    return table[:, :-1], table[:, -1].copy(), tuple(names[j] for j in COMMUNITIES_INPUTS)


def _append_irrelevant(X: Array, names: tuple[str, ...], ref: DatasetRef) -> tuple[Array, tuple[str, ...]]:
    """Append inputs uniform in [0, 1).

    The random stream depends on the data set only, so the first k irrelevant inputs are the same for any count.
    """
    count = ref.irrelevant_inputs
    if not count:
        return X, names
    seed = hashlib.sha256(f"irrelevant inputs/{ref.name}".encode()).digest()
    noise = np.random.RandomState(np.frombuffer(seed, dtype="<u4")).random_sample((count, X.shape[0])).T
    return np.ascontiguousarray(np.hstack([X, noise])), (*names, *(f"irrelevant_{j + 1}" for j in range(count)))
