"""Questions of servers during a call, asked one field at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tui_agent.answers.schema import check, coerced
from tui_agent.files.numbers import real_number
from tui_agent.files.text import one_line
from tui_agent.store import events as e
from tui_agent.store.tool_calls import PermissionDecision
from tui_agent.tools.context import Emit, ToolContext

#: Maximum number of fields, of choices, and of attempts at a field.
MAX_FIELDS, MAX_CHOICES, MAX_TRIES = 10, 20, 3
DECLINE, TYPED, YES = "decline", "typed", "yes"
_REFUSE = (DECLINE, "Do not answer")


async def ask_person(
    context: ToolContext, emit: Emit, server: str, message: str, schema: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The action and content for a server's question: accept, decline, or cancel."""
    fields = schema.get("properties")
    fields = fields if isinstance(fields, dict) else {}
    if context.ask is None or len(fields) > MAX_FIELDS:
        why = "a confirmation is not possible here" if context.ask is None else "it has too many fields"
        await emit(e.NoticeGiven("warning", f"A question of the server {server} was declined: {why}"))
        return "decline", {}
    asking = _Asking(context, emit, server, message, f"The server {server} receives the answer.")
    if url := schema.get("url"):
        chosen, _ = await asking.ask(
            f"It wants you to open {url}", ((YES, "I opened it"), _REFUSE), typed=False
        )
        return ("accept" if chosen == YES else "decline"), {}
    if not fields:
        chosen, _ = await asking.ask("", ((YES, "Yes"), _REFUSE), typed=False)
        return ("accept", {}) if chosen == YES else ("decline", {})
    content: dict[str, Any] = {}
    needed = schema.get("required") or ()
    for name, part in fields.items():
        part = part if isinstance(part, dict) else {}
        for attempt in range(MAX_TRIES + 1):
            if attempt == MAX_TRIES:
                return "cancel", {}
            chosen, text = await asking.ask(
                _title(name, part, attempt), _answers(part), typed=not _choices(part)
            )
            if chosen == DECLINE:
                return "decline", {}
            if chosen == TYPED and not text and name not in needed:
                break
            value = _value(part, chosen, text)
            if not check(part, value, name):
                content[name] = value
                break
    return "accept", content


async def ask_permission(
    context: ToolContext, emit: Emit, agent: str, what: str, answers: Sequence[tuple[str, str]]
) -> str:
    """ "" for none of the answers."""
    asking = _Asking(context, emit, agent, what, f"{agent} works in a view: no file changes until you apply.")
    offered = tuple((key, one_line(name)[:100]) for key, name in answers[:MAX_CHOICES])
    chosen, _ = await asking.ask(what, offered, typed=False)
    return chosen if chosen in dict(offered) else ""


class _Asking:
    """One question of a server or an agent, in as many parts as it has fields."""

    def __init__(self, context: ToolContext, emit: Emit, server: str, message: str, about: str) -> None:
        self._context, self._emit, self._server, self._message = context, emit, server, message
        self._about = about
        self._number = 0

    async def ask(self, title: str, answers: tuple[tuple[str, str], ...], *, typed: bool) -> tuple[str, str]:
        assert self._context.ask is not None
        self._number += 1
        what = f"{self._server} asks: {one_line(self._message)[:300]}"
        call = f"server_{self._server}_{self._context.turn}_{id(self)}_{self._number}"
        shown = f"{title}\n\n{self._about}" if title else self._message
        digest = hashlib.sha256(call.encode()).hexdigest()
        async with self._context.asking:
            await self._emit(e.PermissionAsked(call, "", what, shown, digest, answers, typed))
            offered = [key for key, _ in answers]
            while (answer := await self._context.ask(call, offered)).action != call:
                self._context.progress.pending.append(answer)
            kept = "no" if answer.path in ("", "no", DECLINE) else "once"
            decision = PermissionDecision(digest, self._server, one_line(self._message)[:100], answer=kept)
            await self._emit(e.PermissionDecided(decision))
        chosen = answer.path if answer.path in offered else DECLINE
        return chosen, " ".join(answer.patterns).strip()


def _title(name: str, part: dict[str, Any], attempt: int) -> str:
    words = part.get("title") or name
    about = f": {part['description']}" if part.get("description") else ""
    again = "This answer is invalid. " if attempt else ""
    return f"{again}{one_line(str(words))[:100]}{one_line(str(about))[:300]}"


def _choices(part: dict[str, Any]) -> list[tuple[Any, str]]:
    """The values that a field allows, with their names."""
    if part.get("type") == "boolean":
        return [(True, "Yes"), (False, "No")]
    options = [one for one in part.get("oneOf") or () if isinstance(one, dict) and "const" in one]
    if options:
        return [(one["const"], str(one.get("title") or one["const"])) for one in options[:MAX_CHOICES]]
    values, names = part.get("enum"), part.get("enumNames")
    values = values if isinstance(values, list) else []
    names = names if isinstance(names, list) else values
    return [(value, str(name)) for value, name in zip(values[:MAX_CHOICES], names, strict=False)]


def _answers(part: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    if choices := _choices(part):
        return (*((f"choice {at}", one_line(name)[:100]) for at, (_, name) in enumerate(choices)), _REFUSE)
    return ((TYPED, "Answer"), _REFUSE)


def _value(part: dict[str, Any], chosen: str, text: str) -> Any:
    for at, (value, _) in enumerate(_choices(part)):
        if chosen == f"choice {at}":
            return value
    if part.get("type") == "number":
        return real_number(text)
    return coerced(part, text)
