"""Methods that packages plug in: found by name, checked, shown, run; broken ones break their own use alone."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ep_bench import Estimator, adapters, methods
from ep_bench.catalogue import InstalledCatalogue
from ep_bench.errors import UserError
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from tests.commands import ep_bench as command
from tests.plugins.conftest import CLASS, METHOD, Site

Name = Callable[[str], str]
HERE = Path("/")
X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)


@pytest.fixture
def plugged(site: Site, modules: Name) -> Site:
    flat, wide, broken = modules("flat"), modules("wide"), modules("broken")
    entries = f"""\
        [ep_bench.methods]
        flat = {flat}:METHOD
        wide = {wide}:Wide
        dotted.name = {wide}:Wide
        broken = {broken}:Nothing
        absent = no_such_module_at_all:X
        number = {flat}:__name__
        """
    text = {flat: METHOD, wide: CLASS, broken: "raise RuntimeError('out of order')"}
    site.install("tiny-methods", entries, **text)
    site.loaded = (flat, wide, broken)  # type: ignore[attr-defined]
    return site


def study(tmp_path: Path, entry: str) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(f"study: s\ndatasets: [cubic]\nsplits: {{scheme: standard, count: 2}}\nmethods: [{entry}]\n")
    return path


def read(tmp_path: Path, entry: str):
    return read_study(study(tmp_path, entry), InstalledCatalogue())


def test_names_need_no_import(plugged: Site) -> None:
    assert {"pbp", "flat", "wide", "broken", "absent"} <= set(methods.names())
    lines = command("methods", "list").stdout
    assert "of tiny-methods 1.2.3" in lines
    assert "Probabilistic backpropagation" in lines
    assert not set(plugged.loaded) & set(sys.modules)


def test_a_method_behaves_like_one_of_the_registry(plugged: Site) -> None:
    assert not adapters.is_target("flat")
    assert methods.version("flat") == "tiny-methods 3"
    assert methods.version("pbp") == str(methods.get("pbp").version)
    model = Estimator("flat", factor=2.0).fit(X, y)
    np.testing.assert_allclose(model.predict_dist(X).std(), 2.0 * y.std())
    assert pickle.loads(pickle.dumps(model)).factor == 2.0
    with pytest.raises(TypeError, match=r"has no option 'fcator'.*did you mean 'factor'"):
        Estimator("flat", fcator=2.0)
    shown = command("methods", "show", "flat").stdout
    assert "of tiny-methods 1.2.3: " in shown
    assert "factor: 1.0" in shown
    assert "version 3" in shown


def test_a_class_is_a_target_under_a_short_name(plugged: Site) -> None:
    for name in ("wide", "dotted.name"):
        assert adapters.is_target(name)
        assert adapters.version(name, HERE) == "tiny-methods 1.2"
        found = adapters.build(name, {"df": 5.0}, HERE).fit(X, y).predict_dist(X)
        np.testing.assert_allclose(found.logpdf(y), stats.t(5.0, y.mean(), y.std()).logpdf(y))
    shown = command("methods", "show", "wide").stdout
    assert "df: 3.0" in shown
    assert "tiny-methods 1.2.3" in shown
    assert "heavy tails" in shown
    with pytest.raises(UserError, match="is of type type, not"):
        methods.get("wide")


def test_the_version_of_an_editable_package_follows_its_source(plugged: Site) -> None:
    (info,) = plugged.folder.glob("*.dist-info")
    (info / "direct_url.json").write_text('{"dir_info": {"editable": true}, "url": "file:///x"}')
    first = adapters.version("wide", HERE)
    assert re.fullmatch(r"tiny-methods 1\.2; file [0-9a-f]{16}", first)
    for path in plugged.folder.glob("*.py"):
        path.write_text(path.read_text() + "\n# changed\n")
    assert adapters.version("wide", HERE) != first
    (info / "direct_url.json").write_text('{"dir_info": {}, "url": "file:///x"}')
    assert adapters.version("wide", HERE) == "tiny-methods 1.2"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("flta", "did you mean 'flat'"),
        ("{use: flat, factor: -1}", "must be a positive number"),
        ("{use: flat, fcator: 1}", "did you mean 'factor'"),
        ("{use: wide, fd: 1}", "did you mean 'df'"),
        ("broken", "tiny-methods 1.2.3: entry point ep_bench.methods: broken = .*RuntimeError: out of order"),
        ("absent", "cannot be imported: ModuleNotFoundError"),
        ("number", "must refer to a types.Method or a class"),
    ],
)
def test_errors_are_reported_when_the_study_is_read(plugged: Site, tmp_path: Path, entry: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path, entry)
    assert str(caught.value).startswith(f"{tmp_path / 's.yaml'}:4: methods[0]")


def test_the_factors_name_the_package(plugged: Site, tmp_path: Path) -> None:
    read_ = read(tmp_path, "flat, {use: wide, df: 4.0}, dotted.name, pbp")
    factors = [planned.job.cell.factors for planned in make_plan(read_, tmp_path / "r").cells[::2]]
    assert [f["version"] for f in factors] == ["tiny-methods 3", "tiny-methods 1.2", "tiny-methods 1.2", "1"]
    assert factors[0]["options"] == {"factor": 1.0, "standardize": True}
    assert factors[1]["options"] == {"df": 4.0}


def test_a_name_given_twice_breaks_its_own_use_alone(plugged: Site, tmp_path: Path, modules: Name) -> None:
    other = modules("other")
    plugged.install("second", f"[ep_bench.methods]\nwide = {other}:Wide\npbp = {other}:Wide\n", **{other: CLASS})
    methods.plugins._found.cache_clear()
    with pytest.raises(UserError, match=r"define this name: second 1\.2\.3, tiny-methods 1\.2\.3; uninstall"):
        read(tmp_path, "wide")
    assert methods.get("pbp").title == "Probabilistic backpropagation"
    assert read(tmp_path, "pbp").methods[0].use == "pbp"
    assert read(tmp_path, "flat").methods[0].use == "flat"
    for text in (command("methods", "list").stdout, command("doctor").stdout):
        assert text.count("not usable: several packages define this name") == 1
        assert text.count("not usable: the name is built in") == 1
        assert "flat" in text
