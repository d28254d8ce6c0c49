"""The store of contents: whole, private, and told apart by hash."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from support.faults import before_each_call, failing_at, failing_on, killed_at

from tui_agent.errors import FileError
from tui_agent.files import blobs as module
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import md5


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "data" / "blobs")


def test_what_was_put_can_be_had(blobs: Blobs) -> None:
    key = blobs.put(b"hello\r\n")
    assert key == md5(b"hello\r\n")
    assert blobs.get(key) == b"hello\r\n"
    assert blobs.has(key)
    assert blobs.put(b"hello\r\n") == key
    assert blobs.size() == 7


def test_text(blobs: Blobs) -> None:
    for text in ("", "ü\r\n", "half \ud800"):
        assert blobs.get_text(blobs.put_text(text)) == text


@pytest.mark.parametrize("key", ["", "0" * 32, "../../etc/passwd", "A" * 32, "0" * 31])
def test_what_is_no_key(blobs: Blobs, key: str) -> None:
    assert not blobs.has(key)
    with pytest.raises(FileError, match="not in the store"):
        blobs.get(key)


def test_nobody_else_can_read_it(blobs: Blobs) -> None:
    key = blobs.put(b"x")
    path = blobs.folder / key[:2] / key[2:]
    assert [stat.S_IMODE(p.stat().st_mode) for p in (blobs.folder, path.parent, path)] == [
        0o700,
        0o700,
        0o600,
    ]


def test_damage_is_seen_and_put_right(blobs: Blobs) -> None:
    key = blobs.put(b"whole")
    (blobs.folder / key[:2] / key[2:]).write_bytes(b"torn")
    with pytest.raises(FileError, match="damaged"):
        blobs.get(key)
    blobs.put(b"whole")
    assert blobs.get(key) == b"whole"


def test_two_contents_with_one_hash_are_refused(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "md5", lambda data: "0" * 32)
    blobs.put(b"one")
    with pytest.raises(FileError, match="share the hash"):
        blobs.put(b"two")
    assert blobs.get("0" * 32) == b"one"


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only")])
def test_a_disk_that_takes_nothing(blobs: Blobs, code: int, words: str) -> None:
    with before_each_call(failing_on("fsync", code)), pytest.raises(FileError, match=words):
        blobs.put(b"x")
    assert blobs.size() == 0
    fresh = Blobs(blobs.folder.with_name("fresh"))
    with before_each_call(failing_at(1, code)), pytest.raises(FileError, match=words):
        fresh.put(b"x")


def test_killed_at_any_step_it_holds_all_or_nothing(blobs: Blobs) -> None:
    number, content = 1, b"content 1"
    while killed_at(number, partial(blobs.put, content)):
        assert not blobs.has(md5(content)) or blobs.get(md5(content)) == content
        number += 1
        content = b"content %d" % number
    assert number > 4


def test_many_threads(blobs: Blobs) -> None:
    contents = [os.urandom(50_000) for _ in range(5)] * 8
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(blobs.put, contents))
    assert [blobs.get(key) for key in keys] == contents
    assert sum(1 for path in blobs.folder.rglob("*") if path.is_file()) == 5


def test_contents_that_the_disk_refuses_are_held_until_it_takes_them(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[FileError] = []
    blobs.on_held = said.append
    with before_each_call(failing_on("fsync", errno.ENOSPC)):
        keys = [blobs.hold(data) for data in (b"one", b"two", b"one")]
        assert len(said) == 1, "said for the first one alone"
        monkeypatch.setattr(module, "MOST_HELD", 7)
        with pytest.raises(FileError, match="disk is full"):
            blobs.hold(b"more")
        assert [blobs.get(key) for key in keys] == [b"one", b"two", b"one"] and blobs.has(keys[1])
    key = blobs.hold_text("three")
    assert sorted(blobs.get(name) for name in (*keys, key)) == [b"one", b"one", b"three", b"two"]
    again = Blobs(blobs.folder)
    assert [again.get(name) for name in keys] == [b"one", b"two", b"one"], "all are on the disk now"


def test_contents_of_later_records_are_durable_when_asked_for(blobs: Blobs) -> None:
    settle = blobs.sync_later()
    with before_each_call(failing_on("fsync", errno.ENOSPC)):
        key = blobs.hold(b"x")
        assert Blobs(blobs.folder).get(key) == b"x", "written, and not durable yet"
        with pytest.raises(FileError, match="disk is full"):
            blobs.sync()
        said: list[FileError] = []
        blobs.on_held = said.append
        settle()
        assert len(said) == 1 and blobs.get(key) == b"x"
        settle()
        assert len(said) == 1, "what is held is tried again with the next content"
    blobs.flush()
    blobs.sync()
    blobs.on_held = None
    settle()


def test_a_store_in_front_reads_what_is_behind_it(blobs: Blobs, tmp_path: Path) -> None:
    key = blobs.put(b"behind")
    front = Blobs(tmp_path / "front", behind=blobs.folder)
    assert front.has(key) and front.get(key) == b"behind" and front.size() == 0
    front.put(b"behind")
    front.put(b"front")
    assert not blobs.has(md5(b"front")) and not Blobs(tmp_path / "front").has(key)


def test_a_content_that_is_stored_again_is_young_again(blobs: Blobs) -> None:
    key = blobs.put(b"x")
    path = blobs.folder / key[:2] / key[2:]
    for age, young in ((86_400, True), (3_600, False)):
        then = path.stat().st_mtime - age
        os.utime(path, (then, then))
        blobs.put(b"x")
        assert (path.stat().st_mtime > then + 1) is young
