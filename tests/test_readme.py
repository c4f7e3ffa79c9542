"""The README does what it says: its Python runs, its studies read, its method runs by path."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ep_bench import methods
from ep_bench.catalogue import InstalledCatalogue
from ep_bench.spec import read_study

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_study_reads_and_the_method_runs_by_its_path(tmp_path: Path) -> None:
    method = next(block for block in blocks("python") if "class MyRegressor" in block)
    assert len([line for line in method.splitlines() if line.strip()]) <= 20
    (tmp_path / "my_method.py").write_text(method)
    (tmp_path / "own.csv").write_text("a;price\n" + "\n".join(f"{i};{i * i % 11}" for i in range(40)))
    (tmp_path / "study.yaml").write_text(blocks("yaml")[0])
    assert [m.label for m in read_study(tmp_path / "study.yaml", InstalledCatalogue()).methods] == [
        "pbp",
        "PBP-2",
        "ridge",
        "SVR",
        "mine",
    ]
    command = [
        sys.executable,
        "-m",
        "ep_bench",
        "run",
        "study.yaml",
        "--select",
        "dataset=own",
        "--select",
        "method=mine",
    ]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "20 cells run; 20 ok" in run.stdout
    folder = tmp_path / "results" / "mine"
    report = subprocess.run([sys.executable, "-m", "ep_bench", "report", str(folder)], capture_output=True, text=True)
    assert report.returncode == 0, report.stderr
    assert "mine" in (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert "mine" in (folder / "report" / "report.md").read_text(encoding="utf-8")
    target = ["methods", "test", "./my_method.py:MyRegressor", "--quiet"]
    tried = subprocess.run([sys.executable, "-m", "ep_bench", *target], capture_output=True, text=True, cwd=tmp_path)
    assert tried.returncode == 0, tried.stdout


def test_the_study_of_classifiers_runs(tmp_path: Path) -> None:
    _, study = blocks("yaml")
    (tmp_path / "classify.yaml").write_text(study)
    command = [sys.executable, "-m", "ep_bench", "run", "classify.yaml", "--select", "split=0"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "12 cells run; 12 ok" in run.stdout


def test_commands_named_exist() -> None:
    helps = subprocess.run([sys.executable, "-m", "ep_bench", "--help"], capture_output=True, text=True).stdout
    for command in re.findall(r"^\| `ep-bench (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^  {command} ", helps, flags=re.MULTILINE), command


def test_files_named_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for config in re.findall(r"configs/[\w/]+\.yaml", README):
        assert (ROOT / config).exists(), config


TOY_METHODS = {"pbp", "bp", "vi_graves", "vi", "dropout", "bb_alpha"}
needs_methods = pytest.mark.skipif(bool(TOY_METHODS - set(methods.names())), reason="a method of the study is missing")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=[needs_methods] * (p.name == "toy.yaml"))
        for p in sorted((ROOT / "configs").rglob("*.yaml"))
    ],
    ids=lambda p: p.name,
)
def test_every_study_in_configs_reads(path: Path) -> None:
    from ep_bench import experiments

    read_study(path, InstalledCatalogue(experiments.names(), experiments.problems))


def test_make_targets_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make (\w+)`", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_ci_calls_the_readmes_test_command() -> None:
    assert "$ make test" in README
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
