"""Long texts that are pasted: a line in what is written, the text a blob that is sent once, counted before."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bursts import DOWN, ENTER, Typist
from support.screens import on_screen
from support.sessions import model_of, open_session, reply
from support.trees import make_tree
from textual import events

from tui_agent.errors import SessionError
from tui_agent.turn.pastes import pasted_line
from tui_agent.ui.widgets.prompt import Prompt

FILES = {"a.py": "x = 1\n"}
LOG = "\n".join(f"line {number} of a log that somebody pastes" for number in range(4_000))


def test_the_line_says_how_much_it_is() -> None:
    assert pasted_line("x" * 60 + "\n", ()) == "[pasted 0 kB, 1 line]"
    text = ("x" * 64 + "\n") * 160_000
    assert pasted_line(text, ()) == "[pasted 10.4 MB, 160,000 lines]"
    assert pasted_line(text, {"[pasted 10.4 MB, 160,000 lines]"}) == "[pasted 10.4 MB, 160,000 lines (2)]"


async def test_it_is_sent_once_whole_and_is_a_line_everywhere_else(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", FILES)
    async with open_session(work, [reply("Seen."), reply("Again.")]) as session:
        line = session.chat.keep_paste(LOG)
        await session.chat.submit(f"Why does it fail?\n{line}\nThe last one counts.")
        await session.chat.finished()
        (request,) = model_of(session).requests
        asked = [message["content"] for message in request.messages if message["role"] == "user"]
        assert "".join(asked).count(LOG) == 1
        assert f"Why does it fail?\n{LOG}\nThe last one counts." in asked[-1]
        assert session.state.chat.messages[0].text == f"Why does it fail?\n{line}\nThe last one counts."
        assert "line 3999 of" not in str(session.state), "which holds the line alone"
        await session.chat.submit("Go on")
        await session.chat.finished()
        assert str(model_of(session).requests[-1].messages).count("line 3999 of") == 1
        name = session.state.session.id
    async with open_session(work, [reply("Still there.")], session=name) as session:
        await session.chat.submit(f"And now? {line}")
        await session.chat.finished()
        assert LOG in model_of(session).requests[-1].messages[-1]["content"]


async def test_more_than_the_model_takes_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async with open_session(make_tree(tmp_path / "work", FILES)) as session:
        line = session.chat.keep_paste(LOG * 3)
        with pytest.raises(SessionError, match=r"has about 1\d\d,\d{3} tokens, .* save it as a file"):
            await session.chat.submit(f"Why? {line}")
        assert model_of(session).requests == []
        assert not session.state.turn.running


async def test_the_refusal_offers_to_save_it_as_a_file_and_a_key_does(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", FILES | {"pasted.txt": "of somebody else\n"})
    async with on_screen(work) as it:
        prompt = it.one(Prompt)
        await it.press("w", "h", "y", "space")
        prompt.post_message(events.Paste(LOG * 3))
        await it.until(lambda: "[pasted " in prompt.text, "the line")
        await it.press("enter")
        await it.shows("Save it as a file in the workspace")
        assert "tokens, and" in it.text
        await it.press("enter")
        assert "[pasted " in prompt.text and not (work / "pasted-2.txt").exists(), "it was left there"
        await Typist(it, work).types(ENTER + DOWN + ENTER)
        await it.until(lambda: prompt.text == "why pasted-2.txt", "the name of the file")
        assert (work / "pasted-2.txt").read_text() == LOG * 3
        assert (work / "pasted.txt").read_text() == "of somebody else\n"
