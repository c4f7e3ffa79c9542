"""The wheel holds all it needs: built, installed in a clean environment, run from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def quietly(*command: object, cwd: Path) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("EP_BENCH", "PYTHON"))}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd, env=clean)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_runs_the_quickstart_from_any_folder(tmp_path: Path) -> None:
    wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, ROOT]
    quietly(sys.executable, *wheel, cwd=tmp_path)
    (built,) = tmp_path.glob("ep_bench-*.whl")
    quietly(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    quietly(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "requirements" / "lock.txt", built, cwd=tmp_path)
    study = (ROOT / "configs" / "quickstart.yaml").read_text(encoding="utf-8").replace("count: 5", "count: 2")
    (tmp_path / "quickstart.yaml").write_text(study, encoding="utf-8")
    program = tmp_path / "venv" / "bin" / "ep-bench"
    assert "24 cells run; 24 ok" in quietly(program, "run", "quickstart.yaml", "--jobs", "2", cwd=tmp_path)
    assert "report.html" in quietly(program, "report", "results/quickstart", cwd=tmp_path)
    assert "no published number applies" in quietly(program, "check", "results/quickstart", cwd=tmp_path)
    assert "boston" in quietly(program, "data", "list", cwd=tmp_path)
    typed = quietly(
        python, "-c", "import ep_bench, pathlib; print(pathlib.Path(ep_bench.__file__).parent)", cwd=tmp_path
    )
    assert (Path(typed.strip()) / "py.typed").exists()
    assert str(ROOT) not in typed
