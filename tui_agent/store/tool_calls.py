"""Displayed tool calls, decisions about them, and the tools of servers in a session's requests."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

PermissionAnswer = Literal["once", "session", "always", "no"]


class ToolUse(Struct, frozen=True):
    """As displayed: subject, duration in seconds, amount. `details` is shown when the user expands the call."""

    id: str
    name: str
    shown: str = ""
    ok: bool = True
    seconds: float = 0.0
    amount: str = ""
    details: str = ""


class PermissionDecision(Struct, frozen=True):
    """By a rule, a hook or the user, or a denial in headless mode. `digest` identifies the exact call, `what` is its
    stored part. `reason` is for the model."""

    digest: str
    tool: str
    shown: str = ""
    what: str = ""
    answer: PermissionAnswer = "no"
    by: Literal["rule", "hook", "person", "nobody"] = "person"
    reason: str = ""
    #: Whether it would have written or executed something.
    acts: bool = False


class PermissionQuestion(Struct, frozen=True):
    """A tool call and its exact effect. Without a tool: whether the turn may continue, because of `shown`.

    With `answers` (by key), a question of its own; with `typed`, typed text is part of the first answer.
    """

    call: str
    tool: str
    shown: str
    preview: str
    answers: tuple[tuple[str, str], ...] = ()
    typed: bool = False

    @property
    def words(self) -> str:
        """A sentence without final punctuation."""
        if self.answers:
            return self.shown
        if not self.tool:
            return f"{self.shown}: continue?"
        return f"{self.tool} {self.shown} asks for permission"


class ListedTool(Struct, frozen=True):
    """Its name in requests, its server and its name there. `digest` is the fingerprint of description and
    schema."""

    name: str
    server: str
    tool: str
    description: str = ""
    schema: dict[str, Any] = {}
    digest: str = ""


class ServerToolsSlice(Struct, frozen=True):
    """Described in full (`inline`), or only named in the prompt (`named`). `unknown` are servers that had not
    listed their tools at the first request."""

    inline: tuple[ListedTool, ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def by_name(self) -> bool:
        return bool(self.named or self.unknown)
