"""An answer in plain words is shown once, wherever it is shown, and lists still have a line for it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from support.sessions import open_session

from tui_agent.headless.event_lines import text_line
from tui_agent.log.log import events_of
from tui_agent.log.transfer import as_markdown
from tui_agent.store.events import Event, ReplyRead
from tui_agent.store.state import State
from tui_agent.turn.conversation import memory_of

LAST = "Nothing has to change for that."
PROSE = f"The timeout is in settings.py.\n\n{LAST}"


async def test_plain_words_have_no_summary_and_are_shown_once(tmp_path: Path) -> None:
    async with open_session(tmp_path, [PROSE], services=False) as session:
        session.workspace._indexed.set()
        said: list[str] = []

        def tell(event: Event, state: State) -> None:
            said.extend(text for stream, text in text_line(event, state) if stream == "out")

        session.subscribe(tell)
        await session.chat.submit("Hello")
        await session.chat.finished()
        message = session.state.chat.messages[-1]
        assert (message.summary, message.headline, message.gist) == ("", "", LAST)
        assert "\n".join(said).count(LAST) == 1
        assert memory_of(session.state, 2).summary == LAST
        assert session.log_path is not None
        events = list(events_of(session.log_path))
    older = [replace(it, summary=LAST) if isinstance(it, ReplyRead) else it for it in events]
    for kept in (events, older):
        assert as_markdown("s", kept).count(LAST) == 1, "as an older version has kept it"
    (read,) = [it for it in older if isinstance(it, ReplyRead)]
    assert "\n".join(text for _, text in text_line(read, State())).count(LAST) == 1
