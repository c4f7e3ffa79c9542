"""The script that builds the shipped data files."""

from __future__ import annotations

import gzip
import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ep_bench.data.splits import stored_mask

FOLDER = Path(__file__).parents[2] / "datasets"


@pytest.fixture
def script(tmp_path: Path) -> ModuleType:
    """Return the script, at work on a copy of some data sets."""
    specification = importlib.util.spec_from_file_location("build_datasets", FOLDER / "build.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for name in ("yacht", "pima", "cep", "servo"):
        shutil.copytree(FOLDER / name, tmp_path / "datasets" / name)
    module.HERE = tmp_path / "datasets"
    module.MOLECULES = module.HERE / module.MOLECULES.relative_to(FOLDER)
    return module


def test_stored_files_are_rebuilt_byte_for_byte(script: ModuleType, tmp_path: Path) -> None:
    stored = {path: path.read_bytes() for path in script.HERE.rglob("*.xz") if path.name != "cep.npy.xz"}
    originals = {"yacht/data.txt.xz": "uci/yacht/data.txt", "cep/cep-processed.csv.xz": script.MOLECULES_ORIGINAL}
    originals["pima/pima-indians-diabetes.csv.xz"] = "classification/pima/pima-indians-diabetes.csv"
    for name, original in originals.items():
        target = tmp_path / "originals" / original
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(script.read(script.HERE / name))
        (script.HERE / name).unlink()
    write_zipped(tmp_path / "originals/regression/servo/data.csv.gz", script.read(script.HERE / "servo/data.csv.xz"))
    for file, sets in (
        ("uci/yacht/gap_test_mask", stored_mask("yacht", "gap").T),
        ("regression/servo/test_mask", folds()),
    ):
        table = "".join(",".join(map(str, row)) + "\n" for row in sets.tolist())
        write_zipped(tmp_path / f"originals/{file}.csv.gz", table.encode())
    for name in ("servo/data.csv.xz", "servo/folds.txt.xz", "yacht/gap.txt.xz"):
        (script.HERE / name).unlink()
    assert script.run("build", tmp_path / "originals") == 0
    assert {path: path.read_bytes() for path in stored} == stored


def folds() -> np.ndarray:
    return (np.arange(10) == stored_mask("servo", "folds").T).astype(int)


def write_zipped(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content))


def test_a_wrong_original_is_refused(script: ModuleType, tmp_path: Path) -> None:
    for card in script.cards().values():
        (tmp_path / card["path"]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / card["path"]).write_bytes(b"1 2 3\n")
    with pytest.raises(ValueError, match=r"has the sha256 .*, expected "):
        script.run("build", tmp_path)


def test_verify_names_a_file_that_differs(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.verify() == 0
    (script.HERE / "yacht" / "data.txt.xz").write_bytes(b"")
    assert script.verify() == 1
    assert "yacht/data.txt.xz:" in capsys.readouterr().err


def test_the_readme_is_that_of_the_cards(script: ModuleType) -> None:
    script.HERE = FOLDER
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == script.readme()
