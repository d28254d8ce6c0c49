"""Prompt commands with arguments, by name: `/effort high`. A command without arguments is an action."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from tui_agent.errors import SessionError
from tui_agent.session.effort_words import EFFORTS, split_effort

if TYPE_CHECKING:
    from tui_agent.session.session import Session

#: A session call that returns a sentence for the user.
Call = Coroutine[Any, Any, str]
_WRITTEN = re.compile(r"/([\w-]+)\s+(.*)", re.DOTALL)


def text_command(text: str) -> tuple[str, str]:
    """Splits a command into name and arguments. Returns ("", text) for other text."""
    found = _WRITTEN.fullmatch(text)
    return (found[1], found[2].strip()) if found and found[1] in TEXT_COMMANDS else ("", text)


def call_of(session: Session, text: str) -> Call | None:
    """Returns the call of a command with arguments, or `None` if the text is a message."""
    name, words = text_command(text)
    return TEXT_COMMANDS[name](session, text, words) if name else None


def _effort(session: Session, text: str, words: str) -> Call | None:
    """`/effort LEVEL` sets the model's effort. With additional words it is a message, parsed by the
    session."""
    effort, _ = split_effort(text)
    return None if effort else _set_effort(session, words.split()[0].lower())


async def _set_effort(session: Session, word: str) -> str:
    effort = next((effort for effort in EFFORTS if effort == word), None)
    if effort is None:
        levels = f"{', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}"
        raise SessionError(f"There is no effort “{word}”", f"write {levels}")
    return await session.models.set_effort(effort)


#: Functions by command name. Parameters: session, full text, arguments. They return the call, or `None` for a
#: message.
TEXT_COMMANDS: Mapping[str, Callable[[Session, str, str], Call | None]] = {"effort": _effort}
