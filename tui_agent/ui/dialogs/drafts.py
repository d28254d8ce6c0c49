"""Texts that the session drafts and the person has the last word on: a commit's message, the summary, the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from tui_agent.context.memory import GO_ON, asks_to_go_on
from tui_agent.errors import ModelError, TuiAgentError
from tui_agent.git.client import CommitPlan
from tui_agent.session.session import Session
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.sink import one_line

if TYPE_CHECKING:
    from tui_agent.session.session import Session


NAMED = 3


async def commit(app: App[object], session: Session) -> None:
    """Ask for the message and commit with it; nothing happens where the person leaves the dialog."""
    plan: CommitPlan | None = None

    async def get() -> str | None:
        nonlocal plan
        try:
            plan = await session.review.commit_plan()
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
        await session.review.commit(message, plan)
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def _draft(session: Session, plan: CommitPlan) -> str:
    """The model's words, none where no model answers: the person writes them then."""
    try:
        await session.notice("Asking the model for a commit message…")
        return await session.review.draft_commit(plan)
    except ModelError as error:
        await session.notice(f"{error}; write the message yourself", "warning")
        return ""


def _title(session: Session, plan: CommitPlan) -> str:
    names = ", ".join(plan.paths[:NAMED])
    more = f" and {len(plan.paths) - NAMED} more" if len(plan.paths) > NAMED else ""
    how = "what is staged" if plan.staged else "what was applied"
    return f"Commit {how} to {session.state.workspace.branch or 'HEAD'}: {names}{more}"


async def edit_summary(app: App[object], session: Session) -> None:
    """Show the summary; the person's words take its place where they are kept."""
    summary = ""

    async def get() -> str | None:
        nonlocal summary
        try:
            summary = await session.chat.summary()
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None
        if not summary:
            await session.notice("No message was summarised yet: all that was said is sent as it was")
        return summary or None

    text = await app.push_screen_wait(TextDialog("Summary of older messages", get(), wrap=True))
    if text is not None and text.strip() and text != summary:
        try:
            await session.chat.edit_summary(text)
        except TuiAgentError as error:
            await session.notice(str(error), "error")


async def go_on(app: App[object], session: Session, text: str) -> bool:
    """Show the memory; what the person makes of it is sent with `text`, or with “continue” where that asks for
    something else. False where nothing was sent."""
    words = text if asks_to_go_on(text, 2) else GO_ON[0]

    async def get() -> str | None:
        try:
            memory = await session.chat.memory()
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return None
        if not memory:
            await session.notice("There is nothing to continue yet")
        return memory or None

    dialog = TextDialog(f"What goes with “{one_line(words)}”", get(), keep="send it", wrap=True)
    edited = await app.push_screen_wait(dialog)
    if edited is None or not edited.strip():
        return False
    try:
        await session.chat.go_on(words, edited)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return False
    return True
