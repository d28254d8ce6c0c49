"""Choice of the model's reasoning effort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.errors import TuiAgentError
from tui_agent.turn.model_choice import EFFORTS
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.host import Host
from tui_agent.ui.safe_text import parts

if TYPE_CHECKING:
    from tui_agent.session.models import ModelAccess
    from tui_agent.session.session import Session
    from tui_agent.settings.schema import Effort


async def choose_effort(app: Host, session: Session) -> None:
    """Ask for the effort of the session's model, if it has levels."""
    models = session.models
    try:
        if models.name and not models.level("max"):
            await session.notice(f"{models.name} has no effort levels")
            return
        title = f"Effort of {models.name or 'the model'}"
        chooser = Chooser(title, lambda words: effort_rows(words, models), first=models.effort)
        value = await app.push_screen_wait(chooser)
        chosen = next((effort for effort in EFFORTS if effort == value), None)
        if chosen is not None:
            await session.notice(await models.set_effort(chosen))
    except TuiAgentError as error:
        await session.notice(str(error), "error")


def effort_rows(words: str, models: ModelAccess) -> list[ChooserRow]:
    """Matching effort levels with the model's own names."""
    now = models.effort()
    return [
        ChooserRow(
            effort,
            parts(
                f"{effort:<8}", (f"{_own(effort, models):<30}", "$muted"), "in use" if effort == now else ""
            ),
        )
        for effort in EFFORTS
        if words.strip().lower() in effort
    ]


def _own(effort: Effort, models: ModelAccess) -> str:
    level = models.level(effort)
    if effort == "auto":
        return f"{level} at {models.name}" if level else "the provider's default"
    return "" if level == effort else f"{level} at {models.name}"
