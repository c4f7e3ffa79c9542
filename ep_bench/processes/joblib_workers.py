"""The processes that joblib keeps for the next parallel call."""

from __future__ import annotations

import sys


def end_joblib_workers() -> None:
    """Kill the processes that joblib keeps after a parallel call in this process."""
    reusable = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(reusable, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=True, kill_workers=True)
