"""Looking back in the chat: found words, messages sent before, blocks, a retry, the place kept at another size."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens import on_screen
from support.sessions import calls, open_session, reply

from tui_agent.errors import SessionError, TimedOut
from tui_agent.session import chat as session_chat
from tui_agent.session.session import Session
from tui_agent.ui.host import Choice
from tui_agent.ui.widgets.messages import blocks_of
from tui_agent.ui.widgets.prompt import Prompt
from tui_agent.ui.widgets.transcript import Transcript

CODE = "Like this:\n\n```python\nx = 1\ny = 2\n```\n\nand done."
LONG = "\n\n".join(
    f"Paragraph {number} of a long answer, which is as long as a line or two." for number in range(60)
)


async def test_blocks_are_walked_copied_and_opened_and_words_are_found(tmp_path: Path) -> None:
    async with on_screen(tmp_path, [reply("First.", message=CODE), reply("Second.", message=LONG)]) as it:
        for words in ("show me", "tell me"):
            await it.session.chat.submit(words)
            await it.session.chat.finished()
        await it.shows("Paragraph 59")
        answer = next(message for message in it.session.state.chat.messages if message.summary == "First.")
        assert [block.words for block in blocks_of(answer)] == ["the message", "python, 2 lines"]
        await it.press("ctrl+f", *"y = 2", "enter")
        await it.shows("Like this")
        assert not it.one(Transcript).following
        await it.press("ctrl+o", "y", "up", "up")
        assert it.app.screen.get_selected_text() == "x = 1\ny = 2"  # the code, and not the message around it
        strips = it.app.screen._compositor.render_strips()
        drawn = next(list(strip) for strip in strips if "x = 1" in strip.text)
        inks = {part.style.color for part in drawn if part.style and part.text.strip() in ("x", "=", "1")}
        assert len(inks) > 1, "code keeps its colours while it is chosen"
        await it.press("y")
        await it.asked()
        assert it.app.clipboard == "x = 1\ny = 2\n"
        await it.press("o")
        await it.until(lambda: it.session.state.layout.focus == "buffers")
        buffer = it.session.state.buffers.get("block-1.py")
        assert buffer is not None and buffer.text == "x = 1\ny = 2\n" and buffer.unsaved
        assert not (tmp_path / "block-1.py").exists()
        await it.press("f7", *"mine", "ctrl+r", *"show", "enter")
        await it.until(lambda: it.one(Prompt).text == "show me\nmine", "both texts")


async def test_calls_and_outputs_are_walked_unfolded_and_copied_by_keys(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    found = calls(("search_text", {"pattern": "needle"}), text="Looks.")
    async with on_screen(tmp_path, [found, calls(text="It is done.")], protocol="tools", size=(80, 24)) as it:
        await it.press(*"look", "enter")
        await it.shows("It is done.")
        await it.press(*"!seq 30", "enter")
        await it.shows("… 22 more")
        await it.press(*"draft", "shift+f7")
        await it.shows("output of seq 30 · Enter unfolds · y copies")
        assert not it.app._notifications, "a line of the chat says it"
        await it.press("enter")
        await it.until(lambda: "… 22 more" not in it.text and "▾ ✓ seq 30" in it.text, "all lines")
        await it.press("enter", "y")
        await it.shows("… 22 more")
        assert it.app.clipboard == "".join(f"{number}\n" for number in range(1, 31))
        await it.press("up", "up")
        await it.shows("searched for “needle” · Enter unfolds")
        assert "a.txt:1" not in it.text
        await it.press("enter")
        await it.shows("a.txt:1")
        await it.press("escape", *"s")
        await it.until(lambda: it.one(Prompt).text == "drafts", "the prompt again")
        assert "Enter unfolds" not in it.text


async def test_what_is_read_stays_in_view_at_another_size(tmp_path: Path) -> None:
    async with on_screen(tmp_path, [reply("Long.", message=LONG)], size=(160, 48)) as it:
        await it.session.chat.submit("tell me")
        await it.session.chat.finished()
        await it.shows("Paragraph 59")
        transcript = it.one(Transcript)
        await it.press("f7", "pageup", "pageup")
        await it.until(lambda: not transcript.following)
        top = transcript.scroll_place
        assert top is not None
        await it.press("f9")
        await it.pilot.pause(0.2)
        zoomed = transcript.scroll_place
        await it.press("f9")
        await it.pilot.pause(0.2)
        assert zoomed is not None and zoomed.message == top.message and transcript.scroll_place == top


async def test_what_failed_is_sent_again_by_a_key(tmp_path: Path) -> None:
    async with on_screen(
        tmp_path, [TimedOut("The model was silent for 120 s", "try again"), reply("Hi.")]
    ) as it:
        await it.press(*"hello", "enter")
        await it.until(lambda: it.one(Prompt).text == "hello")
        await it.press("ctrl+o", "comma")
        await it.shows("Hi.")
        assert it.one(Prompt).text == "" and it.session.state.turn.request == "hello"
        await it.press("ctrl+o", "comma")
        await it.shows("No message has failed")


async def test_an_earlier_message_is_edited_in_a_copy_from_before_it(tmp_path: Path) -> None:
    chosen: list[Choice] = []

    async def reopen(choice: Choice) -> Session:
        raise AssertionError("the app is left before it opens another")

    async with on_screen(tmp_path, [reply("One."), reply("Two.")]) as it:
        for words in ("first wish", "second wish"):
            await it.session.chat.submit(words)
            await it.session.chat.finished()
        it.app.reopen = reopen

        async def switch(choice: Choice) -> None:
            chosen.append(choice)

        it.app.switch = switch
        await it.press("ctrl+o", "L", *"second", "enter")
        await it.until(lambda: chosen)
        folders = it.session.folders
    async with open_session(
        tmp_path, session=chosen[0].session, draft=chosen[0].draft, services=False
    ) as copy:
        assert copy.state.turn.number == 1 and copy.state.input.draft == "second wish"
        assert copy.folders == folders


async def test_earlier_messages_that_cannot_be_read_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object, **__: object) -> None:
        raise SessionError("The log cannot be read", "start again")

    async def reopen(choice: Choice) -> Session:
        raise AssertionError(choice)

    monkeypatch.setattr(session_chat, "messages_before", unreadable)
    async with on_screen(tmp_path, [reply("First.")]) as it:
        await it.session.chat.submit("one")
        await it.session.chat.finished()
        it.app.reopen = reopen
        await it.press("ctrl+o", "L")
        await it.until(lambda: it.session.state.notices.items, "the notice")
        assert "The log cannot be read" in it.session.state.notices.items[-1].text
