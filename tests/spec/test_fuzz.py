"""For any content of the file, the result is a valid study or one message."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ep_bench.errors import UserError
from ep_bench.spec import Study
from ep_bench.types import DatasetRef, SplitScheme

QUIET = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    derandomize=True,
    database=None,
)
MORE = settings(QUIET, max_examples=60)
ODD = [None, -1, 1.5, "zzz", [None], {"zzz": 1}, float("nan")]
ODDER = [
    True, False, 0, -0.5, 10**30, float("inf"), "", "no", [], " ", "a\nb", [[]], {}, {"use": None}, ["zzz"],
    "2001-01-01", "nan", "x" * 5000,
    {"a": {"b": {"c": [1]}}},
]  # fmt: skip


def dumped(values) -> str:
    """Return values as YAML text, by libyaml if there is one: it is several times as fast."""
    return yaml.dump(values, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), allow_unicode=True)


def outcome(read, text) -> Study | None:
    """Return the study, checked, or None where one message refused it."""
    try:
        study = read(text)
    except UserError as error:
        message = str(error)
    else:
        keeps_its_promises(study)
        return study
    assert "study.yaml" in message
    assert len(message.splitlines()) <= 6
    return None


def keeps_its_promises(study: Study) -> None:
    assert study.name
    assert study.name[0].isalnum()
    assert type(study.seed) is int
    assert 0 <= study.seed < 2**32
    assert isinstance(study.splits, SplitScheme)
    for ref in study.datasets:
        assert isinstance(ref, DatasetRef)
        assert ref.name in {"boston", "naval", "kin40k", "protein"} or Path(str(ref.csv)).is_file()
    for labels in ([ref.label for ref in study.datasets], [entry.label for entry in study.methods]):
        assert len(set(labels)) == len(labels)
    assert study.experiment == "cubic_toy" or (study.datasets and study.methods)
    for entry in study.methods:
        for ref in study.datasets:
            options = study.options_for(entry, ref)
            if ":" not in entry.use:
                assert set(options) <= {"hidden", "epochs"}
                assert type(options.get("epochs", 1)) is int


@QUIET
@given(st.text(max_size=300))
def test_any_text(read, text):
    outcome(read, text.encode("utf-8", "surrogatepass"))


@QUIET
@given(st.binary(max_size=300))
def test_any_bytes(read, data):
    outcome(read, data)


@QUIET
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@,? \n\t~<=01._", max_size=80))
def test_text_of_yaml_s_own_characters(read, text):
    outcome(read, text)
    outcome(read, f"study: s\ndatasets: [boston]\nmethods: [pbp]\nlimits: {text}\n")


@MORE
@given(st.data())
def test_a_good_study_with_lines_deleted_repeated_swapped_or_cut(read, good, data):
    lines = good.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["lose", "double", "swap", "tear", "indent", "insert"]))
        j = data.draw(st.integers(0, len(lines[i])))
        if change == "lose" and len(lines) > 1:
            del lines[i]
        elif change == "double":
            lines.insert(i, lines[i])
        elif change == "swap":
            lines[i], lines[-1] = lines[-1], lines[i]
        elif change == "tear":
            lines[i] = lines[i][:j]
        elif change == "indent":
            lines[i] = " " + lines[i]
        else:
            lines[i] = (
                lines[i][:j] + data.draw(st.sampled_from([*":-[]{}&*!'\"#, 0x", "null", "\u2028"])) + lines[i][j:]
            )
    outcome(read, "\n".join(lines))


def places(value, path=()):
    """Return the path of every node below the root."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, child in children for found in [(*path, key), *places(child, (*path, key))]]


def replaced(values, path, new):
    changed = copy.deepcopy(values)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = new
    return changed


@MORE
@given(st.data())
def test_a_good_study_with_any_node_replaced(read, good, data):
    values = yaml.safe_load(good)
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=8)
        | st.sampled_from(["boston", "pbp", "gap"])
    )
    anything = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=6,
    )
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(values)))
        values = replaced(values, path, data.draw(anything))
    outcome(read, dumped(values))


def is_sensible(path, new) -> bool:
    """Return whether a value of ODD is valid at a place of the good study."""
    number = type(new) in {int, float}
    word = isinstance(new, str) and new in {"zzz", "2001-01-01", "no"}
    key = path[-1]
    if (
        path == ("methods", 1, "label") or new == "nan"
    ):  # the label is used elsewhere; an unquoted nan is always refused
        return False
    if path == ("study",) or key in {"label", "reason"} or path == ("datasets", 3, "name"):
        return word or (key == "reason" and isinstance(new, str) and new.strip() != "" and len(new) < 100)
    if path[:1] == ("ranks",) and (key == "name" or (path[2:3] == ("methods",) and len(path) == 4)):
        return word and path not in {("ranks", 0, "methods", 0), ("ranks", 0, "methods", 1)}  # the pairs name these
    if path[0] == "datasets" and key == "target":
        return word
    if key in {"seconds", "memory_gb"}:
        return number and 0 < new < 10**30
    if key == "trials":
        return type(new) is int and 0 < new <= 100_000
    if path[0] == "seed" or key == "seed":
        return type(new) is int and 0 <= new < 2**32
    if key == "irrelevant_inputs":
        return type(new) is int and 0 <= new <= 10_000
    if key == "alpha":  # the catalogue accepts any value here; only the rules of the reader apply
        return not isinstance(new, float) or abs(new) < float("inf")
    if key == "hidden":
        return new == []
    if key == "epochs" or (len(path) > 1 and path[-2] == "hidden"):
        return type(new) is int and new > 0
    if path in {
        ("overrides",),
        ("overrides", "boston"),
        ("overrides", "boston", "pbp"),
        ("overrides", "boston", "PBP-2"),
        ("limits",),
        ("compare",),
    }:
        return new == {}
    return (key == "tune" and new == {}) or (path in {("accept",), ("ranks",), ("ranks", 0, "pairs")} and new == [])


@pytest.mark.parametrize(
    "new",
    [*ODD, *(pytest.param(value, marks=pytest.mark.exhaustive) for value in ODDER)],
    ids=lambda new: repr(new)[:20],
)
def test_implausible_values_are_accepted_nowhere(read, good, new):
    values = yaml.safe_load(good.replace("1e-4", "0.0001"))
    accepted = []
    for path in places(values):
        text = dumped(replaced(values, path, new))
        if (outcome(read, text) is not None) != is_sensible(path, new):
            accepted.append((path, text))
    assert [path for path, _ in accepted] == []


def test_each_missing_key_is_reported_or_optional(read, good):
    values = yaml.safe_load(good)
    optional = {"seed", "splits", "overrides", "limits", "compare", "ranks", "accept", "options"}
    for key in values:
        rest = {other: value for other, value in values.items() if other != key}
        assert (outcome(read, dumped(rest)) is not None) == (key in optional), key
