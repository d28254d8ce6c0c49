"""Long pasted texts: a placeholder line in the prompt, the text in a blob, expanded in the request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from tui_agent.errors import PasteTooLong

if TYPE_CHECKING:
    from tui_agent.turn.context import TurnContext

PASTED = re.compile(r"\[pasted [\d.]+ [kM]B, [\d,]+ lines?(?: \(\d+\))?\]")


def pasted_line(text: str, taken: Collection[str]) -> str:
    size, lines = len(text.encode("utf-8", "replace")), text.count("\n") + (not text.endswith("\n"))
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
    line = f"[pasted {shown}, {lines:,} line{'' if lines == 1 else 's'}"
    names = (f"{line}]", *(f"{line} ({number})]" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


async def with_pastes(context: TurnContext, text: str) -> str:
    known = context.core.state.input.pastes
    lines = {line for line in PASTED.findall(text) if line in known}
    if not lines:
        return text
    read = context.core.blobs.get_text
    texts = {line: await asyncio.to_thread(read, known[line]) for line in lines}
    return PASTED.sub(lambda found: texts.get(found[0], found[0]), text)


async def check_pastes(context: TurnContext, text: str) -> None:
    """Raises `PasteTooLong` for the expanded text."""
    from tui_agent.tools.load_files import window_of

    whole = await with_pastes(context, text)
    state = context.core.state
    window = window_of(state)
    if len(whole) == len(text) or state.session.replay or len(whole.encode(errors="replace")) <= window:
        return
    counted = await context.model.count(state.model.name, [whole], wait=True)
    tokens = counted.counts[0]
    if tokens > window:
        about = "" if counted.exact else "about "
        raise PasteTooLong(
            f"The pasted text has {about}{tokens:,} tokens, and {state.model.name} takes {window:,}",
            [line for line in dict.fromkeys(PASTED.findall(text)) if line in state.input.pastes],
        )
