"""Downloads have a size limit, and their scheme is https unless the user's own mirror has http."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ep_bench.data import download as module
from ep_bench.data.download import TransferError, download


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        self.send_response(200)
        if self.path == "/long":
            self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"x" * 1000)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("path", ["/long", "/endless"])
def test_a_file_larger_than_expected_is_refused(base: str, path: str, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"at most 999|more than the 999 bytes"):
        download(base + path, tmp_path / "part", 5.0, limit=999, insecure=True)
    assert (tmp_path / "part").stat().st_size < 999 if path == "/endless" else not (tmp_path / "part").exists()


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,x"])
def test_a_redirect_to_another_scheme_is_refused(base: str, target: str, tmp_path: Path) -> None:
    with pytest.raises(TransferError):
        download(f"{base}/to/{target}", tmp_path / "part", 5.0, insecure=True)
    assert not (tmp_path / "part").exists()


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1/x", "file:///etc/passwd", "https://", "http://[", "not-an-address", ""]
)
def test_addresses_need_https(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCHEMES", frozenset({"https"}))
    with pytest.raises(TransferError, match="not a valid address"):
        download(address, tmp_path / "part", 5.0)
