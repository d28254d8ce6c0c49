"""The first screen of a session in which nothing was said: what this is, what to try, the model, the keys."""

from __future__ import annotations

from textual import events
from textual.containers import Center
from textual.content import Content
from textual.widgets import Static

from tui_agent.answers.values import NextStep
from tui_agent.store.state import State
from tui_agent.ui.keys.keymap import Keys
from tui_agent.ui.sink import parts
from tui_agent.ui.widgets.prompt_lines import NextSteps

TRIALS = (
    NextStep("Have the code explained", "What does this project do, and where does it start?"),
    NextStep("Have something changed", "Find a small bug or a missing test here, and propose a change."),
    NextStep("Run a command", "!git status"),
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


class Welcome(Center):
    """A column in the middle. A digit in the empty prompt, or a click, chooses one of the things to try."""

    DEFAULT_CSS = f"""
    Welcome {{
        height: 1fr; align: center middle; background: $surface; overflow: hidden;
        & > Static {{ width: 100%; max-width: {_WIDEST}; height: auto; padding: 0 2; }}
    }}
    """

    def __init__(self) -> None:
        super().__init__(id="welcome")
        self._model = ""
        self._first = 0
        self._words = Content()

    def compose(self) -> list[Static]:  # type: ignore[override]
        return [Static("", markup=False)]

    def show(self, state: State, model: str) -> bool:
        """Show it until something is said; whether it is shown. `model` is the one that will be asked, "" for none."""
        self.display = not (state.chat.total or state.turn.number or state.session.read_only)
        recorded = "recorded replies" if state.session.rehearsal or state.session.replay else ""
        self._model = recorded or state.model.name or model
        if self.display:
            self._draw()
        return self.display

    def text_of(self, number: int) -> str | None:
        """What the thing to try of that number, from 1, puts into the prompt."""
        return TRIALS[number - 1].input_text if self.display and 0 < number <= len(TRIALS) else None

    def on_resize(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        line = self.query_one(Static)
        number = event.screen_y - line.content_region.y - self._first
        if 0 <= number < len(TRIALS):
            self.post_message(NextSteps.StepPressed(TRIALS[number]))

    def _draw(self) -> None:
        keys = getattr(self.app, "keys", None)
        lines = self._lines(keys if keys is not None else Keys({}), self.size.height < _SHORT)
        words = Content("\n").join(lines)
        if not words.is_same(self._words):  # each update is another layout of the whole screen
            self._words = words
            self.query_one(Static).update(words)

    def _lines(self, keys: Keys, short: bool) -> list[Content]:
        space = [] if short else [Content()]
        width = min(self.size.width, _WIDEST) - 4
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
