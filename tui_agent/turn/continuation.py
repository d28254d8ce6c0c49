"""Checks whether a turn may continue: asks the user about its cost and warns a looping model."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.errors import LimitReached
from tui_agent.store import events as e
from tui_agent.store.state import State
from tui_agent.store.tool_calls import PermissionDecision
from tui_agent.tools.context import Emit
from tui_agent.tools.tool import ToolResult
from tui_agent.turn.context import TurnContext
from tui_agent.turn.request import AnsweredCall

#: Number of identical calls with identical results that counts as a loop.
LOOP = 3
#: Name of the setting.
ASK_AT_COST = "limits.ask_at_cost"
GO_ON = "send “continue” to resume it, or raise limits.ask_at_cost (0 never asks)"
#: The same for an unknown price, with half of `limits.requests` as the threshold.
GO_ON_UNPRICED = "send “continue” to resume it; limits.requests asks later, limits.ask_at_cost=0 never asks"
#: Durations, ignored when results are compared.
_SECONDS = re.compile(r"\b\d+(?:[.,]\d+)? ?(?:ms|s|sec|seconds)\b")


async def ask_about_cost(context: TurnContext, emit: Emit) -> None:
    """Asks the user once whether a turn that has cost `limits.ask_at_cost` may continue.

    If the price is unknown, the threshold is half of `limits.requests`. Sub-tasks have separate limits.
    Raises `LimitReached` if the user declines or cannot be asked.
    """
    what = "" if context.part else _cost_reached(context)
    if not what:
        return
    state = context.state()
    digest = hashlib.sha256(f"{ASK_AT_COST}\0{state.session.id}\0{state.turn.first}".encode()).hexdigest()
    if any(one.digest == digest and one.answer == "once" for one in state.permissions):
        return
    remedy = GO_ON_UNPRICED if state.usage.turn.cost is None else GO_ON
    if context.ask is None:
        raise LimitReached(what, remedy, ASK_AT_COST)
    call = f"cost_{context.turn}_{state.turn.step}"
    decision = PermissionDecision(digest, "", what, what)
    async with context.asking:
        await emit(e.PermissionAsked(call, "", what, _spent(state), digest))
        while (answer := await context.ask(call, ("once", "no"))).action != call:
            context.progress.pending.append(answer)
    await emit(e.PermissionDecided(replace(decision, answer="once" if answer.path == "once" else "no")))
    if answer.path != "once":
        raise LimitReached(what, remedy, ASK_AT_COST)


def _cost_reached(context: TurnContext) -> str:
    """The turn's cost as a sentence without a full stop if the threshold is reached, or ""."""
    state, limits = context.state(), context.settings.limits
    cost, made = state.usage.turn.cost, context.requests.made
    if not limits.ask_at_cost:
        return ""
    if cost is not None:
        reached = cost >= limits.ask_at_cost
        return f"This turn has cost ${cost:.2f} ({ASK_AT_COST})" if reached else ""
    if state.session.replay or not limits.requests or made < max(1, limits.requests // 2):
        return ""
    requests = "1 request" if made == 1 else f"{made} requests"
    return f"This turn has made {requests} at an unknown price ({ASK_AT_COST})"


def _spent(state: State) -> str:
    usage = state.usage.turn
    steps = "1 step" if state.turn.step == 1 else f"{state.turn.step} steps"
    return f"{steps}, {usage.input + usage.output:,} tokens so far"


class LoopDetector:
    """Counts repeated calls with the same result and the same proposed changes."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    async def note(
        self, context: TurnContext, answered: Sequence[AnsweredCall], emit: Emit
    ) -> tuple[AnsweredCall, ...]:
        """Returns the calls with a hint in looping results and notifies the user about a loop."""
        proposed = repr([(one.path, one.new) for one in context.state().review.open])
        keys = [_digest(one, proposed) for one in answered]
        self._seen.update(set(keys))
        told: list[AnsweredCall] = []
        for one, key in zip(answered, keys, strict=True):
            if (times := self._seen[key]) == LOOP:
                what = _name(context, one)
                sentence = f"The model repeats itself: {what} was called {times} times with the same result"
                await emit(e.NoticeGiven("warning", sentence))
            if times >= LOOP and one.waits:
                one = replace(one, result=_with_hint(one.result, times))
            told.append(one)
        return tuple(told)


def _with_hint(result: ToolResult, times: int) -> ToolResult:
    hint = (
        f"You have made exactly this call {times} times in this turn, with the same result each time: "
        "try something else, or say what is missing."
    )
    return replace(result, text=f"{result.text}\n{hint}" if result.text else hint)


def _name(context: TurnContext, one: AnsweredCall) -> str:
    tool = next((tool for tool in context.tools if tool.name == one.call.name), None)
    shown = tool.shown(one.call) if tool and one.call.entries else ""
    return f"{one.call.name} {shown}".strip()[:200]


def _digest(one: AnsweredCall, proposed: str) -> bytes:
    result = one.result
    files = [(file.path, file.md5) for file in result.loaded.files]
    listed = repr(result.listings)
    parts = (one.call.name, one.call.arguments, _SECONDS.sub("", result.text), repr(files), listed, proposed)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()
