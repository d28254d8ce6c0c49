"""Calls available to a front end. Each declares whether it changes state; a read-only session refuses those
that do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tui_agent.errors import OnlyRead
from tui_agent.store.state import State

Call = TypeVar("Call", bound=Callable[..., Any])


def call(*, changes: bool) -> Callable[[Call], Call]:
    """Decorator for methods callable by a front end. A call with `changes` raises `OnlyRead` in a read-only
    session. The method's object must have a `state`."""

    def declared(method: Call) -> Call:
        guarded = _guarded(method) if changes else method
        guarded.changes = changes  # ty: ignore[missing-attribute]
        return cast("Call", guarded)

    return declared


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def refused_later(self: Any, *arguments: Any, **named: Any) -> Any:
            refuse_where_only_read(self.state)
            return await method(self, *arguments, **named)

        return refused_later

    @functools.wraps(method)
    def refused(self: Any, *arguments: Any, **named: Any) -> Any:
        refuse_where_only_read(self.state)
        return method(self, *arguments, **named)

    return refused


def refuse_where_only_read(state: State) -> None:
    """Raises `OnlyRead` if another process writes the session."""
    if state.session.read_only:
        raise OnlyRead(
            f"The session {state.session.id} is open elsewhere, here it can only be read",
            "close it there, or fork it",
        )
