"""A real dask cluster on the loopback interface; scheduler and workers are separate processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


class LoopbackCluster:
    """Processes ``dask scheduler`` and ``dask worker``; their output is written to files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self._about = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self._about)
        )
        self.address = self._address()

    def add_worker(
        self, *options: str, env: Mapping[str, str] | None = None, inside: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a worker of one thread; ``inside`` is a command that runs it."""
        scratch = Path(tempfile.mkdtemp(prefix="scratch", dir=self.folder))
        more = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(scratch), *options)
        worker = self._start("worker", self.address, *more, env=env, inside=inside)
        self.workers.append(worker)
        return worker

    def replace_dead_workers(self) -> None:
        """Start a worker for each that has ended."""
        dead = [worker for worker in self.workers if worker.poll() is not None]
        self.workers = [worker for worker in self.workers if worker not in dead]
        for _ in dead:
            self.add_worker()

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()

    def output(self) -> str:
        return "\n".join(path.read_text() for path in self.folder.glob("*.out"))

    def _start(
        self, role: str, *arguments: str, env: Mapping[str, str] | None = None, inside: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        dask = shutil.which("dask", path=str(Path(sys.executable).parent))
        assert dask is not None
        # Profiles of the workers are not needed.
        plain = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
        with (self.folder / f"{role}{len(self.workers)}.out").open("ab") as printed:
            return subprocess.Popen(
                [*inside, dask, role, *arguments],
                stdout=printed, stderr=printed, cwd=self.folder, env={**os.environ, **plain, **(env or {})},
            )  # fmt: skip

    def _address(self) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):
                return str(json.loads(self._about.read_text())["address"])
            time.sleep(0.1)
        raise AssertionError(f"the scheduler did not start: {self.output()}")


@contextlib.contextmanager
def loopback(folder: Path, workers: int = 2) -> Iterator[LoopbackCluster]:
    folder.mkdir(exist_ok=True)
    cluster = LoopbackCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()
