"""The inbox: what waits in this session, and other running sessions over their control sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.screens import on_screen
from support.sessions import reply
from textual.widgets import OptionList

from tui_agent.control import sockets
from tui_agent.control.server import Client, ControlServer, word
from tui_agent.edits.change import Change
from tui_agent.headless.event_lines import lines_with_end
from tui_agent.store import events as e
from tui_agent.store.state import OtherSession, ReviewSlice, State, TurnSlice
from tui_agent.ui.dialogs.chooser import room_of
from tui_agent.ui.dialogs.inbox import WIDEST, inbox_rows


class NoTerminal:
    """The terminals of a session that has one here."""

    is_attached = True

    def attach(self, client: Client, descriptors: tuple[int, int], message: Mapping[str, Any]) -> None:
        raise AssertionError

    def detach(self) -> None: ...

    def on_message(self, client: Client, message: Mapping[str, Any]) -> None: ...

    def on_lost(self, client: Client) -> None: ...

    async def leave(self, status: int) -> None: ...


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (folder := tmp_path / "work").mkdir()
    (folder / "a.py").write_text("a = 1\n")
    return folder


@asynccontextmanager
async def other_session(state: dict[str, Any]) -> AsyncGenerator[list[dict[str, Any]]]:
    """A session of another process, as its socket shows it. Yields the messages that it gets."""
    said: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps({"type": "state", **state}).encode() + b"\n")
        while line := await reader.readline():
            message = json.loads(line)
            if message["type"] == "states":
                continue
            said.append(message)
            writer.write(json.dumps({"type": "result", "of": message["type"], "ok": True}).encode() + b"\n")
        writer.close()

    place = sockets.SessionSocket(sockets.made_folder(), state["id"], state["pid"])
    server = await asyncio.start_unix_server(serve, sock=sockets.listening(place.folder, place.name))
    try:
        yield said
    finally:
        server.close()
        (place.folder / place.name).unlink()


ASKS = {
    "id": "20260101-000000-aaaa",
    "pid": 1,
    "workspace": "/somewhere/shop",
    "title": "prices",
    "state": "asks",
    "asks": "Run make test?",
    "choices": ["once", "session", "always", "no"],
    "changes": 0,
    "attached": False,
}
WORKS = {
    **ASKS,
    "id": "20260101-000001-bbbb",
    "state": "works",
    "asks": None,
    "choices": [],
    "title": "bills",
}


async def test_a_question_of_another_session_is_counted_and_answered(workspace: Path) -> None:
    async with other_session(ASKS) as said, other_session(WORKS), on_screen(workspace) as driven:
        server = ControlServer(driven.session, NoTerminal(), lines_with_end)
        await driven.shows("inbox 1")
        await driven.press("ctrl+n")
        await driven.shows("shop · prices · Run make test?")
        rows = [line for line in driven.text.splitlines() if "shop · " in line]
        assert "asks" in rows[0] and "works" in rows[1]
        await driven.shows("Tab answers it")
        await driven.pilot.resize_terminal(240, 40)
        await driven.until(
            lambda: driven.app.screen.query_one(OptionList).size.width >= room_of(240, WIDEST) > 150,
            "the room",
        )
        await driven.press("tab")
        await driven.shows("2  Allow exactly this for the rest of that session")
        await driven.press("down", "enter")
        await driven.until(lambda: said, "the answer")
        assert said == [{"type": "answer", "text": "2"}]
        await driven.press("tab", *"never", "escape")
        typed = driven.session.state.input.typed
        assert typed == {f"inbox:{ASKS['id']}": "never"}
        await driven.press("tab")
        await driven.shows("Answer “never”")
        await driven.press("end", *" here", "enter")
        await driven.until(lambda: len(said) == 2, "the second answer")
        assert said[1] == {"type": "answer", "text": "never here"}
        assert not driven.session.state.input.typed
        server.close()
        await driven.until(lambda: not driven.session.state.others, "no sessions without a terminal")


async def test_sessions_that_begin_and_end_appear_and_disappear(workspace: Path) -> None:
    async with on_screen(workspace) as driven:
        server = ControlServer(driven.session, NoTerminal(), lines_with_end)
        async with other_session(ASKS):
            await driven.shows("inbox 1")
        await driven.until(lambda: "inbox 1" not in driven.text, "the end of it")
        server.close()


async def test_enter_shows_the_change_and_the_key_of_an_item_acts_on_it(workspace: Path) -> None:
    edits = [{"search": "a = 1", "replace": "a = 2"}]
    answer = reply("Done.", fileChanges=[{"path": "a.py", "edits": edits}])
    async with on_screen(workspace, [answer]) as driven:
        await driven.session.chat.submit("x")
        await driven.session.chat.finished()
        await driven.press("ctrl+n")
        await driven.shows("1 change in 1 file")
        assert "F8           pending       1 change" in driven.text
        assert "Tab answers" not in driven.text, "it asks nothing"
        await driven.press("enter")
        await driven.until(lambda: driven.session.state.layout.focus == "review", "the review")
        await driven.press("ctrl+n", "f8")
        await driven.until(lambda: (workspace / "a.py").read_text() == "a = 2\n", "the change")
        await driven.press("ctrl+n")
        await driven.shows("Nothing waits for you")


@pytest.mark.parametrize(
    "name", ["asks", "failed", "checks failed", "has changes", "done", "works", "idle", "naps"]
)
def test_other_sessions_are_sorted_by_urgency(name: str) -> None:
    order = ["asks", "failed", "checks failed", "has changes", "done", "works", "idle", "naps"]
    others = [OtherSession(str(at), "/a", state) for at, state in enumerate(reversed(order))]
    rows = list(inbox_rows(State(), others))
    assert [row.state for row in rows] == order
    assert OtherSession("x", "/a", name).waits_for_user == (order.index(name) < 4)


@pytest.mark.parametrize(("kind", "said"), [("Interrupted", "done"), ("NoModel", "failed")])
def test_a_turn_that_failed_is_not_done(kind: str, said: str) -> None:
    assert word(State(turn=TurnSlice(1, ok=False, kind=kind))) == said
    assert word(State(turn=TurnSlice(1))) == "done"


@pytest.mark.parametrize(
    ("conflicts", "last"), [(5, "m4.py"), (6, "m5.py"), (7, "and 2 others"), (40, "and 35 others")]
)
def test_a_kind_has_six_rows_at_most_and_none_for_one_other(conflicts: int, last: str) -> None:
    changes = tuple(Change(str(at), 1, f"m{at}.py", "edit", "conflict") for at in range(conflicts))
    rows = list(inbox_rows(State(review=ReviewSlice(changes=changes)), []))
    assert len(rows) == min(conflicts, 6) and rows[-1].words == last


async def test_a_client_that_wants_states_gets_no_events(workspace: Path) -> None:
    async with on_screen(workspace) as driven:
        server = ControlServer(driven.session, NoTerminal(), lines_with_end)
        with sockets.connect(server.place) as connection:
            connection.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=connection)
            writer.write(b'{"type": "states"}\n{"type": "mode", "mode": "ask"}\n')
            kinds = []
            while "result" not in kinds:
                kinds.append(json.loads(await reader.readline())["type"])
            driven.session.journal.publish(e.OthersSeen())
            await driven.session.notice("said")
            await driven.session.rename("renamed")
            while kinds[-1] != "state" or len(kinds) < 3:
                kinds.append(json.loads(await reader.readline())["type"])
            assert "notice" not in kinds
            writer.close()
        server.close()
