"""Data sets of plugins: cards, checks, studies."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data, plugins
from ep_bench.data import embedded
from ep_bench.errors import UserError
from ep_bench.types import DatasetRef, SplitScheme
from tests.commands import ep_bench
from tests.plugins.conftest import CLASS, DATA, Site

Name = Callable[[str], str]
SOUND = ("pair", "framed", "bunch", "dataset")


@pytest.fixture
def module(site: Site, modules: Name) -> str:
    name = modules("sets")
    functions = [line.split()[1].rstrip("():") for line in DATA.splitlines() if line.startswith("def ")]
    entries = "".join(f"tiny-{function} = {name}:{function}\n" for function in functions)
    entries += f"tiny-number = {name}:NUMBER\ntiny-absent = {name}:absent\n"
    site.install("tiny-data", f"[ep_bench.datasets]\n{entries}", **{name: DATA})
    return name


@pytest.mark.parametrize("kind", SOUND)
def test_every_kind_of_data_set_gets_a_card(module: str, kind: str) -> None:
    found = data.load_dataset(f"tiny-{kind}")
    source = sys.modules[module]
    np.testing.assert_array_equal(found.X, source.X)
    np.testing.assert_array_equal(found.y, source.y)
    assert not found.X.flags.writeable
    assert not found.y.flags.writeable
    assert source.X.flags.writeable  # the package's own array is left alone
    assert found.checksum == found.card.sha256 == embedded.checksum(source.X, source.y)
    assert (found.card.n, found.card.d, found.card.n_splits) == (60, 2, 20)
    assert "the package tiny-data 1.2.3" in found.card.source
    assert found.card.licence == "see the package tiny-data"
    names = {"pair": ("x1", "x2"), "framed": ("left", "right"), "bunch": ("a", "b"), "dataset": ("u", "v")}
    assert found.names == names[kind]
    target = {"pair": "y", "framed": "height", "bunch": "target", "dataset": "w"}
    assert found.target == target[kind]
    titles = {"pair": "Sixty points near a plane.", "bunch": "Toy plane"}
    assert found.card.title == titles.get(kind, f"tiny-{kind}")
    info = data.describe(DatasetRef(f"tiny-{kind}", "mine"))
    assert (info.n, info.d, info.checksum, info.splits, info.present) == (60, 2, found.checksum, 20, True)
    split = data.make_split(SplitScheme(), found, 19)
    assert (len(split.train), len(split.test)) == (54, 6)
    assert data.verify([f"tiny-{kind}"])[0].status == "ok"
    assert [str(line) for line in data.fetch([f"tiny-{kind}"], progress=False)] == [f"tiny-{kind}: embedded"]


@pytest.mark.parametrize(("kind", "classes"), [("classes", ("below", "above")), ("labelled", ("no", "yes", "never"))])
def test_classes_of_a_bunch_and_of_a_data_set(module: str, kind: str, classes: tuple[str, ...]) -> None:
    found = data.load_dataset(f"tiny-{kind}")
    assert found.task == data.describe(DatasetRef(f"tiny-{kind}", "mine")).task == "classification"
    assert found.classes == classes
    np.testing.assert_array_equal(found.y, sys.modules[module].y > 0.0)


def test_inputs_of_noise_and_constants(module: str) -> None:
    assert data.load_dataset("tiny-pair", irrelevant_inputs=3).X.shape == (60, 5)
    assert dict(data.load_dataset("tiny-dataset", constant_inputs="paper").constants) == {1: 2.0}
    with pytest.raises(UserError, match="constant_inputs"):
        data.load_dataset("tiny-pair", constant_inputs="paper")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("ragged", "returns no valid X and y: .*inconsistent numbers of samples"),
        ("holes", "returns no valid X and y: .*NaN"),
        ("flat", "returns no valid X and y: Expected 2D array"),
        ("words", "returns no valid X and y"),
        ("nothing", "does not return a data set; found 'NoneType'; allowed: .*Bunch"),
        ("halves", "y of a classification set must hold class indices, 0 to 1"),
        ("nameless", "a classification set must name two or more classes; found '0'"),
        ("misnamed", "X has 2 inputs, but there are 1 names of inputs"),
        ("fails", "fails: OSError: no disk"),
        ("number", "must refer to a function without arguments; found 'int'"),
        ("absent", "cannot be imported: AttributeError"),
    ],
)
def test_invalid_data_sets_are_reported(module: str, kind: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        data.load_dataset(f"tiny-{kind}")
    assert f"tiny-data 1.2.3: entry point ep_bench.datasets: tiny-{kind} = {module}:" in str(caught.value)


def test_lists_load_nothing(module: str) -> None:
    lines = ep_bench("data", "list").stdout
    assert "tiny-pair" in lines
    assert "of tiny-data 1.2.3" in lines
    assert "plugin tiny-fails" in ep_bench("doctor").stdout
    assert module not in sys.modules
    assert "tiny-pair" in data.plugin_names()
    with pytest.raises(UserError, match="did you mean 'tiny-pair'"):
        data.card("tiny-pairs")
    shown = ep_bench("data", "show", "tiny-bunch").stdout
    assert "the package tiny-data 1.2.3" in shown
    assert "Toy plane" in shown


def test_a_built_in_name_cannot_be_taken(site: Site, module: str) -> None:
    site.install("other", f"[ep_bench.datasets]\ncubic = {module}:pair\n")
    plugins._found.cache_clear()
    assert data.load_dataset("cubic").card.embedded
    assert "the name is built in; rename the entry point of other 1.2.3" in ep_bench("data", "list").stdout


@pytest.mark.slow
def test_a_study_through_the_command_line(site: Site, module: str, modules: Name, tmp_path: Path) -> None:
    wide = modules("wide")
    site.install("tiny-methods", f"[ep_bench.methods]\nwide = {wide}:Wide\n", **{wide: CLASS})
    (tmp_path / "s.yaml").write_text(
        "study: s\ndatasets: [tiny-pair, {name: tiny-bunch, irrelevant_inputs: 1}]\n"
        "splits: {scheme: standard, count: 2}\nmethods: [wide]\n"
    )
    done = ep_bench("run", "s.yaml", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "results" / "s" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["dataset"] for row in rows] == ["tiny-bunch"] * 2 + ["tiny-pair"] * 2
    assert all(row["status"] == "ok" and row["ll"] and row["crps"] and not row["reason"] for row in rows)
    wrong = ep_bench("data", "show", "tiny-fails", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "no disk" in wrong.stderr
    assert "Traceback" not in wrong.stderr
