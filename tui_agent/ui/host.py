"""The application as its screen and dialogs see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from textual.app import App
from textual.dom import DOMNode

from tui_agent.ui.keys.keyboard import Keyboard
from tui_agent.ui.keys.keymap import Keys

if TYPE_CHECKING:
    from tui_agent.control.server import LentTerminal
    from tui_agent.session.session import Session
    from tui_agent.ui.widgets.guide import Guide


class Choice(NamedTuple):
    """A session to open; "" creates one. `attach`: another process, on `host` or here, runs it and draws on
    this terminal.
    """

    session: str
    rehearsal: bool = False
    draft: str = ""
    attach: bool = False
    host: str = ""


T = TypeVar("T")

Reopen = Callable[[Choice], Awaitable["Session"]]


def keys_of(node: DOMNode) -> Keys:
    """The application's keys; none in an application of another class."""
    return getattr(node.app, "keys", None) or Keys({})


class AgentCommands(Protocol):
    def begin(self, words: Sequence[str] = (), *, by_name: bool = True) -> None: ...


class Host(App[int], inherit_bindings=False):
    keys: Keys
    keyboard: Keyboard
    session: Session | None
    reopen: Reopen | None
    is_leaving: bool
    next: Choice | None
    #: A launcher's terminal while no session uses it.
    lent: LentTerminal | None
    guide: Guide | None
    #: Folders of the user's own themes.
    theme_folders: Sequence[Path]

    async def leave(self, status: int) -> None:
        raise NotImplementedError

    async def switch(self, choice: Choice) -> None:
        """With `attach` this session continues. Raises `UsageError` if the host cannot be reached."""
        raise NotImplementedError

    @property
    def plain(self) -> bool:
        raise NotImplementedError

    def show_as(self, *, plain: bool | None = None, keys: str = "") -> None:
        """Switches the plain screen or the key set for this run."""
        raise NotImplementedError

    def use_theme(self, name: str) -> None:
        """Switches the theme for this run. "" only adopts the colours that the terminal's variables name."""
        raise NotImplementedError

    async def hand_over(self, words: Sequence[str]) -> int:
        """Runs another program in the terminal and returns its exit status. Raises `UsageError`."""
        raise NotImplementedError

    @property
    def agents(self) -> AgentCommands:
        raise NotImplementedError

    async def lend_terminal(self, use: Callable[[int, int], Awaitable[T]]) -> T:
        """Clears the screen while `use` has the descriptors (input, output). Raises `UsageError`."""
        raise NotImplementedError

    async def suspend_to_shell(self, *, leave: bool = False) -> None:
        """Gives the terminal to its shell, whose `fg` returns. With `leave`, a launcher ends."""
        raise NotImplementedError
