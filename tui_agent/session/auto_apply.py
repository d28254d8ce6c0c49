"""Mode `auto`: changes that pass all checks are written without a key press."""

from __future__ import annotations

from tui_agent.errors import TuiAgentError
from tui_agent.log.core import Core
from tui_agent.review.review import Review
from tui_agent.session.checks import Checks
from tui_agent.store.session_events import NoticeGiven


async def auto_apply(core: Core, checks: Checks, review: Review) -> None:
    """Gives a notice about changes that need confirmation."""
    if core.mode != "auto" or not core.state.review.open:
        return
    doubt = await unchecked(core, checks)
    if core.mode != "auto":  # It changed while the checks ran.
        return
    if doubt:
        await core.journal.record(
            NoticeGiven("warning", f"Mode auto applied nothing: {doubt}. Decide in the review")
        )
        return
    try:
        await review.apply()
    except TuiAgentError as error:
        await core.journal.record(NoticeGiven("warning", str(error)))


async def unchecked(core: Core, checks: Checks) -> str:
    """Why the open changes are not known to pass all checks, or "". Runs stale, missing and slow checks
    first."""
    if not core.state.check_marks or any(mark.look == "stale" for mark in core.state.check_marks):
        await checks.run()
    if not core.state.check_doubt:
        await checks.run(slow=True)
    state = core.state
    if state.checks.refused:
        return f"no checks ran, {state.checks.refused}"
    if not state.check_marks and not await checks.all_unconcerned():
        return "there are no checks (add [[checks.commands]] to settings.toml)"
    return state.check_doubt
