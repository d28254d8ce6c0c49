"""Whether a turn may go on: once it has cost much the person is asked, and a model that goes in a circle is told so."""

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
from tui_agent.turn.request import Answered

#: The same call with the same result so many times is a loop.
LOOP = 3
#: The limit, by the name of its setting.
ASK_AT_COST = "limits.ask_at_cost"
GO_ON = "send “continue” to let it go on, or raise it with --set limits.ask_at_cost=… (0 never asks)"
#: The same where no price is known, so that half of `limits.requests` stands for it.
GO_ON_UNPRICED = (
    "send “continue” to let it go on; --set limits.requests=… asks later, limits.ask_at_cost=0 never"
)
#: Results that differ only in how long something took are the same.
_SECONDS = re.compile(r"\b\d+(?:[.,]\d+)? ?(?:ms|s|sec|seconds)\b")


async def ask_about_cost(context: TurnContext, emit: Emit) -> None:
    """Ask the person once whether a turn that has cost `limits.ask_at_cost` may go on.

    Without a known price half of `limits.requests` stands for it. Sub-tasks have limits of their own. Raises
    `LimitReached` where the answer is no, or nobody can be asked.
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
    """What the turn has cost, as a sentence without its full stop, where that is as much as is asked about."""
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


class Loops:
    """Counts the calls of a turn that were made before, with the same result, while the same changes were proposed."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    async def note(
        self, context: TurnContext, answered: Sequence[Answered], emit: Emit
    ) -> tuple[Answered, ...]:
        """The calls with their results; what is a loop is said to the person, and in the result to the model."""
        proposed = repr([(one.path, one.new) for one in context.state().review.open])
        keys = [_digest(one, proposed) for one in answered]
        self._seen.update(set(keys))
        told: list[Answered] = []
        for one, key in zip(answered, keys, strict=True):
            if (times := self._seen[key]) == LOOP:
                what = _name(context, one)
                sentence = f"The model goes in a circle: {what} was called {times} times with the same result"
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


def _name(context: TurnContext, one: Answered) -> str:
    tool = next((tool for tool in context.tools if tool.name == one.call.name), None)
    shown = tool.shown(one.call) if tool and one.call.entries else ""
    return f"{one.call.name} {shown}".strip()[:200]


def _digest(one: Answered, proposed: str) -> bytes:
    result = one.result
    files = [(file.path, file.md5) for file in result.loaded.files]
    listed = repr(result.listings)
    parts = (one.call.name, one.call.arguments, _SECONDS.sub("", result.text), repr(files), listed, proposed)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()
