"""Fixtures shared by all tests, and the grouping of tests for several processes."""

from __future__ import annotations

import io
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

METHODS = Path(__file__).parents[1] / "ep_bench" / "methods"
SHARED = ("models", "covariances")  # packages with the kernels that several methods use

DURATIONS = "ep_bench/durations"  # key in pytest's cache
FAST = 0.1  # seconds that a test of `--fast` may take


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option that omits the tests which took long on this machine."""
    parser.addoption("--fast", action="store_true", help=f"omit tests that last took more than {FAST} seconds here")


def pytest_configure(config: pytest.Config) -> None:
    """Use the shipped data alone; let `--dist loadgroup` start groups in the order of the tests, not by their sizes.

    Commands print as to a file, of any width: pytest-xdist sets ``COLUMNS``.
    """
    for variable in ("EP_BENCH_DATA", "EP_BENCH_MIRROR", "COLUMNS"):
        os.environ.pop(variable, None)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a background job: processes of the tests inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.loadscopereorder = False
    if not hasattr(config, "workerinput"):  # the process that receives the reports
        config.pluginmanager.register(DurationRecorder(config))


class DurationRecorder:
    """Keeps the seconds that each test takes, for ``--fast``."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._seconds = config, Counter[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[without_group(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        if getattr(self._config, "cache", None) is not None:
            known = self._config.cache.get(DURATIONS, {})
            self._config.cache.set(DURATIONS, known | {name: round(s, 2) for name, s in self._seconds.items()})


def without_group(nodeid: str) -> str:
    """Return the name of a test without the group that xdist adds to it."""
    return nodeid.partition("@")[0]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test the group of its kernels, or of its file, unless it names a group itself."""
    if config.getoption("--fast") and getattr(config, "cache", None) is not None:
        known = config.cache.get(DURATIONS, {})
        slow = {item for item in items if known.get(without_group(item.nodeid), 0.0) > FAST}
        config.hook.pytest_deselected(items=list(slow))
        items[:] = [item for item in items if item not in slow]
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(kernels_of(item) or item.nodeid.partition("::")[0]))
    sizes = Counter(group_of(item) for item in items if "/" not in group_of(item))  # groups of kernels are first
    items.sort(key=lambda item: -sizes[group_of(item)])


def group_of(item: pytest.Item) -> str:
    """Return the name of the group that a test belongs to."""
    return str(item.get_closest_marker("xdist_group").args[0])


@cache
def kernels() -> dict[str, str]:
    """Return the group of each method, the longest names first: the shared package that it imports, or its own name.

    Tests of a group run in one process, so that no kernel is compiled twice.
    """
    found = {}
    for path in METHODS.iterdir():
        text = "".join(file.read_text("utf-8") for file in ([path] if path.suffix else path.rglob("*.py")))
        found[path.stem] = next((package for package in SHARED if f"ep_bench.{package}" in text), path.stem)
    return {name: found[name] for name in sorted(found, key=len, reverse=True) if not name.startswith("_")}


def kernels_of(item: pytest.Item) -> str | None:
    """Return the group of the method that a test is about, by the name of its file or folder, or by a parameter."""
    folder, stem = item.path.parent.name, item.path.stem.removeprefix("test_")
    if folder in SHARED:
        return folder
    for text in (stem, folder):
        for name, group in kernels().items():
            if f"{text}_".startswith(f"{name}_"):
                return group
    values = item.callspec.params.values() if hasattr(item, "callspec") and folder in {"methods", "conformance"} else ()
    names = [getattr(getattr(value, "method", None), "name", value) for value in values]
    return next((kernels()[name] for name in names if isinstance(name, str) and name in kernels()), None)


@pytest.fixture
def in_process() -> Iterator[None]:
    """Run the cells of studies in this process: for tests in which the worker process is not what is tested."""
    from tests.commands import cells_in_this_process

    with cells_in_this_process():
        yield


@pytest.fixture
def undrawn_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose figures and write empty ones in their place: for tests of the text of a report."""

    def save(self: Figure, target: object, **_: object) -> None:
        if isinstance(target, io.StringIO):
            target.write('<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="72pt"/>')
        else:
            Path(str(target)).write_bytes(b"")

    monkeypatch.setattr(Figure, "savefig", save)


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start deep Gaussian processes from a short search: for tests of what comes after it, at a tenth of the time."""
    from ep_bench.methods.dgp_ep import fitc_start

    monkeypatch.setattr(fitc_start, "SEARCH_STEPS", 10)


@pytest.fixture(scope="session")
def no_overlap() -> Callable[[Figure], None]:
    """A check that no two texts of a figure overlap and that none is cut off at an edge."""

    def check(figure: Figure) -> None:
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw_without_rendering()
        axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
        ticks = [(tick, sorted(axis.get_view_interval())) for axis in axes for tick in axis.get_major_ticks()]
        out_of_sight = {tick.label1 for tick, (low, high) in ticks if not low <= tick.get_loc() <= high}
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        texts = [text for text in texts if text not in out_of_sight]
        boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
        assert boxes
        for i, (first, box) in enumerate(boxes):
            assert box.x0 >= 0 <= box.y0, first
            assert box.x1 <= figure.bbox.width, first
            assert box.y1 <= figure.bbox.height, first
            for second, other in boxes[i + 1 :]:
                assert not box.overlaps(other), (first, second)

    return check
