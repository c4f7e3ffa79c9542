"""The committed results: their size, the checksums of their rows and files, and their comparison with papers."""

from pathlib import Path

import pytest

from docs.site.committed_results import committed_folders, submitted_folders
from ep_bench.published.claims import load_claims
from ep_bench.report.claims import claim_verdicts, claims_table
from ep_bench.report.merge import merge_studies
from ep_bench.report.published_checks import check_table, merged_check
from ep_bench.results import store
from ep_bench.results.submission import read_submission
from ep_bench.runner.submission import changed_files, problems

RESULTS = Path(__file__).parents[1] / "results"
MEGABYTES = 62  # mostly rows of cells, of up to 33 data sets
FOLDERS = committed_folders()


def test_the_size_of_all_committed_results():
    files = [path for folder in FOLDERS for path in folder.iterdir() if path.is_file()]
    assert 1e6 < sum(path.stat().st_size for path in files) < MEGABYTES * 1e6


@pytest.mark.parametrize("folder", [*FOLDERS, *submitted_folders()], ids=lambda folder: folder.name)
def test_no_committed_row_is_damaged(folder):
    study = store.read_intact(folder)
    submission = read_submission(folder)
    assert not submission or not [*problems(study), *changed_files(folder, submission)]


def test_the_suite_has_the_finished_and_failed_cells_of_the_studies_that_it_includes():
    suite = store.read_intact(RESULTS / "suite")
    cells = {cell["cell"] for cell in store.lock_cells(suite.lock)}
    others = [store.read_intact(folder) for folder in FOLDERS if folder.name not in ("suite", "gap", "pbp-plain")]
    scores = {
        row["cell"]: row["ll"] if row["status"] == "ok" else row["reason"]
        for other in others
        for row in other.rows
        if row["status"] in ("ok", "failed") and row["cell"] in cells
    }
    found = {row["cell"]: row["ll"] if row["status"] == "ok" else row["reason"] for row in suite.rows}
    assert found == scores, "run `make suite`"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_comparison_with_published_numbers_is_up_to_date(folder):
    merged = merge_studies([store.read_intact(folder)])
    assert check_table(merged_check(merged)) == (folder / "check.csv").read_text(), "run `make check-results`"
    claims = claim_verdicts(merged, load_claims())
    assert (folder / "claims.csv").is_file() == bool(claims), "run `make check-results`"
    assert not claims or claims_table(claims) == (folder / "claims.csv").read_text(), "run `make check-results`"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_lock_file_has_checksums_and_a_revision(folder):
    lock = store.read_lock(folder)
    key = "files" if "experiment" in lock else "provenance"
    assert key in lock, f"study.lock.json of {folder.name} has no `{key}`; run the study again"
    environments = [lock["environment"]] if "experiment" in lock else lock["environments"].values()
    uncommitted = [each["revision"] for each in environments if str(each.get("revision", "")).endswith("+changes")]
    assert not uncommitted, (
        f"{folder.name} has rows of uncommitted code: commit the code, remove the folder, and run the study again"
    )
