"""The log: what was acknowledged is there, in order, whatever happened to the process or the file."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from support.logs import load
from support.privileges import unprivileged

from tui_agent.errors import SessionError
from tui_agent.log import log as module
from tui_agent.log.log import Log, set_aside
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage
from tui_agent.store.state import LayoutSlice


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions" / "one" / "log.sqlite3"


def notice(text: str | int) -> e.NoticeGiven:
    return e.NoticeGiven("info", str(text))


def appended(log: Log, *events: e.Lasting, drop: tuple[str, ...] = ()) -> int:
    """Append and wait until it is on disk; raises what the log says."""
    told = threading.Event()
    answers: list[int | SessionError] = []

    def tell(answer: int | SessionError) -> None:
        answers.append(answer)
        told.set()

    log.append(events, tell, tell, drop)
    assert told.wait(30)
    if isinstance(answers[0], SessionError):
        raise answers[0]
    return answers[0]


def test_what_was_appended_is_loaded_in_order(path: Path) -> None:
    log = Log.create(path)
    first = e.SessionStarted("one", "/w")
    sent = e.RequestSent(
        1, "main", (SentMessage("user", "ab", 3),), files={"a": "b"}, tokens=12, prefix_share=0.5
    )
    assert appended(log, first, sent) == 2
    assert appended(log, notice("three")) == 3
    loaded = load(log)
    assert (loaded.events, loaded.growing, loaded.lost) == ([first, sent, notice("three")], [], [])
    assert log.count() == 3
    log.close()
    log.close()
    reopened = Log.open(path)
    assert load(reopened).events == loaded.events
    assert appended(reopened, notice("four")) == 4
    reopened.close()
    assert load(path).events[-1] == notice("four")


def test_of_what_grows_the_newest_is_kept(path: Path) -> None:
    log = Log.create(path)
    for text in ("h", "he", "hey"):
        log.keep(e.DraftChanged(text))
    buffer = e.BufferEdited("a.py", "text", "", (1, 2))
    log.keep(buffer)
    log.keep(e.LayoutChanged(LayoutSlice(focus="files")))
    assert load(log).growing == [e.DraftChanged("hey"), buffer, e.LayoutChanged(LayoutSlice(focus="files"))]
    log.drop([buffer.key])
    appended(log, notice("sent"), drop=("draft",))
    assert load(log).growing == [e.LayoutChanged(LayoutSlice(focus="files"))]
    log.close()


def test_appends_that_wait_share_a_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log.create(path)
    commits, at_first, go_on = [], threading.Event(), threading.Event()
    real = module.LogWriter.commit

    def commit(writer: module.LogWriter) -> None:
        commits.append(writer.number)
        at_first.set()
        assert go_on.wait(30)
        real(writer)

    monkeypatch.setattr(module.LogWriter, "commit", commit)
    done: list[int] = []
    log.append([notice(0)], done.append)
    assert at_first.wait(30)
    for number in range(1, 50):
        log.append([notice(number)], done.append)
    go_on.set()
    log.close()
    assert commits == [1, 50]
    assert done == list(range(1, 51))
    assert load(path).events == [notice(number) for number in range(50)]


def test_it_is_acknowledged_only_when_another_reader_sees_it(path: Path) -> None:
    log = Log.create(path)
    seen: list[int] = []
    for number in range(20):
        log.append([notice(number)], lambda _: seen.append(len(load(path).events)))
    log.close()
    assert all(there >= number + 1 for number, there in enumerate(seen)) and len(seen) == 20


def test_many_threads(path: Path) -> None:
    log = Log.create(path)

    def write(thread: int) -> None:
        for number in range(50):
            log.append([notice(f"{thread} {number}")], lambda _: None)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [event.text for event in load(log).events if isinstance(event, e.NoticeGiven)]
    assert len(texts) == 300
    for thread in range(6):
        assert [t for t in texts if t.startswith(f"{thread} ")] == [f"{thread} {n}" for n in range(50)]
    log.close()


def test_only_the_user_can_read_it(path: Path) -> None:
    log = Log.create(path)
    appended(log, notice("secret"))
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    assert len(modes) == 3 and set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    log.close()


def test_file_names_that_are_no_text(path: Path) -> None:
    log = Log.create(path)
    event = e.BufferOpened(os.fsdecode(b"raw\xff.txt"))
    appended(log, event)
    assert load(log).events == [event]
    log.close()


# ── what is damaged ──────────────────────────────────────────────────────────────────────────────────────


def written(path: Path, count: int = 3) -> None:
    log = Log.create(path)
    appended(log, *(notice(number) for number in range(count)))
    log.keep(e.DraftChanged("draft"))
    log.close()


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_a_damaged_record_costs_itself_only(path: Path) -> None:
    written(path)
    change(path, "UPDATE records SET body = replace(body, '1', '7') WHERE number = 2")
    loaded = load(path)
    assert loaded.events == [notice(0), notice(2)]
    assert loaded.lost == ["record 2 (NoticeGiven) is damaged and was left out"]


@pytest.mark.parametrize(
    "column", ["at = at + 1", "type = 'TurnEnded'", "version = 0", "checksum = checksum + 1"]
)
def test_every_part_of_a_record_is_checked(path: Path, column: str) -> None:
    written(path)
    change(path, f"UPDATE records SET {column} WHERE number = 1")
    assert len(load(path).lost) == 1


def test_a_missing_record_is_noticed(path: Path) -> None:
    written(path, 6)
    change(path, "DELETE FROM records WHERE number IN (2, 4, 5)")
    assert load(path).lost == ["record 2 is missing", "records 4 to 5 are missing"]


def test_a_damaged_draft_is_left_out(path: Path) -> None:
    written(path)
    change(path, "UPDATE growing SET body = 'x'")
    loaded = load(path)
    assert (loaded.growing, len(loaded.lost)) == ([], 1)
    assert "draft" in loaded.lost[0]


def test_what_a_newer_version_wrote_is_left_out_and_named(path: Path) -> None:
    class FromTheFuture(e.Lasting, frozen=True):
        what: str

    log = Log.create(path)
    appended(log, notice(0), FromTheFuture("x"), notice(1))
    loaded = load(log)
    log.close()
    assert loaded.events == [notice(0), notice(1)]
    assert loaded.lost == ["record 2 (FromTheFuture) was written by a newer version and was left out"]


def test_an_event_with_fields_of_another_kind_is_left_out(path: Path) -> None:
    class TurnStarted(e.Lasting, frozen=True):
        turn: str = "three"

    log = Log.create(path)
    appended(log, TurnStarted(), notice(1))
    loaded = load(log)
    log.close()
    assert loaded.events == [notice(1)]
    assert "cannot be read" in loaded.lost[0]


def test_damaged_pages_cost_their_records_only(path: Path) -> None:
    """Overwrite a page in the middle of the file: what lies on others is still read."""
    log = Log.create(path)
    for number in range(0, 400, 20):
        appended(log, *(notice(f"{number + n} {'x' * 200}") for n in range(20)))
    log.close()
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = os.urandom(4096)
    path.write_bytes(data)
    loaded = load(path)
    assert 300 < len(loaded.events) < 400
    assert loaded.lost
    numbers = [int(event.text.split()[0]) for event in loaded.events if isinstance(event, e.NoticeGiven)]
    assert numbers == sorted(numbers) and numbers[-1] == 399


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_log_is_set_aside_untouched(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for use in (Log.open, load):
        with pytest.raises(SessionError, match="damaged"):
            use(path)
    path.with_name(path.name + "-wal").write_bytes(b"wal")
    aside = set_aside(path)
    assert aside.read_bytes() == content and "damaged" in aside.name
    assert aside.with_name(aside.name + "-wal").read_bytes() == b"wal"
    assert not path.exists()
    Log.create(path).close()
    assert set_aside(path) != aside


def test_a_log_of_a_newer_version_is_not_touched(path: Path) -> None:
    written(path)
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(SessionError, match="newer"):
        Log.open(path)


def test_what_is_missing_or_there_already(path: Path) -> None:
    with pytest.raises(SessionError, match="cannot be opened"):
        Log.open(path)
    Log.create(path).close()
    with pytest.raises(SessionError, match="already exists"):
        Log.create(path)


# ── what cannot be written ───────────────────────────────────────────────────────────────────────────────


def full(log: Log, pages: int = 1) -> None:
    """Let the file grow no further: sqlite answers as for a full disk."""
    log._writer.connection.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_is_told_and_what_comes_later_is_tried(path: Path) -> None:
    told: list[SessionError] = []
    log = Log.create(path, told.append)
    appended(log, notice(1))
    full(log)
    with pytest.raises(SessionError, match="disk is full"):
        appended(log, notice("x" * 100_000))
    log.keep(e.DraftChanged("x" * 100_000))
    assert log.count() == 1
    assert "disk is full" in str(told[0])
    full(log, 100_000)
    assert appended(log, notice(2)) == 2
    assert load(log).events == [notice(1), notice(2)]
    assert load(log).lost == []
    log.close()


def test_a_home_that_cannot_be_written() -> None:
    with unprivileged() as public:
        public.chmod(0o500)
        with pytest.raises(SessionError, match="Permission denied"):
            Log.create(public / "sessions" / "one" / "log.sqlite3")


def test_a_log_that_can_only_be_read_is_read() -> None:
    with unprivileged() as public:
        path = public / "one" / "log.sqlite3"
        written(path)
        path.chmod(0o400)
        path.parent.chmod(0o500)
        assert len(load(path).events) == 3


def test_after_closing_nothing_is_taken(path: Path) -> None:
    log = Log.create(path)
    log.close()
    with pytest.raises(SessionError, match="closed"):
        appended(log, notice(1))
    assert load(log).events == []


def test_whoever_asked_may_be_gone(path: Path) -> None:
    log = Log.create(path)

    def gone(_: int) -> None:
        raise RuntimeError("Event loop is closed")

    log.append([notice(1)], gone)
    assert appended(log, notice(2)) == 2
    log.close()


def test_killed_at_any_moment_what_was_acknowledged_is_there(path: Path) -> None:
    """A child writes as fast as it can and says what is on disk; it is killed in the middle, several times."""
    Log.create(path).close()
    acknowledged = 0
    for _ in range(5):
        acknowledged = max(acknowledged, _killed_while_writing(path))
        loaded = load(path)
        assert loaded.lost == []
        assert len(loaded.events) >= acknowledged
    log = Log.open(path)
    assert appended(log, notice("after")) == len(loaded.events) + 1
    log.close()


def _killed_while_writing(path: Path) -> int:
    """The number of the last record that the child said was on disk."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            log = Log.open(path)

            def say(number: int) -> None:
                os.write(writing, b"%d\n" % number)

            while True:
                log.append([notice("x" * 500)], say)
                log.keep(e.DraftChanged("y" * 500))
                log.count()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        last = [said.readline() for _ in range(40)]
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        last += said.readlines()
    return max(int(line) for line in last if line.endswith(b"\n"))


def test_a_first_sync_that_failed_is_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    seen: list[object] = []
    broken = [OSError(errno.EIO, "broken")]

    def sync(place: object) -> None:
        seen.append(place)
        if broken:
            raise broken[0]

    monkeypatch.setattr(module.operating_system, "sync", sync)
    monkeypatch.setattr(module, "sync_folder", seen.append)
    first = module.FirstSync(path)
    first.wait()
    assert {path.parent, path.parent.parent} < set(seen)
    with pytest.raises(OSError, match="broken"):
        first.try_again()
    broken.clear()
    first.try_again()
    assert len(seen) == 9
    first.try_again()
    assert len(seen) == 9
    first.close()


def test_near_the_end_records_are_not_synced_one_by_one(path: Path) -> None:
    log = Log.create(path)
    appended(log, notice("one"))

    def level() -> int:
        return log._writer.connection.execute("PRAGMA synchronous").fetchone()[0]

    assert level() == 2
    log.sync_at_end()
    appended(log, notice("two"))
    assert level() == 1
    log.close()
    assert load(path).events == [notice("one"), notice("two")]
