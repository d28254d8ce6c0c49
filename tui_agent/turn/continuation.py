"""Whether a turn may continue, and requests for repairs of failed checks and rejected changes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from tui_agent.checks.output import named
from tui_agent.context.blocks import head_and_tail, inert, name
from tui_agent.edits.change import Change
from tui_agent.errors import LimitReached
from tui_agent.files.masking import masked
from tui_agent.store import events as e
from tui_agent.store.commands import CheckResult
from tui_agent.store.conversation import PermissionDecision
from tui_agent.store.state import State
from tui_agent.tools.load_files import load_files
from tui_agent.tools.run_command import LETTERS, about_view
from tui_agent.tools.tool import Emit, Invocation, ToolResult
from tui_agent.turn.context import TurnContext
from tui_agent.turn.request import AnsweredCall, Draft

#: Identical calls with identical results that count as a loop.
LOOP = 3
ASK_AT_COST = "limits.ask_at_cost"
GO_ON = "send “continue” to resume it, or raise limits.ask_at_cost (0 never asks)"
#: For an unknown price, with half of `limits.requests` as the threshold.
GO_ON_UNPRICED = "send “continue” to resume it; limits.requests asks later, limits.ask_at_cost=0 never asks"
#: Durations, ignored when results are compared.
_SECONDS = re.compile(r"\b\d+(?:[.,]\d+)? ?(?:ms|s|sec|seconds)\b")


async def ask_about_cost(context: TurnContext, emit: Emit) -> None:
    """Asks once, at `limits.ask_at_cost`; with an unknown price, after half of `limits.requests`. Raises
    `LimitReached` unless the user agrees.
    """
    what = "" if context.part else _cost_reached(context)
    if not what:
        return
    state = context.core.state
    digest = hashlib.sha256(f"{ASK_AT_COST}\0{state.session.id}\0{state.turn.first}".encode()).hexdigest()
    if any(one.digest == digest and one.answer == "once" for one in state.permissions):
        return
    remedy = GO_ON_UNPRICED if state.usage.turn.cost is None else GO_ON
    if context.ask is None:
        raise LimitReached(what, remedy, ASK_AT_COST)
    call = f"cost_{context.turn}_{state.turn.step}"
    decision = PermissionDecision(digest, "", what, what)
    async with context.progress.asking:
        usage = state.usage.turn
        steps = "1 step" if state.turn.step == 1 else f"{state.turn.step} steps"
        await emit(
            e.PermissionAsked(
                call, "", what, f"{steps}, {usage.input + usage.output:,} tokens so far", digest
            )
        )
        while (answer := await context.ask(call, ("once", "no"))).action != call:
            context.progress.pending.append(answer)
    await emit(e.PermissionDecided(replace(decision, answer="once" if answer.path == "once" else "no")))
    if answer.path != "once":
        raise LimitReached(what, remedy, ASK_AT_COST)


def _cost_reached(context: TurnContext) -> str:
    state, limits = context.core.state, context.core.settings.limits
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


class LoopDetector:
    """Counts calls with the same result and the same proposed changes."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    async def note(
        self, context: TurnContext, answered: Sequence[AnsweredCall], emit: Emit
    ) -> tuple[AnsweredCall, ...]:
        proposed = repr([(one.path, one.new) for one in context.core.state.review.open])
        keys = []
        for one in answered:
            call, result = one.call, one.result
            files = repr([(file.path, file.md5) for file in result.loaded.files])
            shown = _SECONDS.sub("", result.text)
            parts = (call.name, call.arguments, shown, files, repr(result.listings), proposed)
            keys.append(hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest())
        self._seen.update(set(keys))
        told: list[AnsweredCall] = []
        for one, key in zip(answered, keys, strict=True):
            if (times := self._seen[key]) == LOOP:
                tool = next((tool for tool in context.tools if tool.name == one.call.name), None)
                shown = tool.shown(one.call) if tool and one.call.entries else ""
                what = f"{one.call.name} {shown}".strip()[:200]
                sentence = f"The model repeats itself: {what} was called {times} times with the same result"
                await emit(e.NoticeGiven("warning", sentence))
            if times >= LOOP and one.waits:
                hint = (
                    f"You have made exactly this call {times} times in this turn, with the same result each time: "
                    "try something else, or say what is missing."
                )
                one = replace(
                    one,
                    result=replace(
                        one.result, text=f"{one.result.text}\n{hint}" if one.result.text else hint
                    ),
                )
            told.append(one)
        return tuple(told)


#: Repeated requests for unplaceable and for conflicting changes.
MOST_FAILED = 1
MOST_CONFLICTS = 2


class Retries:
    """`told`: the reasons of the first conflicts are queued for the model."""

    def __init__(self, *, told: bool = False) -> None:
        self._told = told
        self._failed = 0
        self._now: dict[str, str] = {}
        self._asked: dict[str, int] = {}

    def note(self, context: TurnContext) -> None:
        review = context.core.state.review
        context.progress.settled_paths = frozenset(
            path
            for path, change_id in self._now.items()
            if (change := review.change(change_id)) is not None and change.state != "conflict"
        )
        context.progress.asked = dict(self._asked)

    async def ask_again(self, context: TurnContext, changes: Sequence[Change], emit: Emit) -> Draft | None:
        """Returns None if no change may be requested again. Reloads conflicting files."""
        failed = [change for change in changes if change.state == "failed" and self._failed < MOST_FAILED]
        self._failed += bool(failed)
        conflicts = [change for change in changes if may_ask_again(change)]
        if not failed and not conflicts:
            return None
        self._now = {change.path: change.id for change in conflicts}
        self._asked |= {change.path: change.asked + 1 for change in conflicts}
        for change in conflicts if not self._told else ():
            await emit(e.ModelOwesNews(f"Your change to {change.path} could not be merged: {change.reason}."))
        self._told = False
        paths = [path for path in self._now if context.core.workspace.index.contains(path)]
        loaded = await load_files(context, paths, "request", (), emit)
        names = ", ".join(dict.fromkeys(change.path for change in (*failed, *conflicts)))
        why = "the place of the change is ambiguous" if failed else "the same lines of the file have changed"
        await emit(e.NoticeGiven("info", f"Asking the model again for {names}: {why}"))
        query = (
            f"Not taken: {names}; the reasons are above. Resend the changes to these files, each file's "
            "changes complete, against the newest version of the file. All your other changes are kept."
        )
        return Draft(query, loaded=loaded)


def may_ask_again(change: Change) -> bool:
    """Leaves conflicts with the user's or a sub-task's edits to the user."""
    mine = not change.by_hand and not change.tasks
    return change.state == "conflict" and mine and change.asked < MOST_CONFLICTS


MOST_NAMED = 20


class Repairs:
    def __init__(self) -> None:
        self.asked = 0

    async def ask_again(self, context: TurnContext, emit: Emit, *, last: bool) -> Draft | None:
        """Returns None if the checks passed or no attempt is left. In the `last` step, results are only
        shown.
        """
        state = context.core.state
        proposes = any(change.turn == state.turn.number for change in state.review.open)
        if context.calls.run_checks is None or not proposes:
            return None
        await emit(e.PhaseChanged("checking"))
        results = await context.calls.run_checks(self.asked)
        failed = [result for result in results if result.state == "failed"]
        runs = {run.id: run for run in context.core.state.commands.results}
        for result in failed:
            if (run := runs.get(result.run)) is not None and run.excused:
                sentence = f"{result.name}: {run.cause}; the model does not repair this"
                await emit(e.NoticeGiven("warning", sentence))
        failed = [result for result in failed if result.run not in runs or not runs[result.run].excused]
        if not failed:
            return None
        names = ", ".join(result.name for result in failed)
        most = context.core.settings.checks.repairs
        if last or self.asked >= most:
            again = f" after {self.asked} repair{'s' * (self.asked > 1)}" if self.asked else ""
            await emit(e.NoticeGiven("warning", f"{names} failed{again}: check it before you apply"))
            return None
        self.asked += 1
        sentence = f"{names} failed: the model repairs it, {self.asked} of {most}"
        await emit(e.NoticeGiven("info", sentence))
        # Separate from the request's text, which stays identical while the same checks fail.
        tokens = context.core.settings.commands.output_tokens // len(failed)
        found = "\n\n".join(repair_section(context.core.state, result, tokens) for result in failed)
        waiting = {change.path for change in context.core.state.review.open if change.turn == context.turn}
        query = repair_request([result.name for result in failed], sorted(waiting))
        return Draft(query, answered=(AnsweredCall(Invocation("checks", "checks"), ToolResult(found)),))


def repair_request(checks: Sequence[str], paths: Sequence[str]) -> str:
    return (
        "Your proposed changes were checked before anybody applies them, and this failed: "
        f"{', '.join(checks)}; what was printed is above. Correct the changes. A new change to a file replaces your "
        f"proposed one ({', '.join(paths)}): send each file's changes complete, against the file as you read it. "
        "All your other changes are kept."
    )


def repair_section(state: State, result: CheckResult, tokens: int) -> str:
    run = state.commands.result(result.run)
    if run is None:
        return f"## CHECK {name(result.name)}"
    output, left = head_and_tail(masked(run.output), tokens * LETTERS)
    cut = f"\n{left + run.cut:,} lines are skipped." if left + run.cut else ""
    ending = f"exit {run.status}" if run.how == "exit" else run.how
    if result.new is None or result.old is None or not (result.old or result.flaky):
        counted = f", {result.failed} failed" if result.failed else ""
    else:
        counted = ", 1 new failure" if result.new == 1 else f", {result.new} new failures"
        if result.new_names:
            counted += f"\nNew: {_listed(result.new_names)}"
        if result.old:
            named = _listed(result.old_names) or result.old
            counted += f"\nFailed before your changes too, not to be repaired: {named}"
        if result.flaky:
            counted += f"\nFails sometimes, not to be repaired: {_listed(result.flaky)}"
    told = f"{ending}{counted}{cut}{about_view(run)}"
    return f"## CHECK {name(result.name)}\n{inert(run.command)}\n{told}\n\n{inert(output)}"


def _listed(names: Sequence[str]) -> str:
    return inert(", ".join(named(names, MOST_NAMED)))
