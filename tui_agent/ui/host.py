"""The application's interface for its screen and dialogs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from textual.app import App

from tui_agent.ui.keys.keyboard import Keyboard
from tui_agent.ui.keys.keymap import Keys

if TYPE_CHECKING:
    from tui_agent.control.server import LentTerminal
    from tui_agent.session.session import Session
    from tui_agent.ui.widgets.guide import Guide


class Choice(NamedTuple):
    """A session to open; "" creates one. `attach` shows a session that runs in another process, on `host` or
    here, which then draws on this terminal."""

    session: str
    rehearsal: bool = False
    #: Initial text of the prompt.
    draft: str = ""
    attach: bool = False
    host: str = ""


T = TypeVar("T")

Reopen = Callable[[Choice], Awaitable["Session"]]


class AgentCommands(Protocol):
    def begin(self, words: Sequence[str] = (), *, by_name: bool = True) -> None: ...


class Host(App[int], inherit_bindings=False):
    """Holds the keys and the session. With `reopen` it can switch sessions."""

    keys: Keys
    keyboard: Keyboard
    session: Session | None
    reopen: Reopen | None
    is_leaving: bool
    #: The session to open after this one closes.
    next: Choice | None
    #: The terminal of a launcher while no session uses it.
    lent: LentTerminal | None
    #: The guide of the rehearsal, otherwise `None`.
    guide: Guide | None

    async def leave(self, status: int) -> None:
        raise NotImplementedError

    async def switch(self, choice: Choice) -> None:
        """With `attach` this session continues. Raises `UsageError` if the host cannot be reached."""
        raise NotImplementedError

    @property
    def plain(self) -> bool:
        raise NotImplementedError

    def show_as(self, *, plain: bool | None = None, keys: str = "") -> None:
        """Switch the screen reader mode, or the set of keys, for this run."""
        raise NotImplementedError

    @property
    def themes(self) -> list[str]:
        raise NotImplementedError

    def use_theme(self, name: str) -> None:
        """Switch the theme for this run. "" keeps it, with the colours that the terminal's variables name."""
        raise NotImplementedError

    async def hand_over(self, words: Sequence[str]) -> int:
        """Run another program in the terminal and return its exit status. Raises `UsageError`."""
        raise NotImplementedError

    @property
    def agents(self) -> AgentCommands:
        raise NotImplementedError

    async def lend_terminal(self, use: Callable[[int, int], Awaitable[T]]) -> T:
        """Clears the screen while `use` works with the descriptors (input, output). Raises `UsageError`."""
        raise NotImplementedError

    async def suspend_to_shell(self, *, leave: bool = False) -> None:
        """Give the terminal to its shell, whose `fg` returns. `leave`: a program that has handed its terminal
        over ends."""
        raise NotImplementedError
