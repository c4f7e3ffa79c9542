"""YAML that every reader interprets alike is accepted; ambiguous values are refused by name."""

from __future__ import annotations

import pytest

from ep_bench.errors import UserError
from ep_bench.spec.yaml_source import read_document


@pytest.fixture
def values(tmp_path):
    def of(text):
        file = tmp_path / "s.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_document(file).values

    return of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-7", -7), ("+3", 3), ("0", 0), ("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("-0.0", -0.0),
        ("1e-4", 1e-4), ("1E5", 1e5), ("1.5e3", 1500.0), ("1e+2", 100.0), ("true", True), ("False", False),
        ("null", None), ("~", None), ("", None), ("abc", "abc"), ("y", "y"), ("1.2.3", "1.2.3"),
        ("'10:30'", "10:30"), ("'no'", "no"),
        ('"2001-01-01"', "2001-01-01"), ('"1_000"', "1_000"), ("'010'", "010"), ("'.nan'", ".nan"), ("a:b", "a:b"),
        ("new-thyroid", "new-thyroid"), ("'<<'", "<<"), ("|\n  no\n", "no\n"), ("--", "--"), ("nano", "nano"),
    ],
)  # fmt: skip
def test_plain_values(values, text, value):
    found = values(f"key: {text}")["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "no", "No", "NO", "yes", "on", "Off", "10:30", "1:2:3", "-10:30.5", "2001-01-01", "2001-1-1 10:00:00",
        "010", "-017", "08", "0o17", "0b101", "1_000", "1_0.5", "0x_1", "0x1F",
        ".inf", "-.INF", ".nan", ".NaN", "1e999", "=", "9" * 400,
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["key: {}", "list:\n- a\n- {}", "flow: {{deep: [1, {}]}}", "{}: 1"])
def test_ambiguous_values_are_refused_with_their_line(values, text, shape):
    with pytest.raises(UserError) as caught:
        values("first: 1\n" + shape.format(text))
    assert f"s.yaml:{4 if 'list' in shape else 2}: " in str(caught.value)
    assert text[:20] in str(caught.value) or len(text) > 300


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("", None, "the file is empty"),
        ("---\n...\n", 2, "a study is a mapping"),
        ("- a\n- b\n", 1, "found a list"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, "a: the key occurs twice"),
        ("a: !!str 3\n", 1, "tags are not used"),
        ("base: &b {x: 1}\nc: {<<: *b}\n", 2, "found '<<'"),
        ("1: a\n", 1, "a key must be text"),
        (b"a: 1\nb: \xff\n", 2, "not a text file in UTF-8"),
        (b"a: \x00\n", None, "not valid YAML"),
    ],
)
def test_files_that_are_not_a_study(values, text, line, expected):
    with pytest.raises(UserError) as caught:
        values(text)
    assert expected in str(caught.value)
    assert f"s.yaml:{line}: " in str(caught.value) if line else "s.yaml: " in str(caught.value)


def test_lines_are_those_of_the_keys_and_items(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("a:\n  - x\n  -\n    b: 1\n    c:\n      2\n")
    lines = read_document(file).lines
    assert lines["a", 0] == 2
    assert lines["a", 1] == 4
    assert lines["a", 1, "b"] == 4
    assert lines["a", 1, "c"] == 5
