"""Dependencies of a turn, and its caches: sent messages by hash, and small text files by their stamp."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tui_agent.errors import FileError, LooksSecret, TooLarge, TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.gate import (
    Decisions,
    Gate,
    SecretFinding,
    UndecidedSecret,
    find_secrets,
    find_secrets_in_file,
)
from tui_agent.files.operating_system import Stamp, is_settled, read_start, stamp_of
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.files.text import decode, md5
from tui_agent.model.local import ProviderFiles
from tui_agent.model.parts import Message
from tui_agent.model.rate_limit import Allowance
from tui_agent.settings.loading import RESPONSE_SCHEMA
from tui_agent.store.conversation import SentMessage
from tui_agent.tools.tool import ToolContext, reply_schema, switched_on

if TYPE_CHECKING:
    from tui_agent.answers.schema import Function, Schema
    from tui_agent.tools.tool import Tool


#: Seconds of inactivity after which a provider's five-minute cache has likely expired.
LONG_PAUSE = 270.0


class CachedMessage(Struct, frozen=True):
    text: str
    message: Message


class ConversationCache:
    """Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[str, CachedMessage] = {}
        self._clock = clock
        self._sent = -LONG_PAUSE
        self.no_summary: dict[str, int] = {}

    @property
    def paused(self) -> bool:
        return self._clock() - self._sent >= LONG_PAUSE

    def note_sent(self) -> None:
        self._sent = self._clock()

    def read(self, blobs: Blobs, messages: Sequence[SentMessage]) -> list[CachedMessage]:
        """Evicts messages of other conversations. Raises `FileError`."""
        found = {
            message.blob: self._kept.get(message.blob) or _read(blobs, message.blob) for message in messages
        }
        self._kept = found
        return [found[message.blob] for message in messages]

    def read_ahead(self, blobs: Blobs, messages: Sequence[SentMessage], pause: Callable[[], object]) -> None:
        found: dict[str, CachedMessage] = {}
        for message in messages:
            if message.blob not in self._kept:
                found[message.blob] = _read(blobs, message.blob)
                pause()
        self._kept = found | self._kept


def shared_beginning(before: Sequence[str], now: Sequence[str]) -> float:
    """Returns the share of `before` in bytes that is a prefix of `now`; 0 if `before` is empty."""
    total = sum(map(_bytes, before))
    if not total:
        return 0.0
    same = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            length = next(
                (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
                min(len(old), len(new)),
            )
            same += _bytes(old[:length])
            break
        same += _bytes(old)
    return same / total


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _read(blobs: Blobs, blob: str) -> CachedMessage:
    text = blobs.get_text(blob)
    return CachedMessage(text, json.loads(text))


class Text(Struct, frozen=True):
    """`fault` is the reason if there is no text; `undecided` if the user can allow it."""

    text: str = ""
    md5: str = ""
    fault: str = ""
    undecided: UndecidedSecret | None = None


class Texts:
    """By path and file stamp. Concurrent requests for one file read it twice."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Path, int], tuple[Stamp, SecretFinding | str]] = {}
        self._present: dict[tuple[str, tuple[str, ...]], tuple[Stamp, list[str]]] = {}

    def present(self, folder: str, names: tuple[str, ...]) -> list[str]:
        """Returns the existing `names` in an absolute `folder`, cached until its entries change."""
        stamp = stamp_of(folder)
        if stamp is None:
            return []
        seen = self._present.get((folder, names))
        if seen is not None and seen[0] == stamp:
            return seen[1]
        found = [name for name in names if os.path.lexists(f"{folder}/{name}")]
        if is_settled(stamp):
            self._present[folder, names] = stamp, found
        return found

    def get(self, gate: Gate, path: str, limit: int, decisions: Decisions) -> Text:
        """Returns at most `limit` bytes."""

        def read() -> SecretFinding:
            return find_secrets_in_file(gate, path, limit)

        return self._text(gate.root / path, limit, read, decisions)

    def get_own(self, path: Path, limit: int, decisions: Decisions) -> Text:
        def read() -> SecretFinding:
            try:
                data = read_start(path, limit + 1)
            except OSError as error:
                raise FileError(
                    f"{path} cannot be read ({error.strerror})", "look at its permissions"
                ) from error
            if len(data) > limit:
                raise TooLarge(f"{path} has more than {limit:,} bytes", "make it shorter")
            named = is_secret(path.name) or is_secret(os.path.realpath(path))
            return find_secrets(str(path), data, decode(data, str(path)), named)

        return self._text(path, limit, read, decisions)

    def _text(
        self, place: Path, limit: int, reader: Callable[[], SecretFinding], decisions: Decisions
    ) -> Text:
        stamp = stamp_of(place)
        seen, judged = self._seen.get((place, limit), (None, ""))
        if stamp is None or seen != stamp:
            try:
                judged = reader()
            except TuiAgentError as error:
                judged = str(error)
            if stamp is not None and is_settled(stamp) and stamp == stamp_of(place):
                self._seen[place, limit] = stamp, judged
        if isinstance(judged, str):
            return Text(fault=judged)
        try:
            return Text(judged.shown(decisions)[0], md5(judged.data))
        except UndecidedSecret as error:
            return Text(fault=str(error), undecided=error)
        except LooksSecret as error:
            return Text(fault=str(error))


@dataclass(frozen=True, kw_only=True)
class TurnContext(ToolContext):
    """`texts` caches instruction files, `sent` the sent messages. An empty planning prompt selects the
    built-in planner.
    """

    prompts: Mapping[str, dict[str, Any]]
    start_folder: str
    #: Remaining requests of the prompt to which this turn belongs.
    requests: Allowance = field(default_factory=Allowance)
    texts: Texts = field(default_factory=Texts)
    sent: ConversationCache = field(default_factory=ConversationCache)
    #: None sends files as text.
    provider_files: ProviderFiles | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """A subset if the model's window is small."""
        from tui_agent.tools.permission import has_tool

        model, off = self.core.state.model, self.core.settings.tools.off
        on = tuple(tool for tool in switched_on(off, few=model.small) if tool.offered(self))
        if self.core.state.agents:
            from tui_agent.tools.spawn_subtasks import TOOL, with_agents

            on = tuple(with_agents(tool) if tool is TOOL else tool for tool in on)
        listed = self.core.state.server_tools
        if not model.small and (listed.inline or listed.by_name):
            from tui_agent.tools.server_tools import server_tools

            on = (*on, *server_tools(listed, off, as_calls=model.protocol == "tools"))
        return tuple(tool for tool in on if has_tool(self.only, tool.name)) if self.only else on

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(tool.function for tool in self.tools)

    @property
    def schema(self) -> Schema:
        return reply_schema(self.prompts[RESPONSE_SCHEMA], self.tools)
