"""What the commands print: plan, status, check, cards, methods, the machine. Lines of text, no colours needed."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ep_bench import plugins
from ep_bench.results import store
from ep_bench.runner.progress import clock
from ep_bench.types import UserError

if TYPE_CHECKING:
    from ep_bench.options import Option
    from ep_bench.runner.plan import Plan

_WIDTH = 100  # columns, at most
_UNKNOWN = 1000  # columns where nobody looks: nothing is wrapped anew
_NARROWEST = 20  # columns for what an option takes, at least
_COMMON = {"standardize": "inputs and target, by the training rows; predictions are in original units in any case"}
_SHORT = 30  # items of a list that are longer stand on lines of their own
_STATES = ("done", "failed", "stale", "missing")
_SHOWN = 20  # not-ok cells that `status` lists in full


def width() -> int:
    """Return how wide running text is: the terminal, within reason."""
    return min(_WIDTH, max(shutil.get_terminal_size((_WIDTH, 24)).columns, 2 * _NARROWEST))


def columns(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Return rows as left-aligned columns, two spaces between them."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        (indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def plan_lines(plan: Plan, jobs: int, *, cells: bool = False) -> Iterator[str]:
    """Yield a table of the cells, grouped or one by one, the reasons of stale ones, and the time left."""
    yield from columns(_each_cell(plan) if cells else _cell_groups(plan))
    yield from _searches(plan)
    reasons = Counter((p.job.cell.method, p.job.cell.dataset, p.why) for p in plan.cells if p.state == "stale")
    for (method, dataset, why), count in reasons.items():
        yield f"stale: {method} on {dataset}, {count} cells: {why}"
    rest = plan.to_run()
    work = [job.estimate for job in rest if job.estimate is not None]
    unknown = len(rest) - len(work)
    about = f"about {clock(max(sum(work) / jobs, *work))} with --jobs {jobs}" if work else "time unknown"
    more = f", {unknown} cells of unknown length beside" if unknown and work else ""
    yield f"{len(plan.cells)} cells, {len(rest)} to run" + (f"; {about}{more}" if rest else "")
    if absent := plan.absent():
        yield f"not on this machine: {', '.join(absent)}; `ep-bench data fetch {' '.join(absent)}` gets them"


def _cell_groups(plan: Plan) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, str], list[Any]] = {}
    for planned in plan.cells:
        groups.setdefault((planned.job.cell.dataset, planned.job.cell.method), []).append(planned)
    table: list[tuple[str, ...]] = [("data set", "method", "cells", *_STATES, "a cell takes")]
    for (dataset, method), members in groups.items():
        states = Counter(planned.state for planned in members)
        counts = (str(states[state]) for state in _STATES)
        table.append((dataset, method, str(len(members)), *counts, _guess(members[0].job.estimate)))
    return table


def _each_cell(plan: Plan) -> list[tuple[str, ...]]:
    rows = [
        (p.job.cell.dataset, p.job.cell.method, str(p.job.cell.split), p.state, _guess(p.job.estimate), p.job.cell.key)
        for p in plan.cells
    ]
    return [("data set", "method", "split", "state", "takes", "cell"), *rows]


def _searches(plan: Plan) -> list[str]:
    """Return one line a tuned method: its budget, its score, what is searched."""
    tuned = {p.job.cell.method: p.job.tune for p in plan.cells if p.job.tune}
    return [f"tuned: {method}, {_search(tune)}" for method, tune in tuned.items()]


def _search(tune: Mapping[str, Any]) -> str:
    trials = f"{tune['trials']} trials" if tune["trials"] > 1 else "1 trial"
    return f"{trials} on {tune['fraction']:g} of the training rows by {tune['score']}: {_space(tune['space'])}"


def _space(space: Mapping[str, Mapping[str, Any]]) -> str:
    parts = [f"{name} {kind} {list(values)}" for name, entry in space.items() for kind, values in entry.items()]
    return ", ".join(parts)


def _guess(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds:.2g} s" if seconds < 60 else clock(seconds)


def status_lines(folder: Path) -> tuple[list[str], bool]:
    """Return the state of a results folder and whether all planned cells are ok."""
    study = store.read_study(folder)
    if "experiment" in study.lock:  # its lock is written last
        return [f"{study.name}: the experiment {study.lock['experiment']}, one run: done"], True
    planned = store.lock_cells(study.lock)
    finished = {row["cell"] for row in study.rows}
    counts = Counter(row["status"] for row in study.rows)
    missing = [cell for cell in planned if cell["cell"] not in finished]
    total = max(len(planned), len(study.rows))
    parts = [
        f"{counts[status]} {status}" for status in ("ok", "failed", "timeout", "memory", "skipped") if counts[status]
    ]
    parts += [f"{len(missing)} missing"] if missing else []
    lines = [f"{study.name}: {total} cells: {', '.join(parts) or 'none run'}"]
    bad = [row for row in study.rows if row["status"] != "ok"]
    lines += [
        f"  {r['status']}: {r['method']} on {r['dataset']}, split {r['split']}: {r.get('reason', '')}"
        for r in bad[:_SHOWN]
    ]
    lines += [f"  ... and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else []
    lines += list(_running_lines(folder))
    lines += [f"  {damage}" for damage in [store.damage(study.damaged)] if damage]
    gaps = Counter((cell["method"], cell["dataset"]) for cell in missing)
    lines += [f"  missing: {method} on {dataset}, {count} splits" for (method, dataset), count in gaps.items()]
    return lines, not bad and not missing


def _running_lines(folder: Path) -> Iterator[str]:
    from ep_bench.runner.claims import running

    for run in running(folder):
        yield f"  running: process {run.pid} on {run.host} since {run.started}, {len(run.cells)} cells taken"


def check_folders(folders: Sequence[Path], against: Sequence[str], out: Path | None) -> tuple[list[str], bool]:
    """Write check.csv and return its lines for the terminal, and whether a published number is lost."""
    import pandas as pd

    from ep_bench import published

    frames = []
    for folder in folders:
        study = store.read_study(folder)
        frames.append(published.check(pd.DataFrame(study.rows), study.lock, against))
    frame = pd.concat(frames, ignore_index=True).drop_duplicates() if len(frames) > 1 else frames[0]
    target = out or folders[0] / "check.csv"
    path = target if target.suffix == ".csv" else target / "check.csv"
    store.write_atomically(path, frame.to_csv(index=False, lineterminator="\n"))
    if frame.empty:
        return [f"no published number applies to these results -> {path}"], False
    lost = published.regressions(frame)
    lines = columns([_CHECK_HEAD, *(_check_row(row) for row in frame.to_dict("records"))])
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(frame["verdict"]).most_common())
    lines.append(f"{len(frame)} published numbers: {verdicts}; {len(lost)} lost -> {path}")
    return lines, len(lost) > 0


_CHECK_HEAD = ("source", "method", "data set", "metric", "published", "ours", "splits", "z", "verdict", "reason")


def _check_row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    from ep_bench import published

    z = "" if row["z"] != row["z"] else f"{row['z']:+.1f}"
    reason = textwrap.shorten(str(row["reason"] or ""), 60, placeholder="...")
    return (
        f"{row['source']} {row['table']}", row["method"], row["dataset"], row["metric"],
        published.printed(row["published_mean"], row["published_stderr"]),
        published.measured(row["mean"], row["stderr"]),
        str(row["n_splits"]), z, row["verdict"], reason,
    )  # fmt: skip


def dataset_lines() -> list[str]:
    """Return one line a data set."""
    from ep_bench import data

    rows = [("name", "rows", "inputs", "classes", "splits", "where", "")]
    for name in data.names():
        card = data.card(name)
        where = data.location(card)
        classes = str(len(card.classes) or "")
        rows.append((name, str(card.n), str(card.d), classes, str(card.n_splits), where, card.title))
    # Not loaded, so that a broken plugin or a slow one breaks or slows its own use alone.
    rows += [(name, "", "", "", "", "plugin", what) for name, what in _dataset_plugins()]
    return columns(rows)


def _plugin_rows(group: str, built_in: Collection[str]) -> list[tuple[str, str]]:
    """Return the plugins of a group, each with its package, or with why its name cannot be used; none is loaded."""
    clashes = plugins.clashes(group, built_in)
    sound = {p.name: f"of {p}: {p.reference}" for p in plugins.found(group) if p.name not in clashes}
    return sorted({**sound, **{name: f"not usable: {problem}" for name, problem in clashes.items()}}.items())


def _dataset_plugins() -> list[tuple[str, str]]:
    from ep_bench.data.cards import card_names

    return _plugin_rows(plugins.DATASETS, card_names())


def method_list_lines() -> list[str]:
    """Return one line a method: its title, or the package that plugs it in."""
    from ep_bench import methods

    rows = [(name, methods.get(name).title) for name in methods.REGISTRY]
    return columns([*rows, *_plugin_rows(plugins.METHODS, methods.REGISTRY)])


def card_lines(name: str) -> list[str]:
    """Return a data set's card, one field a line."""
    from ep_bench import data

    fields = data.card(name).model_dump(mode="json")
    return [line for key, value in fields.items() if value not in (None, [], {}, "") for line in _field(key, value)]


def method_lines(name: str) -> list[str]:
    """Return a method's options, with defaults, what they take and sources; of the registry, a plugin or a target."""
    from ep_bench import adapters, methods
    from ep_bench.estimator import COMMON_OPTIONS
    from ep_bench.options import Option, table, written
    from ep_bench.spec import read_space

    if adapters.is_target(name):
        return _target_lines(name)
    method, plugin = methods.get(name), methods.plugin(name)
    lines = [
        f"{name}: {method.title}",
        f"  {method.paper}",
        f"  version {method.version}; {', '.join(method.tasks)}",
        *([f"  of {plugin}: {plugin.reference}"] if plugin else []),
        "",
    ]
    common = [Option(key, written(value), "true or false", _COMMON[key]) for key, value in COMMON_OPTIONS.items()]
    lines += _option_lines([*table(method.config), *common])
    lines += ["", *_field("tune searches", _space(read_space(method.space, lambda *_: [])[0]))] if method.space else []
    doc = inspect.getdoc(inspect.getmodule(method.fit)) or ""
    return [*lines, "", *_prose(doc)]


def _option_lines(options: Sequence[Option]) -> list[str]:
    """Return each option with its default, what it takes beside it, and below them what it is."""
    heads = [f"{option.name}: {option.default}".rstrip() for option in options]
    column = max(map(len, heads)) + 2
    lines = []
    for head, option in zip(heads, options, strict=True):
        takes = textwrap.wrap(option.takes, max(width() - column, _NARROWEST)) or [""]
        lines += [f"{lead:{column}}{part}".rstrip() for lead, part in zip_longest([head], takes, fillvalue="")]
        lines += _paragraph(option.description, "    ")
    return lines


def _target_lines(use: str) -> list[str]:
    """Return a class's package or version, its parameters with their defaults, and its documentation."""
    from ep_bench import adapters, methods

    target = adapters.resolve(use, Path.cwd())
    plugin = None if ":" in use else methods.plugin(use)
    origin = f"the class {plugin.reference} of {plugin}" if plugin else "a class from outside"
    lines = [f"{use}: {origin}", f"  version {adapters.version(use, Path.cwd())}", ""]
    known = adapters.parameters(target)
    for key, default in (known or {}).items():
        lines.append(key if default is inspect.Parameter.empty else f"{key}: {default}")
    lines += ["any keyword"] if known is None else []
    return [*lines, f"{adapters.STANDARDIZE}: False", "", *(inspect.getdoc(target) or "").splitlines()]


def doctor_lines() -> list[str]:
    """Return versions, BLAS and threads, cores, data and folders of this machine."""
    import os

    import numba
    import numpy as np  # noqa: F401 its BLAS must be loaded to be seen
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from ep_bench import data
    from ep_bench.results.provenance import environment

    found = environment()
    try:
        here = [name for name in data.names() if data.location(data.card(name)) != "not fetched"]
    except UserError as error:  # EP_BENCH_DATA names no folder: the rest is still worth knowing
        here = [str(error)]
    absent = [name for name in data.names() if name not in here]
    blas = [f"{p['internal_api']} {p.get('version') or ''}, {p['num_threads']} threads" for p in threadpool_info()]
    rows = [
        ("python", found["python"]),
        *sorted(found["packages"].items()),
        ("revision", found["revision"] or "not a checkout"),
        ("machine", ", ".join(str(value) for value in found["machine"].values()) + " cores"),
        ("cores usable", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())),
        ("BLAS", "; ".join(blas)),
        ("numba threads", f"{numba.config.NUMBA_NUM_THREADS}, one in a cell"),
        ("EP_BENCH_DATA", os.environ.get("EP_BENCH_DATA", "not set")),
        ("data cache", str(data.cache_folder())),
        ("data here", ", ".join(here)),
        ("data absent", ", ".join(absent) or "none"),
        *_plugin_facts(),
    ]
    return columns(rows)


def _plugin_facts() -> list[tuple[str, str]]:
    """Return one line a plugin, broken ones with what is wrong; without any, that there are none."""
    from ep_bench import methods

    facts = []
    for rows in (_plugin_rows(plugins.METHODS, methods.REGISTRY), _dataset_plugins()):
        facts += [(f"plugin {name}", what) for name, what in rows]
    return facts or [("plugins", "none")]


def _field(key: str, value: Any) -> list[str]:
    if isinstance(value, list) and max(map(len, map(str, value))) > _SHORT:
        return [f"{key}:", *(line for item in value for line in _paragraph(str(item), "  - "))]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(key) + len(text) < width():
        return [f"{key}: {text}" if text else key]
    return [f"{key}:", *_paragraph(text, "    ")]


def _prose(doc: str) -> Iterator[str]:
    """Yield the lines of a docstring; paragraphs too wide for the terminal anew, formulas and tables as they stand."""
    across = shutil.get_terminal_size((_UNKNOWN, 24)).columns
    for part in re.split(r"\n(?=\n)|(?<!\n)\n(?=Deviation:)", doc):
        text = part.lstrip("\n")
        yield from [""] * (len(part) - len(text))
        plain = not re.search(r"^ |\S  ", text, re.MULTILINE)
        wide = max(map(len, text.splitlines()), default=0) > across
        yield from textwrap.wrap(text, across, break_on_hyphens=False) if plain and wide else text.splitlines()


def _paragraph(text: str, lead: str) -> list[str]:
    return textwrap.wrap(
        text, width(), initial_indent=lead, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
