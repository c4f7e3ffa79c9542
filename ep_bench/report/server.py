"""Reports at a local address. A page reloads itself when cells of its study have finished.

Nothing is written. A page shows what can be computed in a second or two: leaderboards, single cells, published numbers
and missing cells, without figures. Only names of studies below the folder are addresses; no other file is served.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

from ep_bench.errors import UserError
from ep_bench.report import merge, page_data, render_html
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import further_scores, leaderboard, missing_cells, notes, published_numbers, tuned_options
from ep_bench.results import store

HOST = "127.0.0.1"
ALL = "all"  # address of the merged page
SECONDS = 3  # between two questions of a page whether cells have finished
SECTIONS = (
    leaderboard.sections,
    notes.sections,
    missing_cells.sections,
    further_scores.sections,
    published_numbers.sections,
    tuned_options.sections,
)
_RELOAD = """<script>
setInterval(async () => {
  const answer = await fetch("/state/NAME").catch(() => null);
  if (answer?.ok && (await answer.text()) !== "STATE") location.reload();
}, SECONDS000);
</script></body>"""


def studies_below(folder: Path) -> dict[str, Path]:
    """Return the results folders in a folder, or the folder itself if it is one, by name."""
    found = [folder, *sorted(path for path in folder.glob("*") if path.is_dir())]
    return {path.resolve().name: path for path in found if (path / store.LOCK).is_file()}


def state_of(folders: Mapping[str, Path]) -> str:
    """Return a text that changes when cells of any of the studies have finished or a study has changed."""
    parts = []
    for folder in folders.values():
        files = [folder / store.LOCK, folder / store.RESULTS]
        times = [path.stat().st_mtime_ns for path in files if path.is_file()]
        cells = sum(1 for _ in (folder / "cells").glob("*.json")) if (folder / "cells").is_dir() else 0
        parts.append(f"{max(times, default=0):x}-{cells}")
    return ".".join(parts)


def study_page(folders: Mapping[str, Path]) -> str:
    """Return the page of studies, from all cells that have finished by now. Raises UserError for wrong results."""
    report = ReportContext(
        merge.merge_studies([store.read_intact(path) for path in folders.values()]), all_figures=False
    )
    shown = [section for function in SECTIONS for section in function(report)]
    return render_html.page(report.title, report.summary, shown, page_data.page_data(report))


def index_page(folder: Path, folders: Mapping[str, Path]) -> str:
    """Return the list of studies with the number of their finished cells."""
    rows = []
    for name, path in folders.items():
        lock = store.read_lock(path) or {}
        planned, rows_by_cell = [cell["cell"] for cell in store.lock_cells(lock)], store.finished_rows(path).rows
        done = sum(rows_by_cell.get(cell, {}).get("status") == "ok" for cell in planned)
        what = f"{done} of {len(planned)} cells finished" if planned else "experiment"
        rows.append(f'<li><a href="/{quote(name)}">{html.escape(name)}</a>: {what}</li>')
    merged = f'<p><a href="/{ALL}">All studies on one page</a></p>' if len(folders) > 1 else ""
    title = f"Results in {html.escape(str(folder))}"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body><h1>{title}</h1>{merged}<ul>{''.join(rows)}</ul></body></html>"
    )


class ReportServer(ThreadingHTTPServer):
    """A server of the studies below a folder, for this machine only."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0, log: Callable[[str], None] = lambda _: None) -> None:
        if not folder.is_dir():
            raise UserError("no such folder", where=str(folder))
        if not studies_below(folder):
            raise UserError(f"no results: no folder with {store.LOCK} here", where=str(folder))
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise UserError(f"cannot listen: {error.strerror}", where="--port", found=str(port)) from error
        self.folder, self.log = folder, log
        self._pages: dict[str, tuple[str, str]] = {}  # state and page by address
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """Return the address of the list of studies."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def chosen(self, name: str) -> dict[str, Path]:
        """Return the studies of an address, empty if there is none of this name."""
        folders = studies_below(self.folder)
        if name == ALL and len(folders) > 1:
            return {key: path for key, path in folders.items() if (path / store.RESULTS).is_file()} or folders
        return {name: folders[name]} if name in folders else {}

    def page(self, name: str) -> str:
        """Return a page, computed again only if cells have finished since."""
        folders = self.chosen(name)
        with self._lock:
            state = state_of(folders)
            if self._pages.get(name, ("", ""))[0] != state:
                self.log(f"{name}: page computed")
                self._pages[name] = state, study_page(folders)
            text = self._pages[name][1]
        reload = _RELOAD.replace("STATE", state).replace("SECONDS", str(SECONDS)).replace("NAME", quote(name))
        return text.replace("</body>", reload)


class _Handler(BaseHTTPRequestHandler):
    """Answers requests for the list, for pages and for their states."""

    server: ReportServer

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        if host not in {HOST, "localhost"}:  # a page of another site may have pointed its name to this machine
            self._answer(HTTPStatus.FORBIDDEN, "only for this machine")
            return
        path = unquote(self.path.partition("?")[0]).strip("/")
        kind, _, name = path.rpartition("/")
        try:
            if not path:
                self._answer(HTTPStatus.OK, index_page(self.server.folder, studies_below(self.server.folder)))
            elif kind not in {"", "state"} or not self.server.chosen(name):
                self._answer(HTTPStatus.NOT_FOUND, "no study of this name")
            elif kind:
                self._answer(HTTPStatus.OK, state_of(self.server.chosen(name)))
            else:
                self._answer(HTTPStatus.OK, self.server.page(name))
        except UserError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"<pre>{html.escape(str(error))}</pre>")

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing for each request."""
