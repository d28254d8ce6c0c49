"""Messages and the code in them, as what is copied or opened in the editor."""

from __future__ import annotations

import re
from typing import NamedTuple

from tui_agent.store.state import ChatMessage

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
    """A message, or a piece of `code` in one: what is copied or opened. `ending` is that of a file of its kind."""

    message: int
    text: str
    words: str
    ending: str = "md"
    code: bool = False


def blocks_of(message: ChatMessage) -> list[TextBlock]:
    """The message as a whole, then the code in it, from above downwards."""
    text = "\n\n".join(part for part in (message.summary, message.text) if part)
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
