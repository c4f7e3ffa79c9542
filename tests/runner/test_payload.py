"""Files that are sent to remote workers."""

from __future__ import annotations

from pathlib import Path

from ep_bench.runner.payload import Payload, UnpackedPayload


def test_files_keep_their_places_relative_to_each_other() -> None:
    files = {"/far/one/m.py": b"1", "/far/one/sub/const.py": b"2", "/far/two/m.py": b"3"}
    unpacked = UnpackedPayload(Payload("run", files=files))
    paths = {name: Path(copy) for name, copy in unpacked.paths.items()}
    assert {name: path.read_bytes() for name, path in paths.items()} == files
    assert (
        paths["/far/one/sub/const.py"].parent.parent == paths["/far/one/m.py"].parent != paths["/far/two/m.py"].parent
    )
    unpacked.drop()
    assert not paths["/far/one/m.py"].exists()
