"""A user's own file: valid files are read, others are rejected with a clear message."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ep_bench import data
from ep_bench.errors import UserError
from ep_bench.types import Dataset, DatasetRef, SplitScheme

HEADER = ["area", "rooms", "price"]
ROWS = np.column_stack([np.linspace(-3.7, 55.1, 12), np.arange(12.0), np.cos(np.arange(12.0)) * 1e-7])


def ref_of(path: Path, target: str | None = "price") -> DatasetRef:
    return DatasetRef("mine", "mine", csv=str(path), target=target)


def text_of(delimiter: str = ",", header: list[str] | None = None, end: str = "\n") -> str:
    lines = [delimiter.join(HEADER if header is None else header)]
    lines += [delimiter.join(repr(float(value)) for value in row) for row in ROWS]
    return end.join(lines) + end


def with_line(number: int, line: str) -> str:
    """Return the sound file with one line (from 1) replaced."""
    lines = text_of().split("\n")
    lines[number - 1] = line
    return "\n".join(lines)


def write(tmp_path: Path, content: str | bytes, name: str = "mine.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        text_of(),
        text_of("\t"),
        text_of(";"),
        text_of("|"),
        text_of(" "),
        text_of("   "),
        text_of(", "),
        text_of(end="\r\n"),
        text_of(end="\r"),
        text_of().rstrip("\n"),
        "\n\n" + text_of() + "\n\n",
        "\ufeff" + text_of(),
        text_of(header=['"area"', '"rooms"', '"price"']),
        "area,rooms,price\n" + "".join(",".join(f'"{float(v)!r}"' for v in row) + "\n" for row in ROWS),
    ],
    ids=["comma", "tab", "semicolon", "bar", "space", "spaces", "comma-space", "crlf", "cr",
         "no-last-end", "blank-lines", "bom", "quoted-names", "quoted-cells"],
)  # fmt: skip
def test_what_is_read(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, content)
    dataset = data.load(ref_of(path))
    np.testing.assert_array_equal(dataset.X, ROWS[:, :2])
    np.testing.assert_array_equal(dataset.y, ROWS[:, 2])
    assert dataset.names == ("area", "rooms")
    assert dataset.target == "price"
    assert dataset.X.flags.c_contiguous
    assert dataset.checksum == hashlib.sha256(path.read_bytes()).hexdigest()
    info = data.describe(ref_of(path))
    assert (info.n, info.d, info.splits, info.present, info.checksum) == (12, 2, 20, True, dataset.checksum)


def test_the_target_may_be_any_column_and_the_file_compressed(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(text_of(";").encode()), "mine.csv.gz")
    dataset = data.load(ref_of(path, "area"))
    np.testing.assert_array_equal(dataset.X, ROWS[:, 1:])
    np.testing.assert_array_equal(dataset.y, ROWS[:, 0])
    assert len(data.make_split(SplitScheme(), dataset, 19).test) == 1


def test_truth_values_of_inputs_are_1_and_0(tmp_path: Path) -> None:
    frame = pd.DataFrame({"kind": ["a", "b"] * 6, "price": np.arange(12.0)})
    path = write(tmp_path, pd.get_dummies(frame).to_csv(index=False))
    assert "True" in path.read_text()
    dataset = data.load(ref_of(path))
    np.testing.assert_array_equal(dataset.X, [[1.0, 0.0], [0.0, 1.0]] * 6)
    assert dataset.names == ("kind_a", "kind_b")


def test_numbers_are_read_exactly(tmp_path: Path) -> None:
    values = (
        np.random.RandomState(0).standard_normal((400, 3))
        * 10.0 ** np.random.RandomState(1).randint(-200, 200, 400)[:, None]
    )
    path = write(tmp_path, "a,b,price\n" + "".join(",".join(map(repr, row)) + "\n" for row in values.tolist()))
    dataset = data.load(ref_of(path))
    np.testing.assert_array_equal(np.column_stack([dataset.X, dataset.y]), values)


BAD = {
    "empty": ("", ["the file is empty"]),
    "header-only": ("area,rooms,price\n\n", ["no data"]),
    "numbers-for-header": (text_of().split("\n", 1)[1], [":1", "must hold the names of the columns"]),
    "nameless": (text_of(header=["", "rooms", "price"]), [":1", "column 1 has no name", "index=False"]),
    "twice-named": (text_of(header=["price", "rooms", "price"]), [":1", "columns 1 and 3", "same name", "'price'"]),
    "word": (with_line(5, "1.0,many,2.0"), [":5", "column rooms", "not a number", "'many'"]),
    "missing": (with_line(7, "1.0,,2.0"), [":7", "column rooms", "missing value"]),
    "infinite": (with_line(4, "1.0,-inf,2"), [":4", "column rooms", "infinite value", "'-inf'"]),
    "short-line": (with_line(6, "1.0,2"), [":6", "2 fields", "the header has 3"]),
    "decimal-comma": (text_of(";").replace(".", ","), [":2", "column area", "use a decimal point"]),
    "constant": ("a,price\n" + "".join(f"{i},7\n" for i in range(12)), ["column price", "target is constant", "7.0"]),
    "target-as-input": (
        "a,copy,price\n" + "".join(f"{i},{i * i},{i * i}.0\n" for i in range(12)),
        ["column copy", "equals the target 'price'"],
    ),
    "few": ("a,price\n" + "".join(f"{i},{i * i}\n" for i in range(9)), ["too few data points", "found 9", "least 10"]),
    "binary": (b"area,rooms,price\n\xff\xfe\x00", [":2", "the text is not UTF-8"]),
    "torn-gzip": (gzip.compress(text_of().encode())[:-12], ["the gzip file is damaged"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(tmp_path: Path, case: str) -> None:
    content, pieces = BAD[case]
    path = write(tmp_path, content)
    with pytest.raises(UserError) as caught:
        data.load(ref_of(path))
    message = str(caught.value)
    faults = message.split("\n")
    assert len(faults) == (3 if case == "decimal-comma" else 1)
    assert all(fault.startswith(str(path)) for fault in faults)
    for piece in pieces:
        assert piece in message, message
    with pytest.raises(UserError, match=re.escape(message)):
        data.describe(ref_of(path))


def test_an_unknown_target_gets_a_suggestion(tmp_path: Path) -> None:
    path = write(tmp_path, text_of())
    with pytest.raises(UserError, match=r"target: there is no such column; found 'prise'.*did you mean 'price'"):
        data.load(ref_of(path, "prise"))
    with pytest.raises(UserError, match=r"target: is missing; name the column to predict; allowed: area, price, rooms"):
        data.load(ref_of(path, None))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.csv: no such file"):
        data.load(ref_of(tmp_path / "absent.csv"))


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, text_of())
    first = data.load(ref_of(path))
    write(tmp_path, with_line(2, "9,9,9.5"))
    second = data.load(ref_of(path))
    assert second.y[0] == 9.5
    assert second.checksum != first.checksum


def assert_sound_or_refused(path: Path, target: str | None) -> None:
    try:
        dataset = data.load(ref_of(path, target))
    except UserError as error:
        assert str(error)  # noqa: PT017
        return
    assert isinstance(dataset, Dataset)
    n, d = dataset.X.shape
    assert n >= 10
    assert d == len(dataset.names) >= 1
    assert dataset.y.shape == (n,)
    assert np.isfinite(dataset.X).all()
    assert np.isfinite(dataset.y).all()
    assert dataset.y.min() < dataset.y.max()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(alphabet=st.sampled_from('abprice0123456789.,;\t| "\n\r-+e_\x00\x1c\u2028\u0661n'), max_size=300)
)
def test_arbitrary_text(tmp_path: Path, content: str) -> None:
    assert_sound_or_refused(write(tmp_path, "a,price\n" + content), "price")
    assert_sound_or_refused(write(tmp_path, content), "a")
