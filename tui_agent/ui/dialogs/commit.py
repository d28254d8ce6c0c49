"""Committing from inside: the model drafts the message, the person has the last word."""

from __future__ import annotations

from textual.app import App

from tui_agent.errors import ModelError, TuiAgentError
from tui_agent.git.client import CommitPlan
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.text import TextDialog

NAMED = 3


async def commit(app: App[object], session: Session) -> None:
    """Ask for the message and commit with it; nothing happens where the person leaves the dialog."""
    plan: CommitPlan | None = None

    async def get() -> str | None:
        nonlocal plan
        try:
            plan = await session.commit_plan()
            dialog.retitle(_title(session, plan))
            dialog.can_be_kept = True
            return await _draft(session, plan)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None

    dialog = TextDialog("Commit", get(), keep="commit (no hooks run)", holds_up=False)
    dialog.can_be_kept = False  # until it is said what would be committed
    message = await app.push_screen_wait(dialog)
    if message is None or plan is None:
        return
    try:
        await session.commit(message, plan)
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def _draft(session: Session, plan: CommitPlan) -> str:
    """The model's words, none where no model answers: the person writes them then."""
    try:
        await session.notice("Asking the model for a commit message…")
        return await session.draft_commit(plan)
    except ModelError as error:
        await session.notice(f"{error}; write the message yourself", "warning")
        return ""


def _title(session: Session, plan: CommitPlan) -> str:
    names = ", ".join(plan.paths[:NAMED])
    more = f" and {len(plan.paths) - NAMED} more" if len(plan.paths) > NAMED else ""
    how = "what is staged" if plan.staged else "what was applied"
    return f"Commit {how} to {session.state.workspace.branch or 'HEAD'}: {names}{more}"
