"""Download from a local server: only complete files with the right checksum are kept."""

from __future__ import annotations

import hashlib
import http.server
import io
import lzma
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ep_bench import data
from ep_bench.data.cards import Card
from ep_bench.errors import UserError

CONTENT = b"1 2 3\n" * 50_000
PATH = "uci/toy/data.txt"
DEAD = "http://127.0.0.1:9"  # the port "discard", where no server listens


class Server(http.server.ThreadingHTTPServer):
    """Answers every request with one content, of which it may send a part only, or with an error status."""

    daemon_threads = True

    def __init__(self, content: bytes, sent: int | None = None, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.sent, self.status = content, sent, status
        self.paths: list[str] = []
        self.base = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content[: self.server.sent])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server; all are stopped at the end."""
    servers: list[Server] = []

    def start(content: bytes = CONTENT, **options: int) -> Server:
        servers.append(Server(content, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.delenv("EP_BENCH_DATA", raising=False)
    monkeypatch.delenv("EP_BENCH_MIRROR", raising=False)
    monkeypatch.setattr("ep_bench.data.locations.cache_folder", lambda: folder)
    return folder


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Callable[..., Card]:
    """Return a function that makes a card of given addresses the only card there is."""

    def make(*bases: str, **changes: object) -> Card:
        fields = {
            "name": "toy", "title": "toy", "n": 30, "d": 2, "target": "t", "path": PATH, "source": "-", "licence": "-",
            "citation": "-", "sha256": hashlib.sha256(CONTENT).hexdigest(),
            "urls": tuple(f"{base}/toy" for base in bases),
        }  # fmt: skip
        card = Card(**fields | changes)
        for module in ("fetching", "verification"):
            monkeypatch.setattr(f"ep_bench.data.{module}.card", lambda _: card)
        return card

    return make


def fetch() -> list[data.Fetched]:
    return data.fetch(["toy"], progress=False)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_is_downloaded_once(serve, toy, cache) -> None:
    server = serve()
    card = toy(server.base)
    assert data.verify(["toy"])[0].status == "missing"
    assert fetch() == [("toy", "fetched", cache / PATH)]
    assert (cache / PATH).read_bytes() == CONTENT
    assert files(cache) == [PATH]
    assert data.find_file(card) == cache / PATH
    assert data.verify(["toy"])[0].status == "ok"
    assert fetch() == [("toy", "present", cache / PATH)]
    assert server.paths == ["/toy"]


def test_a_changed_file_is_reported_and_fetched_again(serve, toy, cache) -> None:
    toy(serve().base)
    (cache / PATH).parent.mkdir(parents=True)
    (cache / PATH).write_bytes(CONTENT[:-1])
    assert data.verify(["toy"])[0].status == "changed"
    assert fetch()[0].status == "fetched"
    assert (cache / PATH).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"content": CONTENT[:-1]}, "does not match the known hash"),
        ({"sent": 1000}, "Connection broken|IncompleteRead"),
        (None, "refused"),
    ],
    ids=["changed", "interrupted", "no server"],
)
def test_a_failed_download_leaves_nothing_and_the_next_address_is_tried(serve, toy, cache, bad, reason: str) -> None:
    first = DEAD if bad is None else serve(**bad).base
    toy(first)
    with pytest.raises(UserError, match=reason) as caught:
        fetch()
    for piece in ("toy: could not be downloaded", first, PATH, "EP_BENCH_DATA"):
        assert piece in str(caught.value)
    assert files(cache) == []
    toy(first, serve().base)
    assert fetch()[0].status == "fetched"
    assert (cache / PATH).read_bytes() == CONTENT


def test_a_mirror_comes_before_the_cards_addresses(serve, toy, monkeypatch) -> None:
    named, own = serve(), serve()
    toy(own.base)
    monkeypatch.setenv("EP_BENCH_MIRROR", f"{named.base}/deep/")
    fetch()
    assert (named.paths, own.paths) == ([f"/deep/{PATH}"], [])


def test_a_changed_file_in_the_users_folder_is_not_hidden_by_a_download(toy, monkeypatch, tmp_path) -> None:
    toy(DEAD)
    file = tmp_path / "mine" / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1 2 3\n")
    monkeypatch.setenv("EP_BENCH_DATA", str(tmp_path / "mine"))
    with pytest.raises(UserError, match="unset EP_BENCH_DATA"):
        fetch()
    assert file.read_bytes() == b"1 2 3\n"
    file.write_bytes(CONTENT)
    assert fetch() == [("toy", "present", file)]


def zipped(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.txt", text)
    return buffer.getvalue()


def test_a_card_without_a_checksum_has_any_file_but_no_damaged_archive(serve, toy, cache) -> None:
    path = "uci/toy/data.txt.zip"
    server = serve(b"<html>not found</html>")
    toy(server.base, sha256=None, path=path)
    with pytest.raises(UserError, match="the zip archive is damaged"):
        fetch()
    assert files(cache) == []
    server.content = zipped("1 2 3\n")
    assert fetch()[0].status == "fetched"
    (found,) = data.verify(["toy"])
    assert found.status == "ok"
    assert hashlib.sha256(server.content).hexdigest() in found.detail


def test_one_failure_does_not_keep_the_others_from_coming(serve, monkeypatch, toy, cache) -> None:
    good = toy(serve().base)
    bad = good.model_copy(update={"name": "bad", "path": "uci/bad/data.txt", "urls": (DEAD,)})
    monkeypatch.setattr("ep_bench.data.fetching.card", {"bad": bad, "toy": good}.__getitem__)
    with pytest.raises(UserError, match="bad: could not be downloaded") as caught:
        data.fetch(["bad", "toy"], progress=False)
    assert "toy:" not in str(caught.value)
    assert files(cache) == [PATH]


def test_embedded_sets_need_no_fetching(cache) -> None:
    assert data.fetch(["cubic", "step"]) == [("cubic", "embedded", None), ("step", "embedded", None)]
    assert not cache.exists()
    with pytest.raises(UserError, match="did you mean 'yacht'"):
        data.fetch(["yaht"])


def test_shipped_files_are_present_unless_damaged(serve, cache, monkeypatch, tmp_path) -> None:
    assert [one.status for one in data.fetch(["boston", "cep"], progress=False)] == ["present"] * 2
    shipped = data.find_file(data.card("boston"))
    mirror = serve(lzma.decompress(shipped.read_bytes()))
    fetched = [("boston", "fetched", cache / "uci/boston/data.txt")]
    (tmp_path / "shipped" / "boston").mkdir(parents=True)
    (tmp_path / "shipped" / "boston" / shipped.name).write_bytes(shipped.read_bytes()[:-100])
    monkeypatch.setattr("ep_bench.data.locations.shipped_folder", lambda _: tmp_path / "shipped")
    monkeypatch.setenv("EP_BENCH_MIRROR", mirror.base)
    assert data.fetch(["boston"], progress=False) == fetched
    assert data.load_dataset("boston").checksum == data.card("boston").sha256
