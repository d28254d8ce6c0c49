"""What the model was sent and what it answered, word for word: the second history, to be looked at."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import OptionList, Static, TextArea

from tui_agent.log.exchanges import Exchange
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.sink import clean, label


class SentView(Dialog[None], inherit_bindings=False):
    """The requests in a list, the newest chosen; below, what the chosen one added, and the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]
    DEFAULT_CSS = """
    SentView {
        align: center middle; background: $background 40%;
        & > Vertical { width: 94%; height: 90%; background: $overlay; padding: 1 2; }
        & Static { height: 1; color: $accent; text-style: bold; }
        & OptionList { border: none; height: auto; max-height: 8; background: $overlay; padding: 0; }
        & OptionList > .option-list--option-highlighted { background: $accent-surface; color: $text; text-style: none; }
        & TextArea { border: none; height: 1fr; margin: 1 0 0 0; }
    }
    """

    def __init__(self, sent: Callable[[], Awaitable[Sequence[Exchange]]]) -> None:
        super().__init__()
        self._sent = sent
        self._exchanges: Sequence[Exchange] = ()

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static(markup=False)
            yield OptionList(markup=False, compact=True)
            yield TextArea("", read_only=True, soft_wrap=True, compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.fill(self._get())

    async def _get(self) -> None:
        self._exchanges = await self._sent()
        self.query_one(Static).update(label(f"Sent to the model: {len(self._exchanges)} requests"))
        options = self.query_one(OptionList)
        options.set_options([label(_head(one)) for one in self._exchanges])
        options.highlighted = len(self._exchanges) - 1 if self._exchanges else None

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.query_one(TextArea).load_text(clean(_body(self._exchanges[event.option_index])))


def _head(exchange: Exchange) -> str:
    restarted = " · restarted" if exchange.reset else ""
    count = len(exchange.messages)
    size = f"{exchange.tokens:,} tokens{restarted} · {count} new messages"
    return f"turn {exchange.turn} · {exchange.purpose} · {exchange.model} · {size}"


def _body(exchange: Exchange) -> str:
    parts = [_message(text) for text in exchange.messages]
    return "\n\n".join([*parts, _message(exchange.reply) if exchange.reply else "(no answer)"])


def _message(text: str) -> str:
    """A message with its text as text, and what else it holds as JSON."""
    try:
        message = json.loads(text)
    except ValueError:
        return text
    if not isinstance(message, dict) or not isinstance(message.get("content"), str):
        return json.dumps(message, ensure_ascii=False, indent=2)
    others = {name: value for name, value in message.items() if name not in ("role", "content")}
    more = f"\n{json.dumps(others, ensure_ascii=False, indent=2)}" if others else ""
    return f"[{message.get('role')}]\n{message['content']}{more}"
