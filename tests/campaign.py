"""Attempts to break a run or a reader by damage and at random: ``python -m tests.campaign NAME [COUNT] [SEED]``.

``files`` alters files of a results folder, ``studies`` fuzzes studies, ``kills`` kills processes of runs, ``orphans``
kills runs alone, ``shared`` kills one of three runs on one folder, ``disk`` fills the disk and ``readonly`` forbids
writing. Each prints the number of attempts and the failures. A failure is an exception other than an error for users, a
hang, a lost or changed cell, or a process that is left. ``kills`` and ``orphans`` also print how many seconds after the
death of a run its last process ended.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from click.testing import CliRunner

from ep_bench.catalogue import InstalledCatalogue
from ep_bench.cli import cli
from ep_bench.errors import UserError
from ep_bench.results import store
from ep_bench.spec import read_study
from ep_bench.types import COLUMNS, MEASURED_COLUMNS

ROOT = Path(__file__).parents[1]
STUDY = """
study: attacked
datasets: [cubic, diabetes]
splits: {scheme: standard, count: 2}
compare: {rows: PBP}
methods:
  - {use: pbp, label: PBP, epochs: 2}
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
  - {use: "sklearn.linear_model:BayesianRidge", label: ridge}
"""
SLOW = STUDY.replace("epochs: 2", "epochs: 100").replace("count: 2", "count: 6")
LIMIT = 5.0  # seconds for a message, and for the end of all processes of a run after its death
RUN_LIMIT = 300.0  # seconds for a run
ENDED_AFTER: list[float] = []  # seconds from the death of a killed run to the end of its last process
# joblib's resource tracker, started again after it was killed, prints this for each object of the earlier one.
TRACKER = re.compile(r'Traceback .*\n +File ".*resource_tracker.py", line \d+, in main\n(?: .*\n)*KeyError: .*\n')
WAYS = (["--jobs", "1"], ["--jobs", "2"], ["--jobs", "4"], ["--jobs", "2", "--backend", "dask"])
VALUES: tuple[Any, ...] = (None, 0, -1, 1e308, True, "", "x", "\ud800", "\x1b[31m", "=1+1", [], [1, [2]], {}, {"a": {}})


def command(study: Path, results: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "ep_bench", "run", str(study), "--results", str(results), "--quiet", *more]


def finished_run(folder: Path, text: str = STUDY) -> tuple[Path, Path]:
    """Run a study; return its file and its results folder."""
    study = folder / "study.yaml"
    study.write_text(text)
    subprocess.run(command(study, folder / "results"), check=True, timeout=RUN_LIMIT)
    return study, folder / "results" / "attacked"


def scores(folder: Path) -> list[list[Any]]:
    kept = [column for column in COLUMNS if column not in MEASURED_COLUMNS]
    return [[row.get(column) for column in kept] for row in store.read_rows(folder / "results.csv")]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


def altered_json(text: str, chance: random.Random) -> str:
    """Replace or remove the value at a random place of a JSON text."""
    value = json.loads(text)
    place = chance.choice(list(places(value))[1:])
    holder = value
    for key in place[:-1]:
        holder = holder[key]
    if chance.random() < 0.25:
        del holder[place[-1]]
    else:
        holder[place[-1]] = chance.choice(VALUES)
    return json.dumps(value)


def damage(path: Path, chance: random.Random) -> str:
    """Damage a file in a random way; return which."""
    kind = chance.choice(["json"] * 4 + ["cut", "flip", "deep", "bytes", "pipe", "folder", "loop", "device", "absent"])
    content = path.read_bytes()
    if kind == "json" and path.suffix == ".json":
        path.write_text(altered_json(content.decode(), chance))
        return kind
    path.unlink()
    if kind in {"cut", "json"}:
        path.write_bytes(content[: chance.randrange(len(content))])
    elif kind == "flip":
        at = chance.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :])
    elif kind == "deep":
        path.write_text("[" * 200_000)
    elif kind == "bytes":
        path.write_bytes(chance.randbytes(300))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    return kind


def guarded(action: Callable[[], object]) -> str:
    """Return what is wrong with an action, empty if it succeeds or raises a ``UserError`` or ``OSError`` in time."""

    def expire(*_: object) -> None:
        raise AssertionError("a hang")

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, 6 * LIMIT)  # the machine may be busy
    started = time.process_time()
    try:
        action()
    except (UserError, OSError):
        pass
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return "too slow" if time.process_time() - started > LIMIT else ""


def invoke(*words: str) -> None:
    result = CliRunner().invoke(cli, list(words))
    if "\x1b" in result.output:
        raise AssertionError("a control character in the output")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def files(count: int, chance: random.Random) -> Iterator[str]:
    """Alter files of a results folder, then call ``status``, ``plan`` and sometimes ``check`` and ``report``."""
    with tempfile.TemporaryDirectory() as name:
        study, folder = finished_run(Path(name))
        targets = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
        first = [path for path in targets if path.parent == Path()]
        kept = Path(name, "kept")
        shutil.copytree(folder, kept)
        for k in range(count):
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)
            target = folder / chance.choice(first * 3 + targets)
            kind = damage(target, chance)
            calls = [["status", str(folder)], ["plan", str(study), "--results", str(folder.parent)]]
            calls += [["check", str(folder)]] * (k % 10 == 0) + [["report", str(folder)]] * (k % 50 == 0)
            for call in calls:
                found = guarded(lambda call=call: invoke(*call))  # type: ignore[misc]
                yield f"{call[0]}, {kind} {target.name}: {found}" if found else ""


def studies(count: int, chance: random.Random) -> Iterator[str]:
    """Read studies with random changes of characters, lines and values."""
    texts = [path.read_text() for path in sorted((ROOT / "configs").rglob("*.yaml"))]
    pieces = [
        "{",
        "}",
        "[",
        "]",
        ":",
        "-",
        "\t",
        "&a",
        "*a",
        "!!python/object:os.system",
        "1e999",
        "~",
        "'",
        '"',
        "<<:",
        "use:",
    ]
    pieces += ["\x1b", "\ud800", "\u202e", "---\n", "9" * 400, "[" * 300, "? ", "use: os:system"]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "study.yaml")
        for k in range(count):
            lines = chance.choice(texts).splitlines()
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(lines))
                line, column = lines[at], chance.randrange(len(lines[at]) + 1)
                lines[at] = line[:column] + chance.choice(pieces) + line[column + chance.randint(0, 3) :]
                if chance.random() < 0.2:
                    lines.insert(at, chance.choice(lines))
            if path.exists() or path.is_symlink():
                path.unlink()
            if k % 50 == 0:
                os.mkfifo(path)
            else:
                path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
            yield guarded(lambda: read_study(path, InstalledCatalogue()))


def marked(mark: str) -> list[int]:
    found = []
    for pid in psutil.pids():
        try:
            if f"CAMPAIGN={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


class MarkedRun:
    """A run whose processes are found by a mark in their environment."""

    def __init__(self, study: Path, results: Path, mark: str, way: list[str]) -> None:
        self.mark, self.way = f"{os.getpid()}-{mark}", " ".join(way)
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 a pipe could be kept open by a process that is left
        self.process = subprocess.Popen(
            command(study, results, *way),
            env={**os.environ, "CAMPAIGN": self.mark, "PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.DEVNULL, stderr=self._printed,
        )  # fmt: skip

    def others(self) -> list[int]:
        return [pid for pid in marked(self.mark) if pid != self.process.pid]

    def wait_a_while(self, chance: random.Random, longest: float) -> None:
        """Wait up to ``longest`` seconds, in three cases of four from the moment at which other processes start."""
        deadline = time.monotonic() + 6 * LIMIT
        if chance.random() < 0.75:
            while not self.others() and self.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        time.sleep(chance.uniform(0.0, longest))

    def problem(self) -> str:
        """Wait for the end of the run and of its processes; return what is wrong, empty if nothing is."""
        try:
            code = self.process.wait(timeout=RUN_LIMIT)
        except subprocess.TimeoutExpired:
            left = self._described(self.others())
            self.process.send_signal(signal.SIGABRT)  # prints the stacks of all threads
            self.process.wait()
            kill(marked(self.mark))
            return f"{self.way}: the run hangs: {left}\n{self._end_of_output()}"
        ended = time.monotonic()
        while (left := marked(self.mark)) and time.monotonic() - ended < 3 * LIMIT:
            time.sleep(0.02)
        seconds = time.monotonic() - ended
        if code == -signal.SIGKILL:
            ENDED_AFTER.append(seconds)
        described = self._described(left)
        kill(left)
        if left:
            return f"{self.way}: processes are left after {seconds:.1f} s: {described}"
        printed = TRACKER.sub("", self._end_of_output())
        return f"{self.way}: {printed}" if "Traceback" in printed and code != -signal.SIGKILL else ""

    def _end_of_output(self) -> str:
        self._printed.seek(0)
        return self._printed.read().decode(errors="replace")[-9000:]

    @staticmethod
    def _described(pids: list[int]) -> list[str]:
        found = []
        for pid in pids:
            try:
                process = psutil.Process(pid)
                found.append(f"{pid} {process.status()} {' '.join(process.cmdline())[-80:]}")
            except psutil.Error:
                continue
        return found


def kills(count: int, chance: random.Random) -> Iterator[str]:
    """Kill the run, or one or all of its processes, at random times with 1, 2 and 4 jobs and with dask."""
    with tempfile.TemporaryDirectory() as name:
        study, calm = finished_run(Path(name), SLOW)
        for k in range(count):
            results = Path(name, f"wild{k // 8}")  # eight kills of the run of one folder
            run = MarkedRun(study, results, str(k), WAYS[k % 4])
            run.wait_a_while(chance, 10.0)
            whom = chance.choice(["run", "one", "one", "all"])
            others = run.others()
            pid = run.process.pid
            kill({"run": [pid], "one": [chance.choice(others or [pid])], "all": [pid, *others]}[whom])
            problem = run.problem()
            yield f"{whom} of {problem}" if problem else ""
            if k % 8 == 7 or k == count - 1:
                problem = MarkedRun(study, results, f"{k}-last", []).problem()
                same = not problem and scores(results / "attacked") == scores(calm)
                yield problem or ("" if same else "the scores differ from those of a calm run")


def orphans(count: int, chance: random.Random) -> Iterator[str]:
    """Kill the run alone, most often while its processes start, with 1, 2 and 4 jobs and with dask."""
    with tempfile.TemporaryDirectory() as name:
        study = Path(name, "study.yaml")
        study.write_text(SLOW)
        for k in range(count):
            run = MarkedRun(study, Path(name, f"results{k}"), str(k), WAYS[k % 4])
            run.wait_a_while(chance, 3.0)
            run.process.kill()
            yield run.problem()


def shared(count: int, chance: random.Random) -> Iterator[str]:
    """Start three runs on one folder and kill one of them."""
    with tempfile.TemporaryDirectory() as name:
        study, calm = finished_run(Path(name), SLOW)
        for k in range(count):
            results = Path(name, f"shared{k}")
            runs = [MarkedRun(study, results, f"{k}-{n}", []) for n in range(3)]
            time.sleep(chance.uniform(2.0, 10.0))
            runs[0].process.kill()
            problems = "".join(run.problem() for run in runs)
            codes = [run.process.returncode for run in runs]
            good = codes[1:] == [0, 0] and scores(results / "attacked") == scores(calm)
            yield problems or ("" if good else f"exit codes {codes}, or other scores")


def mounted(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def disk(count: int, chance: random.Random) -> Iterator[str]:
    """Run on file systems of different sizes that become full; then continue with more space."""
    with tempfile.TemporaryDirectory() as name:
        study, calm = finished_run(Path(name))
        small = Path(name, "small")
        small.mkdir()
        for k in range(count):
            mounted(small, f"size={8 + 8 * k + chance.randrange(8)}k")
            try:
                full = subprocess.run(command(study, small), capture_output=True, text=True, timeout=RUN_LIMIT)
                subprocess.run(["mount", "-o", "remount,size=10m", str(small)], check=True)
                more = subprocess.run(command(study, small), capture_output=True, text=True, timeout=RUN_LIMIT)
                good = "Traceback" not in full.stderr + more.stderr and more.returncode == 0
                good = good and scores(small / "attacked") == scores(calm)
                yield "" if good else f"size {k}: {full.stderr[-200:]} {more.stderr[-200:]}"
            finally:
                subprocess.run(["umount", "-l", str(small)], check=True)


def readonly(count: int, chance: random.Random) -> Iterator[str]:
    """Call every command on a folder that cannot be written."""
    with tempfile.TemporaryDirectory() as name:
        study, folder = finished_run(Path(name))
        fixed = Path(name, "fixed")
        fixed.mkdir()
        mounted(fixed, "size=10m")
        shutil.copytree(folder, fixed / "attacked")
        study.write_text(STUDY.replace("count: 2", "count: 3"))
        subprocess.run(["mount", "-o", "remount,ro", str(fixed)], check=True)
        try:
            for call in (
                ["status", str(fixed / "attacked")],
                ["plan", str(study), "--results", str(fixed)],
                ["run", str(study), "--results", str(fixed)],
                ["check", str(fixed / "attacked")],
                ["report", str(fixed / "attacked")],
            )[:count]:
                words = [sys.executable, "-m", "ep_bench", *call]
                done = subprocess.run(words, capture_output=True, text=True, timeout=RUN_LIMIT)
                yield f"{call[0]}: {done.stderr[-300:]}" if "Traceback" in done.stderr else ""
        finally:
            subprocess.run(["umount", "-l", str(fixed)], check=True)


CAMPAIGNS = {each.__name__: each for each in (files, studies, kills, orphans, shared, disk, readonly)}


def attempts(name: str, count: int, seed: int) -> tuple[int, list[str]]:
    """Return the number of attempts of a campaign, and its failures."""
    found = list(CAMPAIGNS[name](count, random.Random(seed)))
    return len(found), [failure for failure in found if failure]


if __name__ == "__main__":
    count, seed = (int(word) for word in (*sys.argv[2:], "100", "1")[:2])
    number, failures = attempts(sys.argv[1], count, seed)
    print(f"{sys.argv[1]}: {number} attempts, {len(failures)} failures")
    if ENDED_AFTER:
        median, longest = statistics.median(ENDED_AFTER), max(ENDED_AFTER)
        print(
            f"{len(ENDED_AFTER)} deaths of a run; its last process ended {median:.2f} s later in the median,", end=" "
        )
        late = sum(seconds > LIMIT for seconds in ENDED_AFTER)
        print(f"{longest:.2f} s at most; {late} times later than {LIMIT:g} s, which is no failure on a busy machine")
    print("\n".join(failures[:40]))
