"""The servers of a session, as tools use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from tui_agent.store.tool_calls import ListedTool


class ServerResult(Struct, frozen=True):
    """The result of a server's tool. `kept` is the file of a long result, `pictures` are files."""

    text: str
    failed: bool = False
    kept: str = ""
    bytes: int = 0
    pictures: tuple[str, ...] = ()


#: Answers a server's question (server, message, schema) with an action and its content.
AskPerson = Callable[[str, str, dict[str, Any]], Awaitable[tuple[str, dict[str, Any]]]]


class ServerCalls(Struct, frozen=True):
    """The servers of a session, as tools use them. Each raises `TuiAgentError`."""

    #: A tool by its name in requests, as its server lists it now.
    find: Callable[[str], Awaitable[ListedTool]]
    #: Calls a tool; refuses if it is no longer as listed. The last argument answers questions of the server.
    call: Callable[[ListedTool, dict[str, Any], AskPerson], Awaitable[ServerResult]]
    #: Names and descriptions of a server's tools.
    tools_of: Callable[[str], Awaitable[tuple[tuple[str, str], ...]]]
    #: Fingerprint of a server's configuration, which approvals cover.
    covers: Callable[[str], str]
