"""Rules of the log that need no session: refusals in words, events that end typing, applies, and numbers of turns."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.logs import load

from tui_agent.edits.change import Checkpoint, FileStep
from tui_agent.errors import Damaged, NotKept, SessionError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import md5
from tui_agent.log import catalog, database, journal, transfer
from tui_agent.log.directory import SessionEntry
from tui_agent.log.journal import RefusedEvents, append_refused, ended_by, store_refused
from tui_agent.log.log import Log
from tui_agent.log.transfer import exchanges
from tui_agent.store import events as e
from tui_agent.store.conversation import SentMessage
from tui_agent.store.events import Lasting
from tui_agent.store.state import State


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ("database or disk is full", NotKept, "cannot be saved, the disk is full"),
        ("attempt to write a readonly database", NotKept, "is read-only"),
        ("unable to open database file", SessionError, "cannot be opened at"),
        ("database is locked", SessionError, "is being written by another program"),
        ("database disk image is malformed", Damaged, "is damaged"),
        ("file is not a database", Damaged, "is damaged"),
        ("no such table: records", Damaged, "is damaged"),
        ("Could not decode to UTF-8 column", Damaged, "is damaged"),
        ("something new", SessionError, "cannot be used (something new)"),
        ("disk I/O error", NotKept, "cannot be saved, "),
    ],
)
def test_what_sqlite_refuses_is_a_sentence(
    tmp_path: Path, words: str, kind: type[SessionError], said: str
) -> None:
    refusal = database.refusal(tmp_path / "one" / "log.sqlite3", sqlite3.OperationalError(words))
    assert type(refusal) is kind
    assert "the session one" in refusal.what and said in refusal.what and refusal.remedy


def typed(*events: e.Event) -> State:
    state = State()
    for event in events:
        state = event.apply(state)
    return state


OPEN = (e.BufferOpened("a.py"), e.BufferLoaded("a.py", "one\n", "x"))
EDITED = e.BufferEdited("a.py", "two\n", "x")


@pytest.mark.parametrize(
    ("before", "event", "keys"),
    [
        ([e.DraftChanged(" do it ")], e.TurnStarted(1, "do it"), ("draft",)),
        ([e.DraftChanged("")], e.TurnStarted(1, "do it"), ("draft",)),
        ([e.DraftChanged("something else")], e.TurnStarted(1, "do it"), ()),
        ([e.DraftChanged("do it")], e.TurnStarted(1, "do it", queued=True), ()),
        ([e.DraftChanged("do it")], e.MessageQueued("do it"), ("draft",)),
        ([], e.ReplyRead(1, "", ""), ("reply",)),
        ([], e.ReplyLeftOff(1), ("reply",)),
        ([], e.TurnEnded(1, True), ("reply",)),
        ([], e.BufferSaved("a.py", "y", text=md5(b"two\n")), ("buffer:a.py",)),
        ([*OPEN, EDITED], e.BufferSaved("a.py", "y", text=md5(b"two\n")), ("buffer:a.py",)),
        ([*OPEN, EDITED], e.BufferSaved("a.py", "y", text=md5(b"one\n")), ()),
        (OPEN, e.BufferClosed("a.py"), ("buffer:a.py", "cursor:a.py", "scroll:a.py")),
        ([], e.SessionRenamed("x"), ()),
    ],
)
def test_an_event_ends_what_it_completes(
    before: list[e.Event], event: Lasting, keys: tuple[str, ...]
) -> None:
    assert ended_by(event, typed(*before)) == keys


def written(path: Path, *events: Lasting) -> Path:
    log = Log.create(path)
    failures: list[Exception] = []
    log.append(events, lambda _: None, failures.append)
    log.close()
    assert not failures
    return path


def point(name: str, **files: str) -> e.CheckpointMade:
    steps = tuple(FileStep(path, before, "") for path, before in files.items())
    return e.CheckpointMade(Checkpoint(name, 1, steps, ()))


APPLIES: tuple[Lasting, ...] = (
    e.TurnStarted(1, "one"),
    point("k1"),
    point("k2"),
    e.CheckpointUndone("k2", True),
    e.TurnStarted(2, "two"),
    e.CheckpointUndone("k1", True),
    point("k3"),
    point("k4"),
    e.TurnStarted(3, "three"),
    e.CheckpointUndone("k2", False),
    e.CheckpointUndone("k4", True),
    e.CheckpointUndone("k9", True),
)


@pytest.mark.parametrize(
    ("turn", "moved"),
    [
        (
            1,
            [
                "k3",
                "k2",
            ],
        ),
        (2, ["k3", "k2", "k1"]),
        (3, ["k2", "k4"]),
        (4, []),
    ],
)
def test_applies_that_moved_since_a_turn(tmp_path: Path, turn: int, moved: list[str]) -> None:
    path = written(tmp_path / "s" / "log.sqlite3", *APPLIES)
    assert [one.id for one in transfer.moved_since(path, turn)] == moved


def test_applies_that_are_in_force() -> None:
    assert [one.id for one in transfer.applies_in_force(APPLIES, 0)] == ["k2", "k3"]
    assert [one.id for one in transfer.applies_in_force(APPLIES, 7)] == []
    assert [one.id for one in transfer.applies_in_force(APPLIES[:8], 6)] == ["k3", "k4"]


def test_files_that_differ_from_before_the_first_apply(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    points = [
        point("k1", a=md5(b"a"), b="0" * 32, new="").checkpoint,
        point("k2", a="0" * 32, gone="1" * 32).checkpoint,
    ]
    assert transfer.differing(tmp_path, points) == ("b", "gone")


@pytest.mark.parametrize(("turn", "kept"), [(None, 5), (1, 3), (2, 4), (3, 5)])
def test_a_fork_has_the_turns_up_to_the_one_that_was_chosen(home: Path, turn: int | None, kept: int) -> None:
    notice, others = e.NoticeGiven("info", "of the first"), (e.TurnStarted(2, "b"), e.TurnStarted(3, "c"))
    done = [e.SessionStarted("s", "/w"), e.TurnStarted(1, "a" * 300), notice, *others]
    data = home / "data"
    transfer.write(data, "s", done, workspace="/w", started_from="/w/x", name="named")
    forked = transfer.fork(data, "s", turn)
    (entry,) = [one for one in catalog.list_sessions(data) if one.id == forked.id]
    found = load(data / "sessions" / forked.id / "log.sqlite3").events
    assert len(found) == kept + 1 and isinstance(found[-1], e.SessionForked)
    assert isinstance(found[0], e.SessionStarted)
    assert (found[0].id, found[0].copied) == (forked.id, kept)
    assert (entry.name, entry.workspace, entry.started_from) == ("named (fork)", "/w", "/w/x")
    assert entry.turns == (turn or 3) and entry.first_request == "a" * 200
    with pytest.raises(SessionError, match="has no turn 4"):
        transfer.fork(data, "s", 4)


def test_more_than_ten_files_of_a_fork_are_counted() -> None:
    names = tuple(f"f{number}" for number in range(12))
    assert "f9 and 2 more were" not in transfer.ForkResult("s", names).sentence
    assert transfer.ForkResult("s", names).sentence.endswith("f9 and 2 more. Undo reverts them")
    assert transfer.ForkResult("s", names[:10], ("lost",)).sentence.endswith("f9. Undo reverts them. lost")
    assert transfer.ForkResult("s").sentence == ""


def test_sessions_are_sorted() -> None:
    entries = [
        SessionEntry("a", turns=1, size=5, name="Zebra"),
        SessionEntry("b", turns=3, size=1, first_request="apple  pie"),
        SessionEntry("c", turns=2, size=9),
    ]
    order = {sort: "".join(one.id for one in catalog.sorted_by(entries, sort)) for sort in catalog.SORTS}
    assert order == {"newest": "abc", "turns": "bca", "size": "cab", "name": "bca"}
    assert [one.title for one in entries] == ["Zebra", "apple pie", "nothing said yet"]


def test_words_are_found_in_lines_and_names(home: Path) -> None:
    data = home / "data"
    transfer.write(
        data,
        "one",
        [
            e.TurnStarted(1, "Rename the 100% parser_x"),
            e.ReplyRead(1, "Sum", 'It parses a\\b "quoted"'),
            e.TurnStarted(2, "Zo"),
        ],
        workspace="/w",
        rank=1.0,
    )
    transfer.write(data, "two", [e.TurnStarted(1, "Other parser")], workspace="/v", name="my Name", rank=2.0)

    def found(words: str, folder: str = "") -> list[tuple[str, int, str]]:
        lines = catalog.search(data, words, Path(folder) if folder else None)
        return [(line.session, line.turn, line.kind) for line in lines]

    assert found("PARSER") == [("two", 1, "person"), ("one", 1, "person")]
    assert found("parser", "/w") == [("one", 1, "person")]
    assert found("100%") == [("one", 1, "person")] and found("10%0") == []
    assert found("r_x") == [("one", 1, "person")] and found("r_z") == found("p_r") == []
    assert found('a\\b "quoted"') == [("one", 1, "agent")]
    assert found("zo") == [("one", 2, "person")] and found("zo rename") == found("") == []
    assert [line.text for line in catalog.requests(data, "one")] == ["Zo", "Rename the 100% parser_x"]
    assert [line.turn for line in catalog.preview(data, "one", 2)] == [1, 2]
    named = [[one.id for one in catalog.list_sessions(data, words=words)] for words in ("MY", "my zo", "zo")]
    assert named == [["two"], [], ["one"]]
    assert len(catalog.search(data, "parser", limit=1)) == 1


def test_what_was_sent_is_joined_to_its_answer(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)

    def sent(role: str, text: str) -> SentMessage:
        return SentMessage(role, blobs.put_text(text))

    events = [
        e.ReplyRead(1, "", "", sent=sent("assistant", "early")),
        e.ConversationBegun(1, "first", (sent("system", "S"),)),
        e.RequestSent(1, "main", (sent("user", "one"),), model="m", tokens=7),
        e.RequestSent(1, "plan", (SentMessage("user", "0" * 32),), protocol="tools"),
        e.ReplyRead(1, "", "", sent=sent("assistant", "answer")),
        e.ReplyRead(1, "", "", sent=sent("assistant", "late")),
        e.RequestSent(2, "main", reset=True),
    ]
    first, second, third = exchanges(events, blobs)
    assert (first.messages, first.reset, first.reply, first.tokens) == (("S", "one"), True, "", 7)
    assert (second.protocol, second.reset, second.reply) == ("tools", False, "answer")
    assert "is not in the store" in second.messages[0]
    assert (third.turn, third.reset, third.messages, third.reply) == (2, True, (), "")


def test_events_that_were_left_behind_are_appended_once(tmp_path: Path) -> None:
    notices = tuple(e.NoticeGiven("info", str(number)) for number in range(4))
    path = written(tmp_path / "s" / "log.sqlite3", *notices[:3])
    store_refused(path.parent, RefusedEvents(1, notices[1:], (e.DraftChanged("typed"),)), sync=False)
    log = Log.open(path)
    assert append_refused(log) == [] == append_refused(log)
    found = load(log)
    log.close()
    assert found.events == list(notices) and found.growing == [e.DraftChanged("typed")]
    (path.parent / journal.REFUSED).write_bytes(b"\xc1")
    log = Log.open(path)
    assert "cannot be read" in append_refused(log)[0]
    log.close()
