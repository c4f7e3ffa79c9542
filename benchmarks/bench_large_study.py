"""Studies of 1,000 and 10,000 cells that do nothing: CPU seconds and memory of plan, run, report and status.

Nothing is quadratic: the seconds for 10,000 cells are at most about 10 times those for 1,000.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

METHODS, SPLITS = 25, 20
COMMAND = """
import json, resource, sys
from ep_bench.cli import cli
try:
    cli.main(sys.argv[1:], standalone_mode=False)
finally:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    print(json.dumps({"cpu": seconds, "mb": max(one.ru_maxrss for one in used) / 1024}))
"""


def usage(*words: object) -> dict[str, float]:
    """Return CPU seconds and the largest memory of a command with its child processes."""
    done = subprocess.run([sys.executable, "-c", COMMAND, *map(str, words)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def write_study(folder: Path, cells: int) -> Path:
    """Write a study with so many cells: 25 constants on 20 splits of data sets of different sizes."""
    sets = [f"{{name: yacht, label: y{i}, train_points: {20 + i}}}" for i in range(cells // (METHODS * SPLITS))]
    use = "ep_bench.baselines:ConstantRegressor"
    entries = "".join(f"\n  - {{use: '{use}', label: c{i}, standardize: {str(i % 2 > 0).lower()}}}" for i in range(2))
    entries += "".join(f"\n  - {{use: 'sklearn.dummy:DummyRegressor', label: d{i}, quantile: 0.{i + 10}}}"
                       for i in range(METHODS - 2))  # fmt: skip
    path = folder / f"cells{cells}.yaml"
    head = f"study: cells{cells}\ndatasets: [{', '.join(sets)}]\nsplits: {{scheme: standard}}\n"
    path.write_text(f"{head}methods:{entries}\n")
    return path


def bench_large_study(benchmark, tmp_path: Path):
    def measure(cells: int) -> dict[str, dict[str, float]]:
        study, folder = write_study(tmp_path, cells), tmp_path / f"cells{cells}"
        return {
            "plan": usage("plan", study, "--results", tmp_path),
            "run": usage("run", study, "--results", tmp_path, "--jobs", 2, "--quiet"),
            "finished plan": usage("plan", study, "--results", tmp_path),
            "status": usage("status", folder),
            "report": usage("report", folder),
        }

    few = measure(1_000)
    many = benchmark.pedantic(measure, args=(10_000,), rounds=1)
    for name, found in many.items():
        ratio = found["cpu"] / few[name]["cpu"]
        benchmark.extra_info[name] = f"{found['cpu']:.1f} CPU s, {found['mb']:.0f} MB, {ratio:.1f} times 1,000 cells"
