"""``ep-bench cite``: the entries of what a study used, and whether each of them is valid BibTeX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from docs.site.committed_results import committed_folders
from ep_bench import data, experiments, methods
from ep_bench.cli.output.cite import _dataset, entries
from tests.commands import ep_bench

RESULTS = Path(__file__).parents[2] / "results"
ENTRY = re.compile(r"(?s)@\w+\{([a-z0-9-]+),(?:\s+\w+ = \{.*?\},?)+\s*\}")
FIVE, LARGE = ("boston", "concrete", "energy", "wine", "yacht"), ("kin8nm", "naval", "power", "protein")
REFERENCES = yaml.safe_load((RESULTS.parent / "CITATION.cff").read_text(encoding="utf-8"))["references"]


def keys(*folders: str) -> set[str]:
    """Return the keys of the entries of some folders, all of which must be valid and different."""
    found = [text for text in entries([RESULTS / folder for folder in folders]) if not text.startswith("%")]
    matches = [ENTRY.fullmatch(text) for text in found]
    assert all(matches), found
    assert all(text.count("{") == text.count("}") for text in found)
    names = [match[1] for match in matches if match]
    assert len(names) == len(set(names))
    return set(names)


def test_the_program_alone() -> None:
    assert ep_bench("cite").stdout.startswith("@software{ep-bench,\n  author = {{The ep-bench authors}},")


def test_without_results_nothing_is_printed() -> None:
    found = ep_bench("cite", RESULTS / "bnn-optimization")
    assert (found.returncode, found.stdout) == (2, "")
    assert f"no such folder; did you mean {RESULTS / 'bnn-optimisation'}?" in found.stderr


def test_methods_data_sets_searches_and_libraries() -> None:
    datasets = {f"data-{name}" for name in FIVE + LARGE}
    assert keys("controls") == {"ep-bench", "pedregosa2011", "duan2020"} | datasets
    assert {"hernandez-lobato2015", "gal2016", "akiba2019", "data-yacht"} <= keys("bnn-optimisation")
    assert {"kuleshov2018", "romano2019"} <= keys("recalibration")


def test_experiments() -> None:
    assert {"hernandez-lobato2015", "neal1996", "data-boston"} <= keys("active-learning")
    assert "talts2018" in keys("hmc-calibration")


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", committed_folders(), ids=lambda folder: folder.name)
def test_every_committed_study(folder: Path) -> None:
    assert len(keys(folder.name)) > 1


def test_every_method_and_paper_has_a_reference() -> None:
    known = {name for each in REFERENCES for name in each["keywords"]}
    known |= {name for name in methods.REGISTRY if "bibtex" in methods.literals(name)}
    assert {*methods.REGISTRY, *experiments.REGISTRY.values()} <= known


@pytest.mark.parametrize("name", data.names())
def test_every_data_set_has_authors(name: str) -> None:
    text = _dataset(name)
    if not text.startswith("% "):
        (authors,) = re.findall(r"author = \{(.*)\}", text)
        assert all(
            re.fullmatch(r"(?:[A-Z][\w-]*\. ?-?)+[\w' -]+(?: et al\.)?", each) for each in authors.split(" and ")
        )
