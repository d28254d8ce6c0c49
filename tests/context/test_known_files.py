"""Known files over a real session: the hash decides, the model is told once, what is stale is read again."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.sessions import model_of, open_session, reply
from support.trees import make_tree, until

from tui_agent.context.known_files import (
    KnownFile,
    Touch,
    following,
    freshness_mark,
    left_out_line,
    overflow,
    table,
    table_row,
)
from tui_agent.files.text import md5
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store.events import Event, RequestSent
from tui_agent.store.state import State

TEXT = "def fetch(url):\n    return get(url)\n"
FILES = {"api.py": TEXT, "util.py": "x = 1\n", "docs/a.md": "# A\n"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "work", FILES)


async def turn(session: Session, request: str) -> str:
    """Do a turn; the newest message of its last request."""
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error
    return model_of(session).requests[-1].messages[-1]["content"]


def rows(text: str) -> dict[str, str]:
    """`Modified Since` by path, of the table in a message."""
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([0-9a-f]{12}) \|$", text, re.MULTILINE)
    return {path: f"{seen} / {modified}" for path, seen, modified, _ in found}


async def test_the_table_carries_only_what_changed(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 4) as session:
        assert rows(await turn(session, "Look at api.py")) == {"api.py": "turn 1 (this turn) / No"}
        assert rows(await turn(session, "And now?")) == {}
        assert rows(await turn(session, "Look at util.py")) == {"util.py": "turn 3 (this turn) / No"}
        assert rows(await turn(session, "Continue.")) == {
            "api.py": "turn 1 / No",
            "util.py": "turn 3 / No",
        }


async def test_a_stale_file_is_read_again_before_the_model_is_asked(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 3) as session:
        await turn(session, "Look at api.py")
        (workspace / "api.py").write_text(TEXT + "# more\n")
        text = await turn(session, "And now?")
        assert rows(text) == {"api.py": "turn 2 (this turn) / ⚠️ Yes (on disk), read again below"}
        assert "3: # more" in text
        text = await turn(session, "And now?")
        assert rows(text) == {} and "read_files" not in text
        kinds = [touch.kind for touch in session.state.known.touches]
        assert kinds == ["read", "changed outside", "read"]
        last = session.state.known.touches[-1]
        assert last.read_at >= last.outside_at > 0


async def test_news_of_a_file_is_told_once_however_many_look(workspace: Path) -> None:
    async with open_session(workspace, [reply()], services=False) as session:
        session.workspace.start()
        await turn(session, "Look at api.py")
        (workspace / "api.py").write_text(TEXT + "# more\n")
        await asyncio.gather(*(session._freshness.check_known_files() for _ in range(5)))
        kinds = [touch.kind for touch in session.state.known.touches]
        assert kinds == ["read", "changed outside"]


async def test_touching_is_no_change_and_changing_back_makes_fresh(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Look at api.py")
        path = workspace / "api.py"
        os.utime(path, (1, 1))
        await session._freshness.check_paths(["api.py"])
        assert session.state.known.files["api.py"].freshness == "fresh"
        path.write_text("other\n")
        await until(lambda: session.state.known.files["api.py"].freshness == "disk", "the mark")
        path.write_text(TEXT)
        await until(lambda: session.state.known.files["api.py"].freshness == "fresh", "the mark to go")
        assert rows(await turn(session, "And now?")) == {}


async def test_a_change_with_the_old_times_is_seen(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 2, services=False) as session:
        session.workspace.start()
        await session.files.ready()
        await turn(session, "Look at api.py")
        path = workspace / "api.py"
        before = path.stat()
        path.write_text(TEXT.replace("get", "got"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert "2:     return got(url)" in await turn(session, "And now?")


async def test_deleted_renamed_and_replaced(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 3) as session:
        await turn(session, "Look at api.py, util.py and docs/a.md")
        (workspace / "api.py").unlink()
        (workspace / "util.py").rename(workspace / "tools.py")
        fresh = workspace / "docs" / ".a.md.tmp"
        fresh.write_text("# A\n")
        fresh.replace(workspace / "docs/a.md")
        text = await turn(session, "And now?")
        assert rows(text)["api.py"] == "turn 1 / deleted"
        assert rows(text)["util.py"] == "turn 1 / renamed to tools.py"
        assert "docs/a.md" not in rows(text)
        assert '"path": "tools.py"' in text and '"sameAs": "util.py"' in text
        (workspace / "api.py").write_text(TEXT)
        assert rows(await turn(session, "And now?"))["api.py"] == "turn 1 / No"


async def test_unsaved_text_counts_by_its_content(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Look at api.py")
        await session.files.open("util.py")
        await session.files.open("api.py")
        session.files.edit("api.py", TEXT + "typed\n", (2, 5), (2, 5))
        await until(lambda: session.state.known.files["api.py"].freshness == "buffer", "the mark")
        session.files.edit("api.py", TEXT, (2, 0), (2, 0))
        await until(lambda: session.state.known.files["api.py"].freshness == "fresh", "the mark to go")
        session.files.edit("api.py", TEXT + "typed\n", (2, 5), (2, 5))
        text = await turn(session, "And now?")
        assert rows(text)["api.py"].endswith("⚠️ Yes (unsaved in the editor), read again below")
        assert "3: typed" in text and text.count("3: typed") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_unsaved_text_goes_out_once_however_the_file_is_stored(workspace: Path, encoding: str) -> None:
    (workspace / "api.py").write_bytes(TEXT.encode(encoding))
    async with open_session(workspace, [reply()] * 4) as session:
        await session.files.open("api.py")
        session.files.edit("api.py", "UNSAVED = 1\n", (0, 0), (0, 0))
        await turn(session, "Look at api.py")
        await session.files.open("util.py")  # the other one is only an excerpt now
        await turn(session, "Look at api.py again")
        everything = "".join(text_of(message) for message in model_of(session).requests[-1].messages)
        assert everything.count("1: UNSAVED = 1") == 1
        await session.files.save("api.py")
        await turn(session, "Look at api.py once more")
        everything = "".join(text_of(message) for message in model_of(session).requests[-1].messages)
        assert everything.count("1: UNSAVED = 1") == 1


async def test_what_was_applied_as_proposed_is_not_sent_again(workspace: Path) -> None:
    change = {"path": "api.py", "edits": [{"search": "get(url)", "replace": "get(url, timeout=5)"}]}
    replies = [reply("Adds it.", fileChanges=[change]), reply(), reply()]
    async with open_session(workspace, replies, overrides=["bundling.enabled=false"]) as session:
        await turn(session, "Add a timeout to api.py")
        await session.review.apply()
        text = await turn(session, "Thanks")
        assert rows(text) == {"api.py": "turn 1 / ⚠️ Yes (turn 1)"}
        assert "timeout=5" not in text and "read_files" not in text
        text = await turn(session, "Look at api.py")
        assert '"asProposed": true' in text and "timeout=5" not in text


async def test_what_was_applied_in_part_is_read_again(workspace: Path) -> None:
    two = "a = 1\n" + "\n" * 12 + "b = 1\n"
    (workspace / "api.py").write_text(two)
    edits = [{"search": "a = 1", "replace": "a = 2"}, {"search": "b = 1", "replace": "b = 2"}]
    replies = [reply("Both.", fileChanges=[{"path": "api.py", "edits": edits}]), reply()]
    async with open_session(workspace, replies) as session:
        from tui_agent.edits.change import Pick

        await turn(session, "Change api.py")
        await session.review.apply([Pick("c1.1", 0)])
        await session.review.skip()
        text = await turn(session, "Thanks")
        assert rows(text)["api.py"] == "turn 2 (this turn) / ⚠️ Yes (turn 1), read again below"
        assert "1: a = 2" in text and "14: b = 1" in text


async def test_the_registry_is_bounded_and_says_so(workspace: Path) -> None:
    make_tree(workspace, {f"many/f{number}.py": f"{number}\n" for number in range(8)})
    async with open_session(workspace, [reply()] * 3, overrides=["known.max_files=4"]) as session:
        await session.files.open("many/f0.py")
        await turn(session, "Look at many/f0.py, many/f1.py and many/f2.py")
        text = await turn(session, "Look at many/f3.py, many/f4.py and many/f5.py")
        assert sorted(session.state.known.files) == [f"many/f{number}.py" for number in (0, 3, 4, 5)]
        assert "2 more seen earlier are left out of this table" in text
        assert "left out" not in await turn(session, "And now?")


async def test_a_burst_ends_in_the_right_state(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Look at api.py and util.py")
        folder = workspace / "burst"
        folder.mkdir()
        for number in range(10_000):
            (folder / f"{number}.txt").touch()
            if number == 5000:
                (workspace / "api.py").write_text("changed\n")
        await until(lambda: session.state.known.files["api.py"].freshness == "disk", "the mark")
        await until(lambda: len(session.files.paths()) > 10_000, "the index")
        assert session.state.known.files["util.py"].freshness == "fresh"


async def test_without_a_watcher_the_content_still_decides(workspace: Path) -> None:
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Look at api.py and util.py")
        session.workspace.listen()  # nobody is told of any change from here on
        (workspace / "api.py").write_text("changed\n")
        (workspace / "util.py").rename(workspace / "tools.py")
        text = await turn(session, "And now?")
        assert "1: changed" in text and rows(text)["util.py"] == "turn 1 / renamed to tools.py"


@pytest.mark.parametrize("kind", ["binary", "encoding", "huge", "folder", "pipe", "unreadable"])
async def test_a_known_file_that_cannot_be_read_any_more_is_marked_and_the_turn_goes_on(
    workspace: Path, kind: str
) -> None:
    async with open_session(workspace, [reply()] * 2) as session:
        await turn(session, "Look at api.py")
        path = workspace / "api.py"
        path.unlink()
        match kind:
            case "binary":
                path.write_bytes(b"\0" * 100)
            case "encoding":
                path.write_bytes("grün".encode("latin-1"))
            case "huge":
                with path.open("wb") as file:
                    file.truncate(1 << 30)
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "unreadable":
                path.symlink_to("/etc/shadow")
        text = await turn(session, "And now?")
        assert rows(text)["api.py"] == "turn 1 / ⚠️ Yes (on disk)"
        assert any("api.py" in notice.text for notice in session.state.notices.items)


LONG = "".join(f"line {number}\n" for number in range(50))
EDIT = {"search": "line 7\n", "replace": "seven\n"}
BLIND = reply("Edits it unseen.", fileChanges=[{"path": "b.txt", "edits": [EDIT]}])
OVER = {"path": "b.txt", "content": "all that is left\n"}


@pytest.mark.parametrize("way", ["apply", "rename", "blind rename", "resume"])
async def test_of_a_file_that_was_edited_unseen_only_a_part_is_known(tmp_path: Path, way: str) -> None:
    root = make_tree(tmp_path / "work", {"b.txt": LONG})
    moved = {"path": "b.txt", "renameTo": "c.txt"}
    path = "c.txt" if "rename" in way else "b.txt"
    first = reply("Moves it.", fileChanges=[moved]) if way == "blind rename" else BLIND
    over = reply("Writes it all.", fileChanges=[{**OVER, "path": path}])
    replies = [first, *([reply("Moves it.", fileChanges=[moved])] if way == "rename" else []), over]

    async def decided(session: Session, request: str) -> None:
        await session.chat.submit(request)
        await session.chat.finished()
        await session.review.apply()

    async with open_session(root, replies) as session:
        name = session.state.session.id
        await decided(session, "Make the change")
        if way == "rename":
            await decided(session, "Move it")
        if way != "resume":
            await decided(session, "Go over it once more")
            held = session.state.review.changes[-1]
    if way == "resume":
        async with open_session(root, [over], session=name) as session:
            await decided(session, "Go over it once more")
            held = session.state.review.changes[-1]
    assert (held.state, "only in part" in held.ask) == ("pending", True)
    assert "line 8\n" in (root / path).read_text(), "whole content is never part of all"


async def test_of_a_file_that_was_edited_unseen_an_undo_shows_all(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "work", {"b.txt": LONG})
    async with open_session(root, [BLIND, reply("Writes it all.", fileChanges=[OVER])]) as session:
        await session.chat.submit("Make the change")
        await session.chat.finished()
        await session.review.apply()
        assert not session.state.known.files["b.txt"].whole
        await session.review.undo()
        assert not session.state.known.files["b.txt"].whole
        assert "line 8" in await turn(session, "Go over it once more"), "what has changed since is read again"
        assert session.state.known.files["b.txt"].whole


def row_of(session: Session, path: str) -> list[str]:
    """The cells of a file's row as the model was told last."""
    return [cell.strip() for cell in session.state.conversation.rows[path].strip("| ").split(" | ")]


async def test_after_an_undo_the_table_names_it_and_the_hash_of_the_text_now(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    (tmp_path / "b.py").write_text("b = 1\n")
    edits = [{"path": f"{it}.py", "edits": [{"search": f"{it} = 1", "replace": f"{it} = 2"}]} for it in "ab"]
    async with open_session(tmp_path, [reply(), reply(fileChanges=edits), reply(), reply()]) as session:
        await turn(session, "Look at a.py")
        await turn(session, "Change a.py and b.py")
        await session.review.apply()
        await session.review.undo()
        sent, newest = await turn(session, "What is in b.py now?"), md5(b"b = 1\n")[:12]
        assert row_of(session, "a.py")[2:] == ["⚠️ Yes (undo)", md5(b"a = 1\n")[:12]]
        assert f"⚠️ Yes (undo) | {newest} |" in sent, "also where it is read again"
        (tmp_path / "a.py").write_text("a = 3\n")
        await turn(session, "And now?")
        assert "undo" not in row_of(session, "a.py")[2]


async def test_unsaved_text_is_marked_whoever_made_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    edit = {"path": "a.py", "edits": [{"search": "a = 1", "replace": "a = 2"}]}
    async with open_session(tmp_path, [reply(fileChanges=[edit]), reply()]) as session:
        await session.files.open("a.py")
        session.files.edit("a.py", "a = 1\nb = 1\n", (0, 0), (0, 0))
        await turn(session, "Change a.py")
        await session.review.apply()
        await turn(session, "What now?")
        assert row_of(session, "a.py")[2].endswith("unsaved in the editor")


async def test_an_edit_of_lines_that_were_never_shown_is_not_seen_by_that(workspace: Path) -> None:
    edit = {"path": "util.py", "edits": [{"search": "x = 7", "replace": "x = 8"}]}
    async with open_session(workspace, [reply(), reply(fileChanges=[edit]), reply()]) as session:
        await turn(session, "Look at util.py")

        def meanwhile(event: Event, state: State) -> None:
            if isinstance(event, RequestSent) and event.turn == 2:
                (workspace / "util.py").write_text("x = 7\ny = 7\n")

        session.subscribe(meanwhile)
        await turn(session, "Change it")
        await session.review.apply()
        assert (workspace / "util.py").read_text() == "x = 8\ny = 7\n"
        entry = session.state.known.files["util.py"]
        assert not entry.written_known and entry.hash == md5(b"x = 1\n")
        assert "y = 7" in await turn(session, "And now?"), "so that it is read again"


BARE = KnownFile("a.py", "m" * 32, 2, 10)


@pytest.mark.parametrize(
    ("changed", "expected", "stale"),
    [
        ({}, "m", False),
        ({"written": "w"}, "m", False),
        ({"written": "w", "freshness": "edited"}, "m", False),
        ({"written": "w", "freshness": "edited", "written_known": True}, "w", False),
        ({"written": "w", "freshness": "undone"}, "w", False),
        ({"freshness": "undone"}, "m", False),
        ({"md5": "", "written": "w"}, "w", False),
        ({"written": "w", "freshness": "disk", "written_known": True}, "m", True),
        ({"freshness": "buffer"}, "m", True),
        ({"freshness": "deleted"}, "m", True),
        ({"freshness": "renamed"}, "m", True),
    ],
)
def test_the_hash_is_that_of_the_version_the_model_knows(
    changed: dict[str, Any], expected: str, stale: bool
) -> None:
    entry = replace(BARE, **changed)
    assert (entry.hash[:1], entry.stale) == (expected, stale)


@pytest.mark.parametrize(
    ("changed", "mark", "again"),
    [
        ({}, "No", "No"),
        ({"unsaved": True}, "No, unsaved in the editor", "No, unsaved in the editor, read again below"),
        (
            {"freshness": "edited", "modified_turn": 3},
            "⚠️ Yes (turn 3)",
            "⚠️ Yes (turn 3), read again below",
        ),
        ({"freshness": "disk", "unsaved": True}, "⚠️ Yes (on disk)", "⚠️ Yes (on disk), read again below"),
        (
            {"freshness": "renamed", "renamed_to": "b|c"},
            "renamed to b\\|c",
            "renamed to b\\|c, read again below",
        ),
    ],
)
def test_the_mark_of_a_file(changed: dict[str, Any], mark: str, again: str) -> None:
    entry = replace(BARE, **changed)
    assert (freshness_mark(entry), freshness_mark(entry, True)) == (mark, again)


@pytest.mark.parametrize(
    ("changed", "turn", "seen"),
    [
        ({}, 3, "turn 2"),
        ({}, 2, "turn 2 (this turn)"),
        ({"whole": False}, 3, "turn 2 (in part)"),
        ({"seen_turn": 0}, 0, "never"),
        ({"seen_turn": 0, "whole": False}, 1, "never"),
    ],
)
def test_the_row_of_a_file(changed: dict[str, Any], turn: int, seen: str) -> None:
    row = table_row(replace(BARE, **changed), turn)
    assert row == f"| a.py | {seen} | No | {'m' * 12} |"
    head = "## KNOWN FILES\n| File | Last Seen | Modified Since | Hash |\n| --- | --- | --- | --- |\n"
    assert table(iter([row]), "more") == f"{head}{row}\nmore"
    assert table([row]) == head + row
    assert (table([]), table([], "more")) == ("", "## KNOWN FILES\nmore")


def test_files_beyond_a_number_are_the_oldest_without_changes() -> None:
    entries = [
        replace(BARE, path="kept", seen_turn=1),
        replace(BARE, path="changed", seen_turn=1, modified_turn=1),
        replace(BARE, path="new", seen_turn=5),
        replace(BARE, path="old b", seen_turn=2),
        replace(BARE, path="old a", seen_turn=2),
    ]
    files = {entry.path: entry for entry in entries}
    order = ("old a", "old b", "new", "changed", "kept")
    for limit in range(7):
        assert overflow(files, limit, ["kept"]) == order[: max(0, 5 - limit)]


def test_the_number_of_files_left_out_is_told() -> None:
    assert left_out_line(0) == ""
    assert left_out_line(1).startswith("1 more seen earlier is left out")
    assert left_out_line(2).startswith("2 more seen earlier are left out")


@pytest.mark.parametrize(
    ("kind", "before", "times"),
    [
        ("read", None, (9, 0, 0)),
        ("read", (1, 2, 3), (9, 2, 3)),
        ("edited", None, (9, 9, 0)),
        ("edited", (1, 2, 3), (9, 9, 3)),
        ("edited", (0, 2, 3), (0, 9, 3)),
        ("changed outside", (1, 2, 3), (1, 2, 9)),
        ("mentioned", (1, 2, 3), (1, 2, 3)),
        ("undone", None, (0, 0, 0)),
    ],
)
def test_a_touch_has_the_times_of_those_before(
    kind: Any, before: tuple[float, float, float] | None, times: tuple[float, float, float]
) -> None:
    earlier = Touch("a", 1, "read", "m", True, 5.0, *before) if before else None
    found = following(Touch("a", 2, kind, "m", at=9.0), earlier)
    assert (found.read_at, found.edited_at, found.outside_at) == times
