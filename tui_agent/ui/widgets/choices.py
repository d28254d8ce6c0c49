"""Short rows above the chat's input: the next steps that are offered, and the messages that wait."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui_agent.answers.values import NextStep
from tui_agent.ui.sink import parts

_ELEMENT = re.compile(r"</?[A-Za-z][^<>]*>")


class NextSteps(Static):
    """Next steps, numbered; choosing one types its text."""

    class StepPressed(Message):
        def __init__(self, step: NextStep) -> None:
            super().__init__()
            self.step = step

    def __init__(self) -> None:
        super().__init__("", id="choices", markup=False)
        self.steps: tuple[NextStep, ...] = ()
        self.display = False

    def show(self, steps: tuple[NextStep, ...]) -> None:
        if steps is self.steps:
            return
        self.steps = steps[:9]
        self.display = bool(steps)
        rows = [
            parts((f"{n} ", "bold $accent"), in_words(step.label)) for n, step in enumerate(self.steps, 1)
        ]
        self.update(_rows(rows))

    def text_of(self, number: int) -> str | None:
        """What the step of that number, from 1, types; None where there is none."""
        return self.steps[number - 1].input_text if 0 < number <= len(self.steps) else None

    def on_click(self, event: events.Click) -> None:
        number = event.get_content_offset_capture(self).y + 1
        if 0 < number <= len(self.steps):
            self.post_message(self.StepPressed(self.steps[number - 1]))


class QueuedMessages(Static):
    """Messages that were sent while a turn was running; a click takes one back into the input."""

    class Removed(Message):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__("", id="waiting", markup=False)
        self.display = False

    def show(self, queue: Sequence[str]) -> None:
        self.display = bool(queue)
        self.update(_rows([parts(("waits  ", "$running"), (text, "$muted")) for text in queue[:6]]))

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Removed(event.get_content_offset_capture(self).y))


def in_words(label: str) -> str:
    """The words of a next step, which may be HTML: without tags, entities decoded (and so before they are cleaned)."""
    return html.unescape(_ELEMENT.sub("", label)).strip() or label


def _rows(rows: list[Content]) -> Content:
    return Content("\n").join(rows)
