"""All that sub-tasks need to run and come together, of one session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui_agent.edits.change import Change
from tui_agent.session.children import Children
from tui_agent.session.giving_back import GivingBack
from tui_agent.session.joining import Joining
from tui_agent.session.slots import Slots
from tui_agent.session.withdrawing import Withdrawing

if TYPE_CHECKING:
    from tui_agent.session.session import Session


class SubTasks:
    """`children` run, `joining` brings together what they came to, `withdrawing` takes out what one
    proposed, `giving_back` lets one do its part again."""

    def __init__(
        self, parent: Session, slots: Slots, on_newest: Callable[[Change], Awaitable[Change]]
    ) -> None:
        self.joining = Joining(parent.journal, parent.kept.blobs, on_newest)
        self.children = Children(parent, self.joining, slots)
        self.withdrawing = Withdrawing(parent.journal, parent.kept.blobs, self.joining)
        self.giving_back = GivingBack(parent.journal, self.withdrawing)
