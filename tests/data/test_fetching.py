"""Download from a local server with configurable failures: only complete and correct files are kept."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import lzma
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data import RetryLimits
from ep_bench.data.cards import Card
from ep_bench.data.download import TransferError, download
from ep_bench.errors import UserError

CONTENT = np.random.RandomState(0).bytes(300_000)
LIMITS = RetryLimits(tries=2, timeout=5.0)
PATH = "uci/toy/data.txt"


@pytest.fixture
def serve(start_server):
    return lambda *behaviours, content=CONTENT: start_server(content, *behaviours)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Let pooch repeat downloads without a pause."""
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda _seconds: None))


@pytest.fixture
def cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.delenv("EP_BENCH_DATA", raising=False)
    monkeypatch.delenv("EP_BENCH_MIRROR", raising=False)
    monkeypatch.setattr("ep_bench.data.locations.cache_folder", lambda: folder)
    return folder


@pytest.fixture
def toy(monkeypatch, cache):
    """Return a function that makes a card of given addresses the only card there is."""

    def make(*bases: str, content: bytes = CONTENT, **changes: object) -> Card:
        fields = {
            "name": "toy", "title": "toy", "n": 30, "d": 2, "target": "t", "path": PATH, "source": "-", "licence": "-",
            "citation": "-", "sha256": hashlib.sha256(content).hexdigest(),
            "urls": tuple(f"{base}/toy" for base in bases),
        }  # fmt: skip
        card = Card(**fields | changes)
        monkeypatch.setattr("ep_bench.data.fetching.card", lambda _: card)
        return card

    return make


def dead_address() -> str:
    """Return the address of a server that no longer listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def fetch(**options: object) -> list[data.Fetched]:
    return data.fetch(["toy"], progress=False, limits=LIMITS, **options)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_sound_server(serve, toy, cache) -> None:
    server = serve("ok")
    card = toy(server.base)
    assert data.verify(["toy"])[0].status == "missing"
    assert fetch() == [("toy", "fetched", cache / PATH)]
    assert (cache / PATH).read_bytes() == CONTENT
    assert files(cache) == [PATH]
    assert data.find_file(card) == cache / PATH
    assert data.verify(["toy"])[0].status == "ok"
    assert fetch() == [("toy", "present", cache / PATH)]
    assert len(server.requests) == 1


def test_a_changed_file_is_reported_and_fetched_again(serve, toy, cache) -> None:
    toy(serve("ok").base)
    (cache / PATH).parent.mkdir(parents=True)
    (cache / PATH).write_bytes(CONTENT[:-1])
    assert data.verify(["toy"])[0].status == "changed"
    assert fetch()[0].status == "fetched"
    assert (cache / PATH).read_bytes() == CONTENT


@pytest.mark.parametrize("behaviour", ["truncated", "wrong byte"])
def test_a_wrong_file_is_not_kept(serve, toy, cache, behaviour: str) -> None:
    toy(serve(behaviour).base)
    with pytest.raises(UserError, match="wrong checksum"):
        fetch()
    assert files(cache) == []


@pytest.mark.parametrize("behaviour", ["truncated", "wrong byte", 404, 503, "another range"])
def test_a_bad_mirror_is_passed_over(serve, toy, cache, behaviour: str | int) -> None:
    bad, good = serve(behaviour), serve("ok")
    toy(bad.base, good.base)
    assert fetch()[0].status == "fetched"
    assert (cache / PATH).read_bytes() == CONTENT
    assert bad.requests


def test_a_dead_server_then_a_living_mirror(serve, toy, cache) -> None:
    toy(dead_address(), serve("ok").base)
    assert fetch()[0].status == "fetched"
    assert (cache / PATH).read_bytes() == CONTENT


def test_no_server_at_all(toy, cache) -> None:
    first, second = dead_address(), dead_address()
    toy(first, second)
    with pytest.raises(UserError) as caught:
        fetch()
    for piece in ("toy: could not be downloaded", first, second, "refused", PATH, "EP_BENCH_DATA"):
        assert piece in str(caught.value)
    assert files(cache) == []


def test_a_name_that_no_server_has(toy) -> None:
    toy("http://no-such-host.invalid")
    with pytest.raises(UserError, match=r"no-such-host\.invalid"):
        fetch()


def test_a_refusal_is_final_and_an_overload_is_not(serve, toy) -> None:
    refusing, busy = serve(404), serve(503, "ok")
    toy(refusing.base, busy.base)
    assert fetch()[0].status == "fetched"
    assert (len(refusing.requests), len(busy.requests)) == (1, 2)


def test_an_interrupted_download_is_resumed(serve, toy, cache) -> None:
    server = serve("cut", "cut", "ok")
    toy(server.base)
    fetch()
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=100000-", "bytes=200000-"]


def test_a_later_call_resumes_the_download(serve, toy, cache) -> None:
    server = serve("cut", 503, 503, "ok")
    toy(server.base)
    with pytest.raises(UserError, match="503"):
        fetch()
    (left,) = files(cache)
    assert left.endswith(".part")
    assert not (cache / PATH).exists()
    fetch()
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=100000-", "bytes=100000-", "bytes=100000-"]
    assert files(cache) == [PATH]


def test_a_server_without_ranges_sends_all_again(serve, toy, cache) -> None:
    server = serve("cut", "no ranges")
    toy(server.base)
    fetch()
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=100000-"]


def test_a_server_without_lengths(serve, toy, cache) -> None:
    toy(serve("no length").base)
    fetch()
    assert (cache / PATH).read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 1)])
def test_a_wrong_partial_download_is_discarded(serve, toy, cache, left: bytes) -> None:
    server = serve("cut", 503, 503, "ok")
    toy(server.base)
    with pytest.raises(UserError):
        fetch()
    part = cache / files(cache)[0]
    part.write_bytes(left)
    fetch()
    assert (cache / PATH).read_bytes() == CONTENT
    assert files(cache) == [PATH]


def test_a_whole_part_needs_no_more_bytes(serve, tmp_path) -> None:
    server = serve("ok")
    part = tmp_path / "part"
    part.write_bytes(CONTENT)
    download(f"{server.base}/toy", part, LIMITS.timeout)
    assert part.read_bytes() == CONTENT
    assert server.ranges() == [f"bytes={len(CONTENT)}-"]


def test_a_stalled_connection_is_replaced(serve, toy, cache) -> None:
    server = serve("stall", "ok")
    toy(server.base)
    data.fetch(["toy"], progress=False, limits=RetryLimits(tries=1, timeout=0.2))
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=100000-"]


def test_a_silent_server_times_out(serve, toy) -> None:
    toy(serve("silent").base)
    with pytest.raises(UserError, match="timed out"):
        data.fetch(["toy"], progress=False, limits=RetryLimits(tries=1, timeout=0.2))


def test_what_is_no_address(tmp_path) -> None:
    with pytest.raises(TransferError, match="not a valid address"):
        download("not-an-address", tmp_path / "part", LIMITS.timeout)


def test_mirrors_come_before_the_cards_addresses(serve, toy, cache, monkeypatch) -> None:
    given, named, own = serve(404), serve("ok"), serve("ok")
    toy(own.base)
    monkeypatch.setenv("EP_BENCH_MIRROR", f"{named.base}/deep/")
    fetch(base_url=given.base)
    assert given.requests == [(f"/{PATH}", None)]
    assert named.requests == [(f"/deep/{PATH}", None)]
    assert own.requests == []


def test_a_changed_file_in_the_users_folder_is_not_hidden_by_a_download(toy, monkeypatch, tmp_path) -> None:
    toy(dead_address())
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


def test_the_first_fetch_without_a_checksum_records_it(serve, toy, cache) -> None:
    path = "uci/toy/data.txt.zip"
    first, second = zipped("1 2 3\n"), zipped("1 2 4\n")
    server = serve("ok", content=first)
    toy(server.base, sha256=None, path=path)
    assert fetch()[0].status == "fetched"
    assert data.verify(["toy"])[0].status == "ok"
    (cache / path).unlink()
    server.content = second
    with pytest.raises(UserError, match="wrong checksum"):
        fetch()
    server.content = first
    assert fetch()[0].status == "fetched"
    (cache / path).write_bytes(second)
    assert data.verify(["toy"])[0].status == "changed"


@pytest.mark.parametrize("torn", [zipped("1 2 3\n" * 50)[:-30], b"<html>not found</html>"], ids=["cut", "page"])
def test_the_checksum_of_a_damaged_archive_is_not_recorded(serve, toy, cache, torn: bytes) -> None:
    toy(serve("ok", content=torn).base, sha256=None, path="uci/toy/data.txt.zip")
    with pytest.raises(UserError, match="the zip archive is damaged"):
        fetch()
    assert files(cache) == []


def test_a_file_without_any_checksum_is_unpinned(toy, cache) -> None:
    toy(dead_address(), sha256=None)
    (cache / PATH).parent.mkdir(parents=True)
    (cache / PATH).write_bytes(CONTENT)
    found = data.verify(["toy"])[0]
    assert found.status == "unpinned"
    assert hashlib.sha256(CONTENT).hexdigest() in found.detail


def test_one_failure_does_not_keep_the_others_from_coming(serve, monkeypatch, toy, cache) -> None:
    good = toy(serve("ok").base)
    bad = good.model_copy(update={"name": "bad", "path": "uci/bad/data.txt", "urls": (dead_address(),)})
    monkeypatch.setattr("ep_bench.data.fetching.card", {"bad": bad, "toy": good}.__getitem__)
    with pytest.raises(UserError, match="bad: could not be downloaded") as caught:
        data.fetch(["bad", "toy"], progress=False, limits=LIMITS)
    assert "toy:" not in str(caught.value)
    assert files(cache) == [PATH]


def test_an_unreachable_server_is_tried_once(serve, monkeypatch, toy, cache) -> None:
    dead = dead_address()
    one = toy(dead)
    other = one.model_copy(update={"name": "other", "path": "other.txt"})
    living = one.model_copy(
        update={"name": "living", "path": "living.txt", "urls": (f"{dead}/x", f"{serve('ok').base}/x")}
    )
    cards = {card.name: card for card in (one, other, living)}
    monkeypatch.setattr("ep_bench.data.fetching.card", cards.__getitem__)
    asked: list[str] = []

    def counted(url: str, *arguments: object, **options: object) -> None:
        asked.append(url)
        download(url, *arguments, **options)

    monkeypatch.setattr("ep_bench.data.fetching.download", counted)
    with pytest.raises(UserError, match="the server did not answer before"):
        data.fetch(cards, progress=False, limits=LIMITS)
    assert len([url for url in asked if url.startswith(dead)]) == LIMITS.tries
    assert files(cache) == ["living.txt"]


def test_embedded_sets_need_no_fetching(cache) -> None:
    assert data.fetch(["cubic", "step"]) == [("cubic", "embedded", None), ("step", "embedded", None)]
    assert not cache.exists()
    with pytest.raises(UserError, match="did you mean 'yacht'"):
        data.fetch(["yaht"])


def test_progress_is_reported(serve, tmp_path, toy, capsys) -> None:
    seen: list[tuple[int, int | None]] = []
    download(
        f"{serve('ok').base}/toy", tmp_path / "part", LIMITS.timeout, lambda have, total: seen.append((have, total))
    )
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [have for have, _ in seen] == sorted({have for have, _ in seen})
    toy(serve("ok").base)
    data.fetch(["toy"], progress=True, limits=LIMITS)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "toy" in captured.err


KILLED = """
import json, sys
from pathlib import Path
from ep_bench.data import download, fetching, locations
from ep_bench.data.cards import Card
download.SCHEMES = {"http"}
card = Card(**json.loads(sys.argv[1]))
fetching.card = lambda _: card
locations.cache_folder = lambda: Path(sys.argv[2])
fetching.fetch(["toy"], progress=False)
"""


def test_a_killed_download_leaves_no_file_and_is_resumed(serve, toy, cache) -> None:
    server = serve("stall", "ok")
    card = toy(server.base)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("EP_BENCH_")}
    command = [sys.executable, "-c", KILLED, json.dumps(card.model_dump(mode="json")), str(cache)]
    process = subprocess.Popen(command, env=environment)
    try:
        assert server.stalled.wait(30.0)
        deadline = time.monotonic() + 30.0
        # Bytes count once they have reached the file: the writer's buffer is smaller than what was sent.
        while not any(path.stat().st_size for path in cache.rglob("*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (part,) = (name for name in files(cache) if name.endswith(".part"))
    arrived = (cache / part).read_bytes()
    assert 0 < len(arrived) <= 100_000
    assert arrived == CONTENT[: len(arrived)]
    assert data.find_file(card) is None
    fetch()
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.ranges() == [None, f"bytes={len(arrived)}-"]


def test_shipped_files_are_present_unless_a_mirror_is_given(serve, cache) -> None:
    assert [one.status for one in data.fetch(["boston", "cep"], progress=False)] == ["present"] * 2
    mirror = serve("ok", content=lzma.decompress(data.find_file(data.card("boston")).read_bytes()))
    (found,) = data.fetch(["boston"], base_url=mirror.base, progress=False, limits=LIMITS)
    assert found == ("boston", "fetched", cache / "uci/boston/data.txt")


def test_a_damaged_shipped_file_is_replaced_by_a_download(serve, cache, monkeypatch, tmp_path) -> None:
    shipped = data.find_file(data.card("boston"))
    mirror = serve("ok", content=lzma.decompress(shipped.read_bytes()))
    (tmp_path / "shipped" / "boston").mkdir(parents=True)
    (tmp_path / "shipped" / "boston" / shipped.name).write_bytes(shipped.read_bytes()[:-100])
    monkeypatch.setattr("ep_bench.data.locations.shipped_folder", lambda _: tmp_path / "shipped")
    monkeypatch.setenv("EP_BENCH_MIRROR", mirror.base)
    (found,) = data.fetch(["boston"], progress=False, limits=LIMITS)
    assert found.status == "fetched"
    assert data.load_dataset("boston").checksum == data.card("boston").sha256


def originals(folder: Path, names: list[str]) -> Path:
    """Write the original files of data sets, laid out as EP_BENCH_DATA expects them."""
    for name in names:
        card = data.card(name)
        shipped, target = data.find_file(card), folder / card.path
        target.parent.mkdir(parents=True)
        content = shipped.read_bytes()
        target.write_bytes(lzma.decompress(content) if shipped.suffix == ".xz" else content)
    return folder


def test_the_real_files_from_a_server(tmp_path: Path, cache) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    names = ["boston", "yacht", "kin40k", "communities"]
    real_data = originals(tmp_path / "originals", names)
    handler = partial(Quiet, directory=str(real_data))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}/"
        found = data.fetch(names, base_url=base, progress=False, limits=LIMITS)
    finally:
        server.shutdown()
        server.server_close()
    assert [one.status for one in found] == ["fetched"] * 4
    assert [one.status for one in data.verify(names)] == ["ok"] * 4
    for name in names:
        path = data.card(name).path
        assert (cache / path).read_bytes() == (real_data / path).read_bytes()
        assert data.load_dataset(name).checksum == data.card(name).sha256
