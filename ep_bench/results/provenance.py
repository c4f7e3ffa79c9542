"""What a record says of where its numbers were made."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("ep-bench", "numpy", "scipy", "numba", "scikit-learn", "joblib", "pandas", "optuna")


@cache
def environment() -> dict[str, Any]:
    """Return versions, code revision and machine; the same for every cell of a process."""
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "revision": revision(),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def revision() -> str:
    """Return the git revision of the running code, ``+changes`` behind it where files differ; empty for a wheel."""
    top = Path(__file__).resolve().parents[2]
    if not (top / ".git").exists():
        return ""
    try:
        head = _git(top, "rev-parse", "--short=12", "HEAD")
        return head + ("+changes" if _git(top, "status", "--porcelain", "--", "ep_bench") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(top: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(top), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
