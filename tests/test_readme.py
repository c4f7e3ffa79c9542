"""README, CONTRIBUTING and the pages of `docs/`: Python runs, studies are valid, commands, studies and files exist."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from ep_bench import data, methods
from ep_bench.api import load_results
from ep_bench.spec import Study, read_study
from tests.commands import ep_bench

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
COMMAND = re.compile(r"(?:`|\$ )ep-bench ([a-z]+)")
STUDY_NAME = re.compile(r"ep-bench (?:run|plan) (\w+)(?=[\s`])")


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, flags=re.DOTALL | re.MULTILINE)
    return [dedent(block) for _, block in found]


def blocks_of_pages(language: str, marks: object = ()) -> list[object]:
    """Return the blocks of all pages as parameters; those of ``docs`` have the marks."""
    return [
        pytest.param(block, id=f"{name}-{number}", marks=marks if name.startswith("docs/") else ())
        for name, text in PAGES.items()
        for number, block in enumerate(blocks(text, language))
    ]


def read(study: str, folder: Path) -> Study:
    """Write the files that a study of the documentation names, and read the study."""
    (folder / "my_method.py").write_text(blocks(README, "python")[0])
    (folder / "own.csv").write_text("a;price\n" + "\n".join(f"{i};{i * i % 11}" for i in range(40)))
    (folder / "study.yaml").write_text(study)
    return read_study(folder / "study.yaml")


def labels(study: str, folder: Path) -> list[str]:
    """Return the labels of the methods of a study."""
    return [method.label for method in read(study, folder).methods]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("code", blocks_of_pages("python", marks=pytest.mark.exhaustive))
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "__main__"})  # noqa: S102


@pytest.mark.parametrize("study", blocks_of_pages("yaml"))
def test_studies_are_valid(study: str, tmp_path: Path) -> None:
    found = read(study, tmp_path)
    assert found.methods or found.experiment


@pytest.mark.parametrize("entries", blocks_of_pages("yml"))
def test_method_entries_are_valid(entries: str, tmp_path: Path) -> None:
    assert len(labels(f"study: entries\ndatasets: [boston]\nmethods:\n{entries}", tmp_path)) == entries.count("- ")


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("study", "selected", "counted"),
    [
        (blocks(README, "yaml")[0], [], "60 cells run; 60 ok"),
        (blocks(PAGES["docs/studies.md"], "yaml")[0], ["--select", "dataset=own"], "20 cells run; 20 ok"),
    ],
    ids=["README", "studies"],
)
def test_the_method_runs_by_its_path(study: str, selected: list[str], counted: str, tmp_path: Path) -> None:
    read(study, tmp_path)
    run = ep_bench("run", "study.yaml", "--select", "method=mine", *selected, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert counted in run.stdout
    folder = tmp_path / "results" / "mine"
    report = ep_bench("report", str(folder), cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "mine" in (folder / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/own-methods.md"])
def test_the_methods_conform(page: str, tmp_path: Path) -> None:
    method = next(block for block in blocks(PAGES[page], "python") if "class MyRegressor" in block)
    assert len([line for line in method.splitlines() if line.strip()]) <= 20
    (tmp_path / "my_method.py").write_text(method)
    tried = ep_bench("methods", "test", "./my_method.py:MyRegressor", "--quiet", cwd=tmp_path)
    assert tried.returncode == 0, tried.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Mixture", "Quantiles"])
def test_the_examples_of_predictions_conform(name: str, tmp_path: Path) -> None:
    example = next(block for block in blocks(PAGES["docs/own-methods.md"], "python") if f"class {name}" in block)
    (tmp_path / "kinds.py").write_text(example)
    tried = ep_bench("methods", "test", f"./kinds.py:{name}", "--quiet", cwd=tmp_path)
    assert tried.returncode == 0, tried.stdout


def test_the_row_that_is_recomputed_by_hand_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    rows = load_results(ROOT / "results" / "pbp-table-1")
    (row,) = rows[(rows["dataset"] == "yacht") & (rows["split"] == 3)].to_dict("records")
    page = PAGES["docs/trust.md"]
    code = next(block for block in blocks(page, "python") if "rmse:" in block)
    assert "split 3 of yacht" in page
    assert f"random_state={row['seed']})" in code, "docs/trust.md: copy `seed` and `rmse` of the row again"
    assert f"# rmse: {row['rmse']!r}\n" in code, "docs/trust.md: copy `seed` and `rmse` of the row again"
    exec(compile(code, "block", "exec"), {})  # noqa: S102
    assert float(capsys.readouterr().out) == pytest.approx(row["rmse"], rel=1e-6)  # equal on the same processor


def test_the_labels_of_the_annotated_study(tmp_path: Path) -> None:
    study = blocks(PAGES["docs/studies.md"], "yaml")[0]
    assert labels(study, tmp_path) == ["pbp", "PBP-2", "ridge", "SVR", "mine"]


@pytest.mark.usefixtures("in_process")
def test_the_study_of_classifiers_runs(tmp_path: Path) -> None:
    (tmp_path / "classify.yaml").write_text(blocks(PAGES["docs/classification.md"], "yaml")[0])
    run = ep_bench("run", "classify.yaml", "--select", "split=0", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "12 cells run; 12 ok" in run.stdout


def test_commands_named_exist() -> None:
    available = ep_bench("--help", cwd=ROOT).stdout
    for name, text in PAGES.items():
        for command in COMMAND.findall(text):
            assert re.search(rf"^  {command} ", available, flags=re.MULTILINE), (name, command)


def test_files_named_exist() -> None:
    for name, text in PAGES.items():
        folder = (ROOT / name).parent
        for target in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", text):
            assert (folder / target).exists(), (name, target)
        for path in re.findall(r"(?:configs|ep_bench|tests)/[\w/]+\.(?:yaml|py)", text):
            assert (ROOT / path).exists(), (name, path)


def test_headings_named_exist() -> None:
    for name, text in PAGES.items():
        for target, heading in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", text):
            linked = ((ROOT / name).parent / target).read_text(encoding="utf-8") if target else text
            anchors = [
                re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
                for title in re.findall(r"^#+ (.+)$", linked, re.MULTILINE)
            ]
            assert heading in anchors, (name, target, heading)


def test_studies_named_are_part_of_the_package() -> None:
    shipped = {path.stem for path in (ROOT / "configs").rglob("*.yaml")}
    for name, text in PAGES.items():
        for study in set(STUDY_NAME.findall(text)) - {"NAME", "STUDY"}:
            assert study in shipped, (name, study)


def test_every_page_and_every_method_is_listed() -> None:
    linked = {
        ((ROOT / name).parent / target).resolve()
        for name, text in PAGES.items()
        for target in re.findall(r"\]\((?!http)([^)#]+\.md)[^)]*\)", text)
    }
    assert not {ROOT / name for name in PAGES} - linked - {ROOT / "README.md"}, "no page links to these pages"
    for method in methods.names():
        assert f"| [`{method}`](" in PAGES["docs/methods/README.md"], f"docs/methods/README.md has no row of {method}"


def test_every_experiment_is_listed() -> None:
    for path in (ROOT / "configs").rglob("*.yaml"):
        if "\nexperiment:" in path.read_text(encoding="utf-8"):
            pages = [text for name, text in PAGES.items() if name.startswith(("docs/papers/", "docs/experiments.md"))]
            assert any(f"`{path.stem}`" in text for text in pages), f"no page of a paper names {path.stem}"


def test_every_folder_of_results_is_listed() -> None:
    from tests.test_committed_results import FOLDERS

    text = PAGES["docs/results.md"] + "".join(text for name, text in PAGES.items() if name.startswith("docs/methods/"))
    missing = [folder.name for folder in FOLDERS if f"../results/{folder.name})" not in text]
    assert not missing, f"neither docs/results.md nor the page of a method links {missing}"


def test_every_data_set_is_listed() -> None:
    listed = " ".join(re.findall(r"^\| [^`|]+ \| `([^`|]+)` \|$", PAGES["docs/data.md"], flags=re.MULTILINE)).split()
    missing = set(data.names()) - set(listed)
    assert not missing, f"the first table of docs/data.md has no {missing}"


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

    read_study(path)


def test_make_targets_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name, text in PAGES.items():
        for target in re.findall(r"(?:`|\$ )make ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), (name, target)


def test_ci_calls_the_readmes_test_command() -> None:
    assert "$ make test" in README
    assert re.search(r"\bmake test$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)
