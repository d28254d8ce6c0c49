"""Copyable parts of a message: the whole text, code blocks, outputs."""

from __future__ import annotations

import re
from typing import NamedTuple

from tui_agent.store.state import ChatMessage
from tui_agent.ui.widgets.messages import call_words, grouped

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
    """A message, a code block, or the output of a command or call.

    `ending` is the file extension of such a text. `line` is the index of the message's expandable line, or
    -1.
    """

    message: int
    text: str
    words: str
    ending: str = "md"
    code: bool = False
    line: int = -1


def blocks_of(message: ChatMessage) -> list[TextBlock]:
    """Returns the whole message, its code blocks and its calls in display order."""
    if message.command is not None:
        command = message.command
        text = command.output or command.command
        return [TextBlock(message.number, text, f"output of {command.command}", "txt", line=0)]
    return [*_spoken(message), *_calls(message)]


def _calls(message: ChatMessage) -> list[TextBlock]:
    return [
        TextBlock(
            message.number,
            "\n".join(use.details or call_words(use) for use in uses),
            call_words(uses[0]) if len(uses) == 1 else f"{len(uses)} calls",
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
