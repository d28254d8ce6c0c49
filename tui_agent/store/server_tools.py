"""The tools of servers in a session's requests."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ListedTool(Struct, frozen=True):
    """A server's tool: its name in requests, its server and its name there, its description and schema.

    `digest` is the fingerprint of its description and schema.
    """

    name: str
    server: str
    tool: str
    description: str = ""
    schema: dict[str, Any] = {}
    digest: str = ""


class ServerToolsSlice(Struct, frozen=True):
    """The tools that requests describe in full (`inline`), or else name in the prompt (`named`).

    `unknown` are servers that had not listed their tools when the session's first request left.
    """

    inline: tuple[ListedTool, ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def by_name(self) -> bool:
        """Whether tools are described and called by name."""
        return bool(self.named or self.unknown)
