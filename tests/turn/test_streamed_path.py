"""The file whose change a reply is writing is known while it comes, wherever its pieces are cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.sessions import Reply, calls, open_session, reply

from tui_agent.store.event import Event
from tui_agent.store.events import ReplyStreamed
from tui_agent.store.state import State
from tui_agent.turn.reply import StreamedPaths

CHANGES = [
    {"path": "a/ä.py", "content": 'x = {"path": "no.py"}\n' * 30},
    {"path": "b.py", "edits": [{"search": "path", "replace": '"path": "never.py"'}]},
    {"path": 'c "d".py', "delete": True},
]


@pytest.mark.parametrize("size", [1, 7, 40, 5_000])
@pytest.mark.parametrize("compact", [True, False])
def test_each_change_is_named_when_it_begins(size: int, compact: bool) -> None:
    asked = {"summary": "It.", "directoryRequests": [{"path": "src"}], "fileChanges": CHANGES}
    text = json.dumps(asked, ensure_ascii=compact, separators=(",", ":") if compact else None)
    writing = StreamedPaths()
    begun = [writing.take(text[at : at + size]) for at in range(0, len(text), size)]
    assert list(writing.paths) == [change["path"] for change in CHANGES]
    assert begun[-1] or size < 5_000


@pytest.mark.parametrize(
    "answer", [reply(fileChanges=CHANGES[:2]), calls(("propose_changes", {"changes": CHANGES[:2]}))]
)
async def test_the_state_has_it_while_the_answer_comes(tmp_path: Path, answer: Reply) -> None:
    tools = not isinstance(answer, dict)
    async with open_session(
        tmp_path, [answer, calls(text="Done.")], protocol="tools" if tools else "structured", services=False
    ) as session:
        session.workspace._indexed.set()
        seen: dict[str, int] = {}

        def note(event: Event, state: State) -> None:
            if isinstance(event, ReplyStreamed) and state.reply.writing:
                seen[state.reply.writing] = state.reply.files

        session.subscribe(note)
        await session.chat.submit("Hello")
        await session.chat.finished()
        assert seen.get("b.py") == 2
        assert not session.state.reply.writing
