"""Checks of proposed changes, with a limited number of repair requests."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.checks.output import named
from tui_agent.context.blocks import inert, name
from tui_agent.context.excerpts import head_and_tail
from tui_agent.files.key_formats import masked
from tui_agent.store import events as e
from tui_agent.store.commands import CheckResult
from tui_agent.store.state import State
from tui_agent.tools.context import Emit
from tui_agent.tools.run_command import LETTERS, about_view
from tui_agent.tools.tool import Invocation, ToolResult
from tui_agent.turn.context import TurnContext
from tui_agent.turn.request import AnsweredCall, Draft

#: Maximum number of failures of one kind listed by name.
MOST_NAMED = 20


class Repairs:
    """Repair requests of this turn."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask_again(self, context: TurnContext, emit: Emit, *, last: bool) -> Draft | None:
        """Runs the checks and returns a repair request, or None if they passed or no attempt is left.

        After the `last` step of a turn, results are shown without a repair request.
        """
        if context.run_checks is None or not _proposes(context.state()):
            return None
        await emit(e.PhaseChanged("checking"))
        results = await context.run_checks(self.asked)
        failed = [result for result in results if result.state == "failed"]
        runs = {run.id: run for run in context.state().commands.results}
        for result in failed:
            if (run := runs.get(result.run)) is not None and run.excused:
                sentence = f"{result.name}: {run.cause}; the model does not repair this"
                await emit(e.NoticeGiven("warning", sentence))
        failed = [result for result in failed if result.run not in runs or not runs[result.run].excused]
        if not failed:
            return None
        names = ", ".join(result.name for result in failed)
        most = context.settings.checks.repairs
        if last or self.asked >= most:
            again = f" after the model was asked {_times(self.asked)}" if self.asked else ""
            await emit(e.NoticeGiven("warning", f"{names} failed{again}: check it before you apply"))
            return None
        self.asked += 1
        sentence = f"Check {self.asked} failed ({names}): repair {self.asked} of {most}"
        await emit(e.NoticeGiven("info", sentence))
        # Separate from the request's text, which stays identical while the same checks fail.
        tokens = context.settings.commands.output_tokens // len(failed)
        found = "\n\n".join(section(context.state(), result, tokens) for result in failed)
        waiting = {change.path for change in context.state().review.open if change.turn == context.turn}
        query = repair_request([result.name for result in failed], sorted(waiting))
        return Draft(query, answered=(AnsweredCall(Invocation("checks", "checks"), ToolResult(found)),))


def _times(count: int) -> str:
    return "again" if count == 1 else f"again {count} times"


def _proposes(state: State) -> bool:
    return any(change.turn == state.turn.number for change in state.review.open)


def repair_request(checks: Sequence[str], paths: Sequence[str]) -> str:
    """The repair request; the message contains the output separately."""
    return (
        "Your proposed changes were checked before anybody applies them, and this failed: "
        f"{', '.join(checks)}; what was printed is above. Correct the changes. A new change to a file replaces your "
        f"proposed one ({', '.join(paths)}): send each file's changes complete, against the file as you read it. "
        "All your other changes are kept."
    )


def section(state: State, result: CheckResult, tokens: int) -> str:
    run = next((one for one in reversed(state.commands.results) if one.id == result.run), None)
    if run is None:
        return f"## CHECK {name(result.name)}"
    output, left = head_and_tail(masked(run.output), tokens * LETTERS)
    cut = f"\n{left + run.cut:,} lines are skipped." if left + run.cut else ""
    ending = f"exit {run.status}" if run.how == "exit" else run.how
    told = f"{ending}{_counted(result)}{cut}{about_view(run)}"
    return f"## CHECK {name(result.name)}\n{inert(run.command)}\n{told}\n\n{inert(output)}"


def _counted(result: CheckResult) -> str:
    if result.new is None or result.old is None or not (result.old or result.flaky):
        return f", {result.failed} failed" if result.failed else ""
    lines = [f", {result.new} new failure{'' if result.new == 1 else 's'}"]
    if result.new_names:
        lines.append(f"New: {_listed(result.new_names)}")
    if result.old:
        lines.append(
            f"Failed before your changes too, not to be repaired: {_listed(result.old_names) or result.old}"
        )
    if result.flaky:
        lines.append(f"Fails sometimes, not to be repaired: {_listed(result.flaky)}")
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    return inert(", ".join(named(names, MOST_NAMED)))
