"""Files that are large beside the window: shown whole while they fit, else the lines that are wanted, with all told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import regex
from support.sessions import calls, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.answers.values import SearchRequest
from tui_agent.errors import ContextTooLong
from tui_agent.files.gate import Gate
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.tools import search_text

WINDOW = 16_000
SETTINGS = (f"context.window={WINDOW}", "outline_tokens=0")


def source(functions: int) -> str:
    body = "    total = value + {0}\n    return total * 2  # padding of function {0}\n\n\n"
    return "import os\n\n" + "".join(f"def function_{n}(value):\n{body.format(n)}" for n in range(functions))


async def send(session: Session, request: str) -> None:
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


def shown(session: Session, request: int = -1) -> list[dict]:
    """The files that went with a request."""
    found = []
    for message in model_of(session).requests[request].messages:
        for line in text_of(message).splitlines():
            if line.startswith('{"type": "read_files"'):
                found += json.loads(line)["files"]
    return found


async def test_a_file_of_most_of_the_free_window_is_shown_whole(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"a.py": "x = 1\n"})
    async with open_session(work, [reply()], overrides=SETTINGS) as session:
        await send(session, "Look at a.py")
        free = WINDOW - session.state.usage.counted
    text = "".join(f"value_{n:06} = {n:06}\n" for n in range(10_000))
    a_line = len("    1234: value_000000 = 000000\\n") / 4
    text = "".join(text.splitlines(keepends=True)[: int(0.9 * free / a_line)])
    (work / "big.py").write_text(text)
    async with open_session(work, [reply()], overrides=SETTINGS) as session:
        await send(session, "Look at big.py")
        (file,) = shown(session)
        assert file["lines"] == len(text.splitlines()) and "shown" not in file
        assert session.state.known.files["big.py"].whole
        assert 0.8 * WINDOW < session.state.usage.counted <= WINDOW


async def test_a_file_of_twenty_windows_is_worked_on_and_edited_rightly(tmp_path: Path) -> None:
    window = 8_000
    text = source(6_500)
    assert len(text) / 4 > 20 * window
    work = make_tree(tmp_path / "work", {"big.py": text})
    edit = {"search": "value + 5777\n", "replace": "value - 5777\n"}
    unseen = {"search": "value + 3333\n", "replace": "value - 3333\n"}
    look = {"actions": [{"type": "file", "name": "more", "patterns": ["big.py"], "lines": ["100-110"]}]}
    replies = [
        calls(("read_files", look)),
        calls(("propose_changes", {"changes": [{"path": "big.py", "edits": [edit]}]})),
        calls(("propose_changes", {"changes": [{"path": "big.py", "edits": [unseen]}]})),
        calls(text="Done."),
    ]
    over = (*SETTINGS, f"context.window={window}")
    async with open_session(work, replies, protocol="tools", overrides=over) as session:
        await send(session, "Make function_5777 in big.py subtract")
        first = shown(session, 0)[0]
        assert "def function_5777(value):" in first["content"] and "1: import os" in first["content"]
        assert first["lines"] == len(text.splitlines()) and "`lines`" in first["part"]
        assert session.state.usage.counted < window
        second = shown(session, 1)[-1]
        assert second["shown"] == "100-110"
        assert second["content"].splitlines()[0] == f"100: {text.splitlines()[99]}"
        assert not session.state.known.files["big.py"].whole
        await session.review.apply()
        assert (work / "big.py").read_text() == text.replace("value + 5777\n", "value - 5777\n")
        known = session.state.known.files["big.py"]
        assert known.written_known and not known.whole and known.shown[0] == (1, 12)
        await send(session, "And the other one")
        await session.review.apply()
        known = session.state.known.files["big.py"]
        line = text[: text.index("value + 3333\n")].count("\n") + 1
        assert not known.written_known and (line, line) in known.shown, (
            "the model was not shown what it changed"
        )
        await send(session, "Is that right?")
        assert f"{line}:     total = value - 3333" in shown(session)[-1]["content"]


async def test_what_a_search_found_is_what_is_shown(tmp_path: Path) -> None:
    text = source(4_000).replace("padding of function 3210", "the odd place")
    work = make_tree(tmp_path / "work", {"big.py": text})
    look = {"actions": [{"type": "file", "name": "it", "patterns": ["big.py"]}]}
    replies = [
        calls(("search_text", {"pattern": "odd place"})),
        calls(("read_files", look)),
        calls(text="Seen."),
    ]
    async with open_session(work, replies, protocol="tools", overrides=SETTINGS) as session:
        await send(session, "Find what is strange here")
        assert "# the odd place" in shown(session)[-1]["content"]


async def test_a_part_says_what_else_is_there(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"big.py": source(2_000)})
    async with open_session(work, [reply(), reply()], overrides=SETTINGS) as session:
        await send(session, "Look at lines 400-420 of big.py")
        (file,) = shown(session)
        assert file["shown"] == "400-420" and "outline" not in file
        await send(session, "What does big.py do?")
        assert shown(session)[-1]["outline"][:2] == ["3: function function_0", "8: function function_1"]
        notices = [notice.text for notice in session.state.notices.items]
        assert any(text.startswith("big.py: the model sees lines 400-420 of ") for text in notices)


async def test_a_window_that_a_refusal_tells_is_filled_with_what_fits(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"big.py": source(1_500)})
    words = "This model's maximum context length is 6000 tokens. However, you requested 60000 tokens."
    refusal = ContextTooLong(f"The request is too long ({words})", "choose another model")
    async with open_session(work, [refusal, reply("Done.")], overrides=["outline_tokens=0"]) as session:
        await send(session, "Look at function_700 in big.py")
        before, after = (sum(len(text_of(m)) for m in r.messages) for r in model_of(session).requests)
        assert after < 0.1 * before
        (file,) = shown(session)
        assert "def function_700(value):" in file["content"]
        assert not session.state.known.files["big.py"].whole


async def test_what_is_left_out_for_room_is_a_load_that_failed(tmp_path: Path) -> None:
    work = make_tree(tmp_path / "work", {"data/big.txt": "word " * 40_000})
    async with open_session(work, [reply()], overrides=SETTINGS) as session:
        await send(session, "Look at all files in data/")
        (action,) = session.state.plan.actions
        assert (action.state, action.loaded, action.left_out) == ("failed", (), ("data/big.txt",))


def test_a_search_shows_what_is_around_a_place_and_names_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_text, "MAX_SEARCHED_BYTES", 5_000)
    monkeypatch.setattr(search_text, "MOST_LARGE", 6_000)
    files = {
        "a.min.js": "x" * 6_000 + "needle" + "y" * 4_000,
        "b.txt": "one\r\ntwo needle\nneedle needle\n",
        "c.log": "z\n" * 4_000 + "needle",
    }
    gate = Gate(make_tree(tmp_path / "work", files))

    def search(*request: Any) -> tuple[list[str], list[tuple[str, int]]]:
        one = SearchRequest(*request)
        expression = regex.compile(one.pattern) if one.regex else None
        return search_text.search_files(gate, sorted(files), one, expression, {})

    places, hits = search("needle")
    assert hits == [("b.txt", 2), ("b.txt", 3), ("a.min.js", 1)]
    assert places[:2] == ["b.txt:2: two needle", "b.txt:3: needle needle"]
    assert "xxneedleyy" in places[2] and len(places[2]) < 300
    assert places[3] == "… not searched, since they are large: c.log"
    assert search("nee?dle$", "c.*", True)[1] == [("c.log", 4_001)]
    assert search("needle\nneedle")[1] == [("b.txt", 2)]
