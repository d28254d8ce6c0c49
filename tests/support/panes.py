"""One pane alone on a screen, over a session that only notes what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from support import stylesheets
from textual.app import App, ComposeResult
from textual.binding import BindingType

from tui_agent.edits.change import Diff
from tui_agent.edits.merge import ConflictView
from tui_agent.errors import SessionError
from tui_agent.session.session import Session
from tui_agent.settings.loading import LoadedSettings
from tui_agent.settings.schema import Settings
from tui_agent.store.events import TypingChanged
from tui_agent.store.state import LayoutSlice, State
from tui_agent.ui.actions import APP, bindings_of
from tui_agent.ui.keys.keymap import load_keys
from tui_agent.ui.themes import load_palette, theme_of
from tui_agent.ui.widgets.pane import Pane

#: What hostile text looks like: markup, escapes, line breaks, wide and invisible characters, bidi controls.
HOSTILE = "[red]x[/red] [@click=app.quit]\x1b[31m\x07\n\t日本語 \u202e\u200b[/]"

#: The parts of a session that a front end calls.
PARTS = ("chat", "files", "review", "subtasks", "todos")

stylesheets.share()


class NotedPart:
    """A part of a session, such as its sub-tasks, whose calls the session notes as `subtasks.run`."""

    def __init__(self, session: NotedSession, name: str) -> None:
        self._session = session
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        own = getattr(type(self._session), f"{self._name}_{name}", None)
        return partial(own, self._session) if own else self._session.noting(f"{self._name}.{name}")


class NotedSession:
    """Holds a state and notes calls as (name, arguments); `effects` change the state when one is made."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()
        self.loaded = LoadedSettings(Settings())
        self.calls: list[tuple[Any, ...]] = []
        self.diffs: dict[str, Diff | Exception] = {}
        self.conflicts: dict[str, ConflictView] = {}
        #: What a call gives back, by its name.
        self.answers: dict[str, Callable[..., Any]] = {}
        self.effects: dict[str, Callable[..., State]] = {}

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of that name."""
        return [call[1:] for call in self.calls if call[0] == name]

    def chat_set_typed(self, place: str, text: str) -> None:
        self.state = TypingChanged(place, text).apply(self.state)

    async def review_diff(self, change_id: str) -> Diff:
        self.calls.append(("review.diff", change_id))
        found = self.diffs[change_id]
        if isinstance(found, Exception):
            raise found
        return found

    async def review_conflict(self, change_id: str) -> ConflictView:
        self.calls.append(("conflict", change_id))
        found = self.conflicts.get(change_id)
        if found is None:
            raise SessionError(f"{change_id} is not in conflict", "choose one that is")
        return found

    def chat_set_draft(self, text: str) -> None:
        self.calls.append(("chat.set_draft", text))

    def set_layout(self, layout: LayoutSlice) -> None:
        from msgspec.structs import replace

        self.state = replace(self.state, layout=layout)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return NotedPart(self, name) if name in PARTS else self.noting(name)

    def noting(self, name: str) -> Callable[..., Any]:
        """A call that is noted under this name."""

        async def call(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            if name in self.effects:
                self.state = self.effects[name](*arguments)
            return self.answers[name](*arguments) if name in self.answers else None

        return call


class ThemedApp(App[None], inherit_bindings=False):
    """A screen in the shipped theme, which can be read as text."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        super().__init__()
        palette = load_palette("dark")
        self.register_theme(theme_of(palette))
        self.theme = palette.name
        self.keys = load_keys()
        self.set_keymap(self.keys.keymap())

    @property
    def text(self) -> str:
        """The screen as text, a line for each row."""
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    def line_with(self, text: str) -> str:
        """The first line of the screen that holds `text`, without the space behind it; empty when none does."""
        return next((line.rstrip() for line in self.text.split("\n") if text in line), "")


class PaneApp(ThemedApp):
    """Shows one pane, with the shipped keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(APP)]

    def __init__(self, pane: type[Pane], session: NotedSession) -> None:
        super().__init__()
        self.keyboard = SimpleNamespace(at_rest=True)
        self.noted = session
        self.pane = pane(cast(Session, session))

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.show(self.noted.state)
        self.pane.enter()

    def show(self, state: State) -> None:
        """The state is now this."""
        self.noted.state = state
        self.pane.show(state)
