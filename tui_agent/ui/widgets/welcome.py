"""First screen of a new session: introduction, suggestions, model and keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.containers import Center
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from tui_agent.answers.values import NextStep
from tui_agent.store.state import State
from tui_agent.ui.host import keys_of
from tui_agent.ui.safe_text import parts
from tui_agent.ui.widgets.prompt_lines import NextSteps

if TYPE_CHECKING:
    from tui_agent.model.discovery import Suggestion

TRIALS = (
    NextStep("Explain the code", "What does this project do, and where does it start?"),
    NextStep("Change something", "Find a small bug or a missing test here, and propose a change."),
    NextStep("Run a command", "!ls"),
)
_WHAT = (
    "Change this folder together with a language model. The model names the files that it needs and proposes "
    "changes. Nothing is written until you apply it."
)
_KEYS = (
    ("chat.send", "send"),
    ("session.model", "choose a model"),
    ("pane.files", "files"),
    ("pane.review", "review"),
    ("app.palette", "every action"),
    ("app.help", "every key"),
)
#: Rows below which only suggestions are shown, and maximum width in cells.
_SHORT, _WIDEST = 16, 72


MOST_OFFERED = 6


class ModelOption(NamedTuple):
    value: str
    words: str
    why: str


_LOGIN = ModelOption("login:", "log in to an account", "")
_REHEARSAL = ModelOption("rehearsal:", "rehearse", "recorded replies, no key")


def ways(found: Sequence[Suggestion], *, rehearses: bool = True) -> list[ModelOption]:
    """Some detected models per source, then options without key or server."""
    first = [it for it in found if it.because not in {other.because for other in found[: found.index(it)]}]
    rest = [it for it in found if it not in first]
    here = [ModelOption(it.model, f"use {it.model}", it.because) for it in [*first, *rest][:MOST_OFFERED]]
    return [*here, _LOGIN, *([_REHEARSAL] if rehearses else [])]


class WelcomeLines(Widget):
    """As many lines as fit, computed once during layout for the first frame."""

    def __init__(self, lines: Callable[[int, int], list[Content]]) -> None:
        super().__init__()
        self._lines = lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width, container.height))

    def render(self) -> Content:
        assert isinstance(self.parent, Widget)
        return Content("\n").join(self._lines(self.size.width, self.parent.size.height))


class Welcome(Center):
    """A centred column. A digit in the empty prompt or a click selects a suggestion."""

    DEFAULT_CSS = f"""
    Welcome {{
        height: 1fr; align: center middle; background: $surface; overflow: hidden;
        & > WelcomeLines {{ width: 100%; max-width: {_WIDEST}; height: auto; padding: 0 2; }}
    }}
    """

    class WayPressed(Message):
        """A model option was selected; "" requests the full list."""

        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    def __init__(self) -> None:
        super().__init__(id="welcome")
        self._model = ""
        #: `None` until known.
        self._ways: Sequence[ModelOption] | None = None
        self._first, self._typed = 0, False
        self._shown = WelcomeLines(self._lines)

    def compose(self) -> list[Widget]:  # type: ignore[override]
        return [self._shown]

    def show(self, state: State, model: str) -> bool:
        """Visible until the first message. Returns whether it is. `model` is the selected one, or ""."""
        self.display = not (state.chat.total or state.turn.number)
        recorded = "recorded replies" if state.session.rehearsal or state.session.replay else ""
        before, self._model = self._model, recorded or state.model.name or model
        if self._model != before:
            self._shown.refresh(layout=True)
        return self.display

    def offer(self, found: Sequence[Suggestion]) -> None:
        self._ways = ways(found, rehearses=getattr(self.app, "reopen", None) is not None)
        self._shown.refresh(layout=True)

    def show_typed(self, typed: bool) -> None:
        if typed != self._typed:
            self._typed = typed
            self._shown.refresh(layout=True)

    @property
    def offers(self) -> bool:
        return bool(self.display and not self._model and self._ways)

    def text_of(self, number: int) -> str | None:
        """Prompt text of a suggestion (from 1); "" after selecting a model option, `None` without either."""
        if not self.display:
            return None
        if self.offers:
            if way := next(islice(self._ways or (), number - 1, number), None) if number else None:
                self.post_message(self.WayPressed(way.value))
            return "" if way else None
        return TRIALS[number - 1].input_text if 0 < number <= len(TRIALS) else None

    def on_click(self, event: events.Click) -> None:
        at = event.screen_y - self._shown.content_region.y - self._first
        if self.offers:
            if 0 <= at <= len(self._ways or ()):
                self.post_message(self.WayPressed([*(way.value for way in self._ways or ()), ""][at]))
        elif 0 <= at < len(TRIALS):
            self.post_message(NextSteps.StepPressed(TRIALS[at]))

    def _lines(self, width: int, rows: int) -> list[Content]:
        keys, short = keys_of(self), rows < _SHORT
        asks = (
            "Who answers? Enter asks you, then sends the message"
            if self._typed
            else "Choose a model by its digit"
        )
        space = [] if short else [Content()]
        what = [] if short else [parts((line, "$text")) for line in wrap(_WHAT, max(width, 20))]
        above = [
            parts(("tui-agent", "bold $accent")),
            *what,
            *space,
            parts((asks if self.offers else "Three things to try", "$muted")),
        ]
        self._first = len(above)
        tries = [
            parts((f"  {number}  ", "bold $accent"), trial.label) for number, trial in enumerate(TRIALS, 1)
        ]
        if self.offers and self._ways:
            wide = max(len(way.words) for way in self._ways) + 2
            tries = [
                parts((f"  {number}  ", "bold $accent"), way.words.ljust(wide), (way.why, "$muted"))
                for number, way in enumerate(self._ways, 1)
            ]
            tries.append(parts(("  ↓  ", "bold $accent"), "more models, and keys for other providers"))
            tries = [row.truncate(width, ellipsis=True) for row in tries]
        model = (
            parts(("Model  ", "$muted"), self._model)
            if self._model
            else parts(
                ("Model  ", "$muted"), ("none yet: ", "$warning"), (keys.shown("session.model"), "$accent")
            )
        )
        shown = [(keys.shown(action), word) for action, word in _KEYS]
        cell = max((len(key) + len(word) for key, word in shown), default=0) + 4
        across = max(1, min(3, width // cell))
        cells = [
            parts((f"{key} ", "$accent"), (word, "$muted")).pad_right(cell - len(key) - len(word) - 1)
            for key, word in shown
            if key
        ]
        table = [Content().join(cells[at : at + across]) for at in range(0, len(cells), across)]
        return [*above, *tries, *space, *([] if self.offers else [model, *space]), *table]
