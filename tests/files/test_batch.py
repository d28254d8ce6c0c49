"""Batches: all of it or nothing, whatever fails in between."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from support.faults import before_each_call, failing_at, tree

from tui_agent.errors import FileError, Outdated, PathRefused, TuiAgentError
from tui_agent.files import journal as journals
from tui_agent.files import staging
from tui_agent.files.batch import Step, heal, write_batch
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import Gate
from tui_agent.files.text import md5

OLD = {"a.txt": b"old a", "b.txt": b"old b", "gone.txt": b"old gone"}
STEPS = [
    Step("gone.txt", None, md5(b"old gone")),
    Step("a.txt", b"new a", md5(b"old a")),
    Step("b.txt", b"new b", None),
    Step("deep/er/c.txt", b"new c", ""),
]
NEW = {"a.txt": b"new a", "b.txt": b"new b", "deep": None, "deep/er": None, "deep/er/c.txt": b"new c"}


class Here:
    """A workspace, a journal and a store, each fresh."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        for name, data in OLD.items():
            (self.root / name).write_bytes(data)
        self.gate = Gate(self.root)
        self.journal = folder / "data" / "journal.json"
        self.blobs = Blobs(folder / "data" / "blobs")

    def write(self, steps: list[Step] = STEPS) -> list[str]:
        return write_batch(self.gate, self.journal, self.blobs, steps)

    def heal(self) -> list[str]:
        return heal(self.gate, self.journal, self.blobs)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_everything_is_written(here: Here) -> None:
    assert here.write() == ["", md5(b"new a"), md5(b"new b"), md5(b"new c")]
    assert tree(here.root) == NEW
    assert not here.journal.exists()
    assert [here.blobs.get(md5(data)) for data in OLD.values()] == list(OLD.values())
    assert here.heal() == []


def test_old_files_are_freed_several_at_once_after_the_last_move(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may need milliseconds for each."""
    several, discard = threading.Barrier(2, timeout=30), staging.discard
    threads = set[int]()

    def freed(folder: int, name: str) -> bool:
        if tree(here.root).items() >= {"a.txt": b"new a", "b.txt": b"new b"}.items():
            threads.add(threading.get_ident())
            several.wait()
        return discard(folder, name)

    monkeypatch.setattr(staging, "discard", freed)
    here.write([Step("a.txt", b"new a", None), Step("b.txt", b"new b", None)])
    assert len(threads) == 2
    monkeypatch.undo()
    assert tree(here.root) == OLD | {"a.txt": b"new a", "b.txt": b"new b"}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Step("a2.txt", b"x", md5(b"seen")), Outdated),
        (Step("new.txt", None, md5(b"seen")), Outdated),
        (Step("b.txt", b"x", ""), Outdated),
        (Step("../x", b"x", None), PathRefused),
        (Step(".git/config", b"x", None), PathRefused),
        (Step("./a.txt", b"x", None), FileError),
    ],
)
def test_one_bad_step_blocks_all(here: Here, bad: Step, error: type[TuiAgentError]) -> None:
    with pytest.raises(error):
        here.write([*STEPS[1:2], bad])
    assert tree(here.root) == OLD
    assert not here.journal.exists()


def test_a_link_and_its_target_are_one_file(here: Here) -> None:
    (here.root / "link").symlink_to("a.txt")
    with pytest.raises(FileError, match="twice"):
        here.write([Step("link", b"x", None), Step("a.txt", b"y", None)])
    here.write([Step("link", b"x", None)])
    assert tree(here.root) == OLD | {"link": "a.txt", "a.txt": b"x"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_whatever_call_fails_all_is_as_before_or_as_wanted(tmp_path: Path, code: int) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        here = Here(folder)
        with before_each_call(failing_at(number, code)) as calls:
            try:
                here.write()
                failed = False
            except TuiAgentError as error:
                failed = True
                assert str(error).isprintable()
        if len(calls) < number:
            assert not failed
            break
        if here.journal.exists():  # forgetting the journal was what failed
            here.heal()
            assert tree(here.root) == OLD
        else:
            wanted = OLD if failed else NEW
            if calls[number - 1] == "unlink" and tree(here.root) != wanted:  # the next writer removes it
                written = [name for name, data in wanted.items() if data is not None]
                here.write([Step(name, wanted[name], None) for name in written])
            assert tree(here.root) == wanted
    assert number > 30


def test_a_disk_that_stays_full_leaves_the_journal_for_later(here: Here) -> None:
    """Writing the second file fails, and so does taking back the first: healing does it when there is room."""
    renamed = []

    def act(at: int, name: str) -> None:
        if name == "rename":
            renamed.append(name)
        if renamed[1:]:
            raise OSError(errno.ENOSPC, "full")

    with before_each_call(act), pytest.raises(FileError, match="could not be undone"):
        here.write()
    assert here.journal.exists()
    with pytest.raises(FileError, match="is unfinished"):
        here.write()
    assert len(here.heal()) == 1
    assert tree(here.root) == OLD
    here.write()
    assert tree(here.root) == NEW


def test_what_is_recorded_is_finished(here: Here) -> None:
    """A crash after the record and before the journal goes: nothing is taken back."""

    copy = here.journal.with_name("copy")
    write_batch(
        here.gate, here.journal, here.blobs, STEPS, name="c1", record=lambda: copy.hardlink_to(here.journal)
    )
    copy.rename(here.journal)
    assert heal(here.gate, here.journal, here.blobs, recorded={"c1"}) == []
    assert tree(here.root) == NEW
    assert not here.journal.exists()


def test_a_record_that_fails_takes_all_back(here: Here) -> None:
    def refuse() -> None:
        raise FileError("the log is full", "make room")

    with pytest.raises(FileError, match="log is full"):
        write_batch(here.gate, here.journal, here.blobs, STEPS, record=refuse)
    assert tree(here.root) == OLD


def test_what_somebody_changed_meanwhile_is_left_and_named(here: Here) -> None:
    def interrupt() -> None:
        (here.root / "a.txt").write_bytes(b"theirs")
        raise FileError("stop", "now")

    with pytest.raises(FileError, match="stop"):
        write_batch(here.gate, here.journal, here.blobs, STEPS, record=interrupt)
    assert tree(here.root) == OLD | {"a.txt": b"theirs"}


def test_modes_come_back_even_of_what_was_removed(here: Here) -> None:
    (here.root / "gone.txt").chmod(0o755)
    (here.root / "a.txt").chmod(0o750)

    def refuse() -> None:
        raise FileError("stop", "now")

    with pytest.raises(FileError):
        write_batch(here.gate, here.journal, here.blobs, STEPS, record=refuse)
    assert [(here.root / n).stat().st_mode & 0o777 for n in ("gone.txt", "a.txt")] == [0o755, 0o750]


def test_a_folder_that_somebody_uses_stays(here: Here) -> None:
    def use() -> None:
        (here.root / "deep" / "mine").write_bytes(b"mine")
        raise FileError("stop", "now")

    with pytest.raises(FileError):
        write_batch(here.gate, here.journal, here.blobs, STEPS, record=use)
    assert tree(here.root) == OLD | {"deep": None, "deep/mine": b"mine"}


def test_a_torn_journal_is_kept_aside(here: Here) -> None:
    here.write()
    here.journal.write_bytes(b'{"name": "", "entr')
    assert "damaged" in here.heal()[0]
    assert not here.journal.exists()
    assert tree(here.root) == NEW


def test_names_that_are_no_text(here: Here) -> None:
    odd = os.fsdecode(b"raw\xff.txt")
    (here.root / odd).write_bytes(b"old")
    seen = []
    write_batch(
        here.gate,
        here.journal,
        here.blobs,
        [Step(odd, b"new", None)],
        record=lambda: seen.append(journals.BatchJournal.decode(here.journal.read_bytes()).entries[0].path),
    )
    assert (here.root / odd).read_bytes() == b"new"
    assert seen == [odd]
