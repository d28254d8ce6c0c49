"""What was in view is in view again when a session is resumed, at any size: in the editor and in the transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from support.screens import Driven, on_screen
from support.sessions import open_session

from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.ui.editor.code_editor import Editor
from tui_agent.ui.markdown.message_text import MessageText
from tui_agent.ui.widgets import transcript
from tui_agent.ui.widgets.messages import MessageBlock
from tui_agent.ui.widgets.transcript import ScrollPosition, Transcript

SIZES = ((160, 48), (80, 24))


def the_editor(it: Driven) -> Editor:
    return next(iter(it.screen.query(Editor)))


@pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])
async def test_the_editor_shows_the_lines_that_it_showed(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "long.py").write_text("".join(f"line_{number} = {'x' * 300}\n" for number in range(1, 500)))
    async with open_session(tmp_path, services=False) as session:
        await session.files.open("long.py", 40)
        session.files.scroll("long.py", (300, 12))
        session.set_layout(replace(session.state.layout, focus="buffers"))
    async with on_screen(tmp_path, size=size, session="last") as it:
        await it.until(lambda: the_editor(it).scroll_place == (300, 12), "the place")
        await it.pane("buffers").flush()
        assert it.session.state.buffers.open[0].scroll == (300, 12)
        assert the_editor(it).place == ((39, 0), (39, 0)), "the cursor is where it was too"
        the_editor(it).scroll_to(8, 200, animate=False)
        await it.until(lambda: it.session.state.buffers.open[0].scroll == (200, 8), "another to be kept")
        await it.session.files.open("long.py", 20)
        await it.shows("line_20 ")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer messages at once than usual, so that there are several pages of them."""
    monkeypatch.setattr(transcript, "FIRST", 12)
    monkeypatch.setattr(transcript, "PAGE", 8)


#: Turns of two messages each: more than the state holds.
TURNS = 110


async def talk(session: Session) -> None:
    events: list[e.Event] = []
    for turn in range(1, TURNS + 1):
        body = "- one\n- two\n\n" if turn % 20 == 4 else "" + "word " * 60
        events += [
            e.TurnStarted(turn, f"question {turn}"),
            e.ReplyRead(turn, f"Answer {turn}.", body),
            e.TurnEnded(turn, True),
        ]
    await session.journal.record(*events)


def shown(it: Driven) -> list[int]:
    return [block.message.number for block in it.screen.query(MessageBlock) if block.message]


@pytest.mark.parametrize(
    ("message", "size"), [(10, SIZES[1]), (2 * TURNS - 40, SIZES[0])], ids=["far up, narrow", "near, wide"]
)
@pytest.mark.usefixtures("few")
async def test_the_transcript_shows_the_messages_that_it_showed(
    tmp_path: Path, message: int, size: tuple[int, int]
) -> None:
    async with open_session(tmp_path, services=False) as session:
        await talk(session)
        session.set_layout(replace(session.state.layout, place={"chat": ScrollPosition(message, 2).saved()}))
    async with on_screen(tmp_path, size=size, session="last") as it:
        chat = it.one(Transcript)
        await it.until(lambda: chat.scroll_y > 0, "the place")
        chat.scroll_relative(y=1, animate=False)
        await it.until(lambda: it.session.state.layout.place["chat"]["line"] == 3, "another line to be kept")
        assert it.session.state.layout.place["chat"]["message"] == message
        await it.press("ctrl+end")
        await it.until(lambda: chat.following and 2 * TURNS in shown(it), "the newest")
        await it.pane("chat").flush()
        assert not it.session.state.layout.place


@pytest.mark.usefixtures("few")
async def test_from_far_up_newer_messages_come_at_the_lower_edge(tmp_path: Path) -> None:
    async with open_session(tmp_path, services=False) as session:
        await talk(session)
        session.set_layout(
            replace(session.state.layout, place={"chat": ScrollPosition(2 * TURNS - 24).saved()})
        )
    async with on_screen(tmp_path, size=SIZES[1], session="last") as it:
        chat = it.one(Transcript)
        await it.until(lambda: chat.scroll_y > 0, "the place")
        assert 2 * TURNS not in shown(it)
        for _ in range(100):
            top = chat.scroll_place
            chat.scroll_end(animate=False, immediate=True)
            await it.pilot.pause()
            if chat.following:
                break
            assert top is None or chat.scroll_place is None or chat.scroll_place >= top
        assert chat.following
        assert shown(it) == list(range(shown(it)[0], 2 * TURNS + 1)), "none is missing"


async def test_a_size_that_comes_back_shows_the_same_text(tmp_path: Path) -> None:
    answer = "".join(f"{number} " + "a long paragraph of many words " * 6 + "\n\n" for number in range(6))
    async with on_screen(tmp_path, [answer], size=(80, 24)) as it:
        await it.press("h", "enter")
        await it.session.chat.finished()
        await it.shows("5 a long paragraph")
        await it.press("pageup")
        await it.pilot.pause()
        seen = it.text
        for size in ((160, 48), (40, 10), (80, 24)):
            width = it.one(MessageText).size.width
            await it.pilot.resize_terminal(*size)
            await it.until(lambda: it.one(MessageText).size.width != width, "another width")  # noqa: B023
        await it.until(lambda: it.text == seen, f"the same as before:\n{seen}\n")
