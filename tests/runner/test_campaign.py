"""Short forms of the campaigns of ``tests/campaign.py``, which has the long ones."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.campaign import attempts

pytestmark = [pytest.mark.exhaustive, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")]
COUNTS = {"files": 25, "studies": 60, "kills": 3, "orphans": 4, "shared": 1, "disk": 1, "readonly": 2}


@pytest.mark.parametrize("name", COUNTS)
def test_a_short_campaign_has_no_failure(name: str) -> None:
    if name in {"disk", "readonly"} and (shutil.which("unshare") is None or not can_mount()):
        pytest.skip("file systems cannot be mounted here")
    count, failures = attempts(name, COUNTS[name], 3)
    assert count >= COUNTS[name]
    assert not failures


def can_mount() -> bool:
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0
