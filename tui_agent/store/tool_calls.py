"""Calls of tools as they are shown, and what was decided about them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PermissionAnswer = Literal["once", "session", "always", "no"]


class ToolUse(Struct, frozen=True):
    """A call of a tool as it is shown: what it was about, how long it took (in seconds), and how much it was.

    `details` is what the person reads who opens it.
    """

    id: str
    name: str
    shown: str = ""
    ok: bool = True
    seconds: float = 0.0
    amount: str = ""
    details: str = ""


class PermissionDecision(Struct, frozen=True):
    """Whether a call was allowed: by a rule, by the person, or not, since nobody could be asked.

    `digest` names exactly what was decided about, `what` is as much of that as is kept. `reason` is for the model.
    """

    digest: str
    tool: str
    shown: str = ""
    what: str = ""
    answer: PermissionAnswer = "no"
    by: Literal["rule", "person", "nobody"] = "person"
    reason: str = ""
    #: Whether it would have written or run something.
    acts: bool = False


class PermissionQuestion(Struct, frozen=True):
    """The question that is open: a call of a tool, and exactly what it would do. Without a tool it is if the turn may
    go on, since what `shown` says."""

    call: str
    tool: str
    shown: str
    preview: str

    @property
    def words(self) -> str:
        """What is asked, without its full stop."""
        if not self.tool:
            return f"{self.shown}: may it go on?"
        return f"{self.tool} {self.shown} asks for permission"
