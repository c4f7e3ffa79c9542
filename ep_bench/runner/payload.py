"""What cells need beside themselves on a machine that does not have it: data sets, and the files of methods."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ep_bench import adapters, data
from ep_bench.runner.jobs import Job
from ep_bench.types import Dataset, DatasetRef


@dataclass(frozen=True)
class Payload:
    """The payload of one run: data sets by their names in the study, files by their paths where the run is.

    A file travels alone: modules that it imports must be installed on every machine.
    """

    run: str
    datasets: Mapping[DatasetRef, Dataset] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


class UnpackedPayload:
    """Payload on the machine that it was sent to, its files written to a folder for the time of the run."""

    def __init__(self, payload: Payload) -> None:
        self.datasets = payload.datasets
        self._folder = tempfile.mkdtemp(prefix="ep-bench-") if payload.files else ""
        self.places = {path: self._write(Path(path), content) for path, content in payload.files.items()}

    def drop(self) -> None:
        """Remove what was written."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, path: Path, content: bytes) -> str:
        # Files of one folder stay in one, so that they can import each other.
        beside = Path(self._folder, hashlib.sha256(str(path.parent).encode()).hexdigest()[:12])
        beside.mkdir(exist_ok=True)
        (beside / path.name).write_bytes(content)
        return str(beside / path.name)


def pack(run: str, jobs: Sequence[Job]) -> Payload:
    """Return what the jobs need that does not come with the program: data sets, files of methods."""
    refs = dict.fromkeys(job.dataset for job in jobs)
    datasets = {ref: data.load(ref) for ref in refs if ref.csv or not data.card(ref.name).embedded}
    used = {(job.use, job.base): job for job in jobs}.values()
    paths = {path for job in used for path in adapters.files(job.use, Path(job.base), job.options)}
    return Payload(run, datasets, {str(path): path.read_bytes() for path in sorted(paths)})
