"""The first screen of a session in which nothing was said: what this is, what to try, the model, the keys."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.containers import Center
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tui_agent.answers.values import NextStep
from tui_agent.store.state import State
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.prompt_lines import NextSteps

TRIALS = (
    NextStep("Have the code explained", "What does this project do, and where does it start?"),
    NextStep("Have something changed", "Find a small bug or a missing test here, and propose a change."),
    NextStep("Run a command", "!ls"),
)
_WHAT = (
    "You and a language model change this folder together. It says which files it needs and what it would "
    "change; nothing is written before you apply it."
)
#: Actions whose keys a beginner needs, with a word for each.
_KEYS = (
    ("chat.send", "send"),
    ("session.model", "choose a model"),
    ("pane.files", "files"),
    ("pane.review", "review"),
    ("app.palette", "every action"),
    ("app.help", "every key"),
)
#: Rows below which only the things to try are told, and cells across that are used at most.
_SHORT, _WIDEST = 16, 72


class WelcomeLines(Widget):
    """As many lines as there is room for, found as the screen is laid out: once for the first frame."""

    def __init__(self, lines: Callable[[int, int], list[Content]]) -> None:
        """`lines` gives them for the cells across and the rows of the container."""
        super().__init__()
        self._lines = lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width, container.height))

    def render(self) -> Content:
        assert isinstance(self.parent, Widget)
        return Content("\n").join(self._lines(self.size.width, self.parent.size.height))


class Welcome(Center):
    """A column in the middle. A digit in the empty prompt, or a click, chooses one of the things to try."""

    DEFAULT_CSS = f"""
    Welcome {{
        height: 1fr; align: center middle; background: $surface; overflow: hidden;
        & > WelcomeLines {{ width: 100%; max-width: {_WIDEST}; height: auto; padding: 0 2; }}
    }}
    """

    def __init__(self) -> None:
        super().__init__(id="welcome")
        self._model = ""
        self._first = 0
        self._shown = WelcomeLines(self._lines)

    def compose(self) -> list[Widget]:  # type: ignore[override]
        return [self._shown]

    def show(self, state: State, model: str) -> bool:
        """Show it until something is said; whether it is shown. `model` is the one that will be asked, "" for none."""
        self.display = not (state.chat.total or state.turn.number or state.session.read_only)
        recorded = "recorded replies" if state.session.rehearsal or state.session.replay else ""
        before, self._model = self._model, recorded or state.model.name or model
        if self._model != before:
            self._shown.refresh(layout=True)
        return self.display

    def text_of(self, number: int) -> str | None:
        """What the thing to try of that number, from 1, puts into the prompt."""
        return TRIALS[number - 1].input_text if self.display and 0 < number <= len(TRIALS) else None

    def on_click(self, event: events.Click) -> None:
        number = event.screen_y - self._shown.content_region.y - self._first
        if 0 <= number < len(TRIALS):
            self.post_message(NextSteps.StepPressed(TRIALS[number]))

    def _lines(self, width: int, rows: int) -> list[Content]:
        keys, short = getattr(self.app, "keys", None) or Keys({}), rows < _SHORT
        space = [] if short else [Content()]
        what = [] if short else [parts((line, "$text")) for line in _wrapped(_WHAT, width)]
        above = [
            parts(("tui-agent", "bold $accent")),
            *what,
            *space,
            parts(("Three things to try", "$muted")),
        ]
        self._first = len(above)
        tries = [
            parts((f"  {number}  ", "bold $accent"), trial.label) for number, trial in enumerate(TRIALS, 1)
        ]
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
        return [*above, *tries, *space, model, *space, *table]


def _wrapped(text: str, width: int) -> list[str]:
    from textwrap import wrap

    return wrap(text, max(width, 20))
