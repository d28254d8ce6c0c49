"""Permission requests of tool calls, and earlier decisions with revocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.app import App

from tui_agent.errors import TuiAgentError
from tui_agent.store.state import PermissionDecision, PermissionQuestion
from tui_agent.ui.dialogs.chooser import MOST, Chooser, ChooserRow
from tui_agent.ui.dialogs.text import TextDialog
from tui_agent.ui.safe_text import label, parts

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host

ANSWERS = {
    "once": "Allow this once",
    "session": "Allow exactly this for the rest of this session",
    "always": "Allow exactly this in this workspace, always",
    "no": "Do not allow it",
}
#: Answers to whether a turn may continue.
GO_ON_ANSWERS = {"once": "Continue: do not ask again in this turn", "no": "Stop: keep the partial answer"}
_ALL = "all"


async def answer_permission(app: App[object], session: Session) -> None:
    """Show a call's exact effect and answer the request; typed text is the reason sent to the model. It is stored
    until the request is answered."""
    question = session.state.asked
    if question is None:
        await session.notice("There is no permission question.", "info")
        return
    place = f"answer:{question.call}"
    typed = session.state.input.typed.get(place, "")
    choose = cast("Host", app).keys.shown("chooser.choose")

    def rows(words: str) -> list[ChooserRow]:
        nonlocal typed
        typed = words
        session.chat.set_typed(place, words)
        return question_rows(question, words, choose)

    while True:
        title = f"{question.tool} {question.shown}".strip() + ": allow?"
        hint = "{choose} allows it once; or type a reason to deny it"
        yes = ""
        if question.answers:
            title, hint = (
                question.words,
                "type the answer; {choose} selects" if question.typed else "{choose} selects",
            )
        elif not question.tool:  # no reason is requested, so a single key can be an answer
            title, hint, yes = question.words, "{yes} continues, {choose} selects", "once"
        chosen = await app.push_screen_wait(Chooser(title, rows, hint, yes=yes, text=typed))
        if chosen == _ALL:
            await app.push_screen_wait(TextDialog("Exact action", question.preview, keep="back"))
        elif chosen is None:
            return
        elif chosen:
            break
    try:
        told = typed.strip() if chosen == "no" or question.typed else ""
        await session.chat.permit(question.call, chosen, told)
    except TuiAgentError as error:
        await session.notice(str(error), "warning")
    session.chat.set_typed(place, "")


def question_rows(question: PermissionQuestion, typed: str, choose: str) -> list[ChooserRow]:
    """The answers, followed by the exact effect. Typed text other than `y` or `yes` is a refusal with a
    reason."""
    reason = typed.strip()
    words = ANSWERS
    if question.answers:
        words = dict(question.answers)
        if question.typed and reason:
            first = next(iter(words))
            words[first] = f"{words[first]}: {reason}"
    elif not question.tool:
        words = GO_ON_ANSWERS
    elif reason and reason.lower() not in ("y", "yes"):
        words = {"no": f"{ANSWERS['no']}: {reason}"}
    rows = [ChooserRow(answer, label(text)) for answer, text in words.items()]
    lines = question.preview.splitlines()
    shown = lines[: MOST - len(rows) - 1]
    rows += [ChooserRow(_ALL, parts(("  ", ""), (line, "$muted"))) for line in shown]
    if len(shown) < len(lines):
        more = f"  … {len(lines) - len(shown):,} more lines: {choose} shows all"
        rows.append(ChooserRow(_ALL, label(more)))
    return rows


async def show_permissions(app: App[object], session: Session) -> None:
    """List the session's permission decisions, each revocable."""
    choose = cast("Host", app).keys.shown("chooser.choose")
    while session.state.permissions:
        decisions = {one.digest: one for one in reversed(session.state.permissions)}
        chosen = await app.push_screen_wait(
            Chooser(
                f"Permissions: {choose} revokes",
                lambda words, found=decisions: [
                    ChooserRow(digest, label(text))
                    for digest, one in found.items()
                    if words.lower() in (text := decision_words(one)).lower()
                ],
            )
        )
        if not chosen:
            return
        await session.chat.revoke(chosen)
    await session.notice("There are no permissions.", "info")


def decision_words(decision: PermissionDecision) -> str:
    """E.g. `allowed always · search_text “x”`, `denied by a rule · …`."""
    by = {"rule": " by a rule", "hook": " by a hook", "nobody": ": a confirmation was not possible"}.get(
        decision.by, ""
    )
    said = f"denied{by}" if decision.answer == "no" else f"allowed {decision.answer}"
    return f"{said} · {decision.tool} {decision.shown}".strip()
