"""A local server with configurable failures."""

from __future__ import annotations

import http.server
import threading

import pytest


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the k-th request with the k-th behaviour of the server; the last one is repeated."""

    def do_GET(self) -> None:
        server = self.server
        wanted = self.headers.get("Range")
        server.requests.append((self.path, wanted))
        behaviour = server.behaviours.pop(0) if len(server.behaviours) > 1 else server.behaviours[0]
        content = server.content
        if isinstance(behaviour, int):
            self.send_error(behaviour)
            return
        if behaviour == "silent":
            self.server.release.wait(20.0)
            return
        if behaviour == "truncated":
            content = content[: len(content) // 2]
        elif behaviour == "wrong byte":
            middle = len(content) // 2
            content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        self.answer(behaviour, content, wanted)

    def answer(self, behaviour: str, content: bytes, wanted: str | None) -> None:
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and behaviour != "no ranges" else 0
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            shown = start + 1 if behaviour == "another range" else start
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        rest = content[start:]
        if behaviour != "no length":
            self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if behaviour == "cut":
            rest = rest[: min(100_000, len(rest) - 1)]
        if behaviour == "stall":
            self.wfile.write(rest[:100_000])
            self.wfile.flush()
            self.server.stalled.set()
            self.server.release.wait(20.0)
            return
        self.wfile.write(rest)

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, content: bytes, *behaviours: str | int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.behaviours = content, list(behaviours)
        self.requests: list[tuple[str, str | None]] = []
        self.stalled, self.release = threading.Event(), threading.Event()
        self.base = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def ranges(self) -> list[str | None]:
        return [wanted for _, wanted in self.requests]

    def handle_error(self, *_: object) -> None:
        """Ignore closed connections."""


@pytest.fixture
def start_server():
    """Return a function that starts a server of one content and given behaviours; all are stopped at the end."""
    servers: list[Server] = []

    def start(content: bytes, *behaviours: str | int) -> Server:
        servers.append(Server(content, *behaviours))
        return servers[-1]

    yield start
    for server in servers:
        server.release.set()
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _the_local_server_counts_as_secure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ep_bench.data.download.SCHEMES", frozenset({"http", "https"}))
