"""Lines over the chat's input while no model is configured: what this machine offers, and the key that chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.widgets import Static

from tui_agent.ui.sink import plain

if TYPE_CHECKING:
    from tui_agent.model.discover import Suggestion
    from tui_agent.session.session import Session


class NoModelLine(Static):
    """Looks once, when it is first shown: at names of variables, and at servers on this machine. It asks no model."""

    def __init__(self, session: Session) -> None:
        super().__init__("", id="no-model", markup=False)
        self._session = session
        self._looked = False
        self.display = False

    def show(self) -> None:
        self.display = not self._session.model_name
        if self.display and not self._looked:
            self._looked = True
            self.run_worker(self._look())

    async def _look(self) -> None:
        from tui_agent.model.discover import discover

        keys = getattr(self.app, "keys", None)
        key = keys.shown("session.model") if keys is not None else ""
        self.update(plain(words(await discover(), key)))


def words(found: Sequence[Suggestion], key: str) -> str:
    """What was found, once for each place, and what can be done."""
    places = list(dict.fromkeys(it.because for it in found))
    what = " · ".join(places) if places else "No key and no local server was found"
    choose = f"{key} chooses a model" if key else "Choose a model"
    return f"No model is chosen yet. {what}.\n{choose}; `tui-agent demo` rehearses without one."
