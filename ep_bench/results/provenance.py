"""Provenance of results: versions, code revision and machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("ep-bench", "numpy", "scipy", "numba", "scikit-learn", "joblib", "pandas", "optuna")


@cache
def environment() -> dict[str, Any]:
    """Return versions, code revision and machine; they are the same for every cell of a process."""
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "revision": revision(),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "instructions": _instructions(),
            "cores": os.cpu_count(),
        },
        "blas": _blas(),
    }


def same_arithmetic(stored: Mapping[str, Any]) -> bool:
    """Return whether a stored environment has the processor, BLAS kernel and versions of libraries of this process.

    Processors of the same name can differ in their instructions, and then in the last bits of a sum. An environment
    without ``instructions`` is therefore another one.
    """
    return _arithmetic(stored) == _arithmetic(environment())


def _arithmetic(known: Mapping[str, Any]) -> list[Any]:
    libraries = {name: version for name, version in known.get("packages", {}).items() if name != "ep-bench"}
    return [libraries, *(known.get(key) for key in ("python", "blas", "machine"))]


def _blas() -> list[str]:
    """Return the BLAS libraries that NumPy and SciPy load: name, version and kernel."""
    import scipy.linalg  # noqa: F401 loads its BLAS
    from threadpoolctl import threadpool_info

    found = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = (
        " ".join(str(pool[key]) for key in ("internal_api", "version", "architecture") if pool.get(key))
        for pool in found
    )
    return sorted(set(names))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def revision() -> str:
    """Return the git revision of the code, with ``+changes`` for uncommitted changes; empty for an installed wheel."""
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


def _instructions() -> str:
    """Return the processor for which Numba compiles, and the instruction sets that NumPy has found."""
    import numpy as np
    from llvmlite.binding import get_host_cpu_name

    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])  # NumPy omits empty lists
    features = os.environ.get("NUMBA_CPU_FEATURES", "").split()
    return " ".join([os.environ.get("NUMBA_CPU_NAME") or get_host_cpu_name(), *features, *found])
