"""A content reset: where it lands, what stays, and when it is none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.sessions import Reply, model_of, open_session, reply
from support.trees import make_tree

from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.turn.request import AROUND_A_MESSAGE

WINDOW = 16_000
SETTINGS = (f"context.window={WINDOW}", "outline_tokens=50", "bundling.enabled=false")


def text(name: str, tokens: int) -> str:
    return "".join(f"{name} = {number:08}  # padding\n" for number in range(tokens * 4 // 32))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    sizes = (2600, 1700, 400, 3100, 900, 2200, 300, 1500, 700, 2800, 500, 1200)
    return make_tree(tmp_path / "work", {f"src/f{n}.py": text(f"f{n}", size) for n, size in enumerate(sizes)})


async def turn(session: Session, request: str) -> None:
    await session.chat.submit(request)
    await session.chat.finished()
    assert session.state.turn.ok, session.state.turn.error


def watch(session: Session) -> list[tuple[float, dict[str, Any]]]:
    """Each request that began anew after the first: its share of the window, and its system prompt's number."""
    resets: list[tuple[float, dict[str, Any]]] = []

    def note(event: e.Event, state: State) -> None:
        if isinstance(event, e.RequestSent) and event.reset and state.conversation.why != "first":
            size = event.tokens + AROUND_A_MESSAGE * len(state.conversation.messages)
            resets.append((size / state.model.window, dict(state.conversation.files)))

    session.subscribe(note)
    return resets


async def test_every_reset_lands_at_its_target_with_what_is_open_first(workspace: Path) -> None:
    # half of it has room for the largest file and for both that are open
    roomy = (*SETTINGS, "context.window=18000")
    async with open_session(workspace, [reply(str(n)) for n in range(30)], overrides=roomy) as session:
        resets = watch(session)
        await session.files.open("src/f1.py")
        await session.files.open("src/f6.py")
        for number in range(24):
            await turn(session, f"Look at src/f{number % 12}.py")
        assert len(resets) >= 3
        assert all(abs(share - 0.5) <= 0.05 for share, _ in resets)
        assert all("src/f1.py" in files for _, files in resets)
        assert all("f1 = 00000001" in r.messages[0]["content"] for r in began_anew(session))


def began_anew(session: Session) -> list[Any]:
    """The requests whose system prompt is not that of the one before, but for the first."""
    requests = model_of(session).requests
    return [now for before, now in pairwise(requests) if now.messages[0] != before.messages[0]]


async def test_a_reset_in_the_middle_of_a_turn_keeps_what_the_turn_has_seen(workspace: Path) -> None:
    def asks(path: str) -> Reply:
        return reply(
            "Needs more.",
            fileRequests=[{"type": "file", "name": path, "patterns": [path]}],
            directoryRequests=[{"path": "src"}],
        )

    replies = [*(reply(str(n)) for n in range(3)), asks("src/f9.py"), asks("src/f5.py"), reply("Done.")]
    async with open_session(workspace, replies, overrides=SETTINGS) as session:
        resets = watch(session)
        for path in ("src/f0.py", "src/f1.py and src/f10.py", "src/f11.py"):
            await turn(session, f"Look at {path}")
        await session.files.open("src/f0.py")  # what is open matters, but less than what the turn asks for
        await session.files.open("src/f2.py")
        assert not resets
        await turn(session, "Look at src/f3.py")
        assert resets
        last = "\n".join(text_of(message) for message in model_of(session).requests[-1].messages)
        for name in ("f3", "f9", "f5"):
            assert last.count(f"{name} = 00000001") == 1
        assert last.count("| f0.py | file |") == 2  # both listings


async def test_what_is_all_needed_now_does_not_begin_anew(workspace: Path) -> None:
    asked = " and ".join(f"src/f{number}.py" for number in (0, 1, 2))
    more = " and ".join(f"src/f{number}.py" for number in (4, 7, 11))
    async with open_session(workspace, [reply(str(n)) for n in range(9)], overrides=SETTINGS) as session:
        resets = watch(session)
        await turn(session, f"Look at {asked}")
        await turn(session, f"Look at {more}")
        assert not resets
        await turn(session, f"Compare {asked} and {more}\n\n{'word ' * 1900}")
        assert session.state.usage.counted > 0.8 * WINDOW and not resets


async def test_a_summary_leaves_room_for_what_is_open(workspace: Path) -> None:
    words = "word " * 2000
    replies: list[Reply] = [reply(f"Answer {number}.", message=words) for number in range(5)]
    async with open_session(workspace, replies, overrides=SETTINGS) as session:
        await session.files.open("src/f1.py")
        await session.files.open("src/f6.py")
        for number in range(5):
            await turn(session, f"Question {number}")
        model_of(session).replies[:] = ["They asked questions.", reply("Answer 5.")]
        await turn(session, "Look at src/f2.py")
        assert [request.purpose for request in model_of(session).requests][-2:] == ["condense", "main"]
        last = model_of(session).requests[-1].messages
        assert "f1 = 00000001" in last[0]["content"] and "They asked questions." in last[1]["content"]
