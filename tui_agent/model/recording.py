"""The file that holds recorded exchanges with a model: JSON lines, a header first, then an exchange each.

    {"type":"recording","version":1,"model":"…","protocol":"structured","window":200000,"rehearsal":false}
    {"type":"exchange","pass":"main","ask":"words of the request","chunks":[[0.5,{"type":"text","text":"…"}]]}
    {"type":"exchange","pass":"main","ask":"…","chunks":[],"error":{"kind":"BadKey","what":"…","remedy":"…"}}

A chunk stands with the seconds that passed since the one before. `ask` is what the request was about in the
person's own words, which all the requests of one turn share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct, field

from tui_agent import errors
from tui_agent.errors import ModelError, UsageError
from tui_agent.files.systems import read_given
from tui_agent.model.client import Chunk, Message, Pass

VERSION = 1
T = TypeVar("T")


class Header(Struct, frozen=True, tag="recording", tag_field="type"):
    """What was recorded. With `rehearsal`, exchanges are found by their words, in any order."""

    version: int = VERSION
    model: str = "recorded"
    protocol: Literal["tools", "structured"] = "structured"
    window: int = 0
    rehearsal: bool = False


class RecordedError(Struct, frozen=True):
    kind: str
    what: str
    remedy: str

    def as_error(self) -> ModelError:
        kind = getattr(errors, self.kind, None)
        known = isinstance(kind, type) and issubclass(kind, ModelError)
        return (kind if known else ModelError)(self.what, self.remedy)


class RecordedExchange(Struct, frozen=True, tag="exchange", tag_field="type"):
    """A request, by its words, and what came back; `error` is how it ended, after `chunks`."""

    ask: str
    chunks: tuple[tuple[float, Chunk], ...] = ()
    purpose: Pass = field(default="main", name="pass")
    error: RecordedError | None = None

    @property
    def words(self) -> str:
        return folded(self.ask)


class Recording(Struct, frozen=True):
    header: Header
    exchanges: tuple[RecordedExchange, ...]


def load(path: Path) -> Recording:
    """Raises `UsageError`, which names the line, for a file that is missing or no recording."""
    try:
        lines = read_given(path).splitlines()
    except OSError as error:
        what = f"The recording {path} cannot be read ({error.strerror})"
        raise UsageError(what, "name a file that was made with --record") from error
    header = _line(path, 1, lines[0] if lines else b"", Header)
    if header.version > VERSION:
        what = f"The recording {path} was made by a newer tui-agent"
        raise UsageError(what, "update tui-agent, or record it again")
    numbered = [(number, line) for number, line in enumerate(lines[1:], 2) if line.strip()]
    return Recording(header, tuple(_line(path, number, line, RecordedExchange) for number, line in numbered))


def _line(path: Path, number: int, line: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=type)
    except (msgspec.MsgspecError, RecursionError) as error:
        what = f"{path} is not a recording (line {number}: {error})"
        raise UsageError(what, "name a file that was made with --record") from error


_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)


def asked(messages: Sequence[Message]) -> str:
    """The person's words in the newest user message that has some, else the text of the last message."""
    for message in reversed(messages):
        if message.get("role") == "user" and (found := _QUERY.findall(text_of(message))):
            return found[-1]
    return text_of(messages[-1]) if messages else ""


def text_of(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))


def folded(words: str) -> str:
    """One space for any white space, none at the ends."""
    return " ".join(words.split())


def shortened(words: str, characters: int = 120) -> str:
    line = folded(words)
    return line if len(line) <= characters else line[: characters - 1] + "…"
