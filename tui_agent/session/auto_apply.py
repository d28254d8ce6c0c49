"""Auto-apply: changes are written without a key press, with autonomy `auto` and the setting `auto_apply`."""

from __future__ import annotations

from tui_agent.errors import TuiAgentError
from tui_agent.log.core import Core
from tui_agent.review.review import Review
from tui_agent.session.checks import Checks
from tui_agent.store.session_events import NoticeGiven


async def auto_apply(core: Core, checks: Checks, review: Review) -> None:
    """Applies all changes after the checks have run, except those that need confirmation."""
    if core.settings.autonomy != "auto" or not core.settings.auto_apply or not core.state.review.open:
        return
    if not core.state.check_doubt:
        await checks.run(slow=True)
    if doubt := core.state.check_doubt:
        await core.journal.record(NoticeGiven("warning", f"Not applied automatically. {doubt}"))
        return
    try:
        await review.apply()
    except TuiAgentError as error:
        await core.journal.record(NoticeGiven("warning", str(error)))
