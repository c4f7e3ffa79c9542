"""Files and data sets shipped to remote workers."""

from __future__ import annotations

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
    """The payload of a run: data sets by their references in the study, and files by their paths on the run's machine.

    Modules outside the folder of a file that it imports must be installed on every machine.
    """

    run: str
    datasets: Mapping[DatasetRef, Dataset] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


class UnpackedPayload:
    """A payload on the machine that received it; its files are written to a temporary folder."""

    def __init__(self, payload: Payload) -> None:
        self.datasets = payload.datasets
        self._folder = tempfile.mkdtemp(prefix="ep-bench-") if payload.files else ""
        self.paths = {path: self._write(Path(path), content) for path, content in payload.files.items()}

    def drop(self) -> None:
        """Delete the temporary folder."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, path: Path, content: bytes) -> str:
        # Files keep their places relative to each other, so that they can import each other.
        copy = Path(self._folder, *path.parts[1:])
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        return str(copy)


def pack(run: str, jobs: Sequence[Job]) -> Payload:
    """Return the payload of jobs: data sets and method files that are not part of the installed package."""
    refs = dict.fromkeys(job.dataset for job in jobs)
    datasets = {ref: data.load(ref) for ref in refs if ref.csv or not data.card(ref.name).embedded}
    used = {(job.use, job.base): job for job in jobs}.values()
    paths = {path for job in used for path in adapters.files(job.use, Path(job.base), job.options)}
    return Payload(run, datasets, {str(path): path.read_bytes() for path in sorted(paths)})
