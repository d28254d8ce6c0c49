"""The application, as far as its screen and its dialogs know it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.app import App

from tui_agent.ui.keys.keyboard import Keyboard
from tui_agent.ui.keys.keymap import Keys

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.widgets.guide import Guide


class Choice(NamedTuple):
    """A session to open, "" for a new one; with `read_only` to look at it only, whoever has it open.

    With `rehearsal` it is that of the bundled project, with recorded replies.
    """

    session: str
    read_only: bool = False
    rehearsal: bool = False
    #: What is in the prompt then.
    draft: str = ""


Reopen = Callable[[Choice], Awaitable["Session"]]


class Host(App[int], inherit_bindings=False):
    """Has the keys and the session, and can go on with another session where `reopen` is there."""

    keys: Keys
    keyboard: Keyboard
    session: Session | None
    reopen: Reopen | None
    #: What leads through the rehearsal; None elsewhere.
    guide: Guide | None

    async def switch(self, choice: Choice) -> None:
        """Close this session and go on with another."""
        raise NotImplementedError

    @property
    def plain(self) -> bool:
        """Whether it is drawn for screen readers."""
        raise NotImplementedError

    def show_plainly(self, plain: bool) -> None:
        """Draw everything for screen readers, or as usual, for this run."""
        raise NotImplementedError

    @property
    def themes(self) -> list[str]:
        """The names of all that there are."""
        raise NotImplementedError

    def use_theme(self, name: str) -> None:
        """Draw everything in another theme, for this run."""
        raise NotImplementedError

    async def hand_over(self, words: Sequence[str]) -> int:
        """Give the terminal to another program until it ends; its exit status. Raises `UsageError`."""
        raise NotImplementedError

    async def suspend_to_shell(self) -> None:
        """Stop the program and whatever started it, as the shell knows it; what was typed is on its way to disk."""
        raise NotImplementedError
