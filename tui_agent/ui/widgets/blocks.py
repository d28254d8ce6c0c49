"""Messages and the code in them, as what is copied or opened in the editor."""

from __future__ import annotations

import re
from typing import NamedTuple

from tui_agent.store.state import ChatMessage
from tui_agent.ui.widgets.messages import grouped

_FENCE = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[ ]*([^\s`]*)[^\n]*\n(.*?)^[ ]{0,3}\1[`~]*[ ]*$", re.MULTILINE | re.DOTALL
)
_ENDINGS = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "bash": "sh",
    "markdown": "md",
}


class TextBlock(NamedTuple):
    """A message, a piece of `code` in one, or what a command or a call gave: what is copied or opened.

    `ending` is that of a file of its kind. `line` counts the lines that can be unfolded in the message, from 0.
    """

    message: int
    text: str
    words: str
    ending: str = "md"
    code: bool = False
    line: int = -1


def blocks_of(message: ChatMessage) -> list[TextBlock]:
    """The message as a whole, then the code in it, then the calls that it made, from above downwards."""
    if message.command is not None:
        command = message.command
        text = command.output or command.command
        return [TextBlock(message.number, text, f"output of {command.command}", "txt", line=0)]
    return [*_spoken(message), *_calls(message)]


def _calls(message: ChatMessage) -> list[TextBlock]:
    return [
        TextBlock(
            message.number,
            "\n".join(use.details or f"{use.name} {use.shown}" for use in uses),
            uses[0].name if len(uses) == 1 else f"{len(uses)} calls",
            "txt",
            line=at,
        )
        for at, uses in enumerate(grouped(message.calls))
    ]


def _spoken(message: ChatMessage) -> list[TextBlock]:
    text = "\n\n".join(part for part in (message.headline, message.text) if part)
    if not text.strip():
        return []
    who = "your message" if message.kind == "person" else "the message"
    found = [TextBlock(message.number, text, who)]
    for fence in _FENCE.finditer(text):
        language, code = fence[2].strip().lower(), fence[3]
        lines = code.count("\n")
        words = f"{language or 'code'}, {lines} line{'s' * (lines != 1)}"
        ending = _ENDINGS.get(language, language or "txt")
        found.append(TextBlock(message.number, code, words, ending, code=True))
    return found
