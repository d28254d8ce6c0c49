"""The content of requests: sizes, requests, and the editable summary and memory."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import App
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList, Static, TextArea

from tui_agent.context.memory import GO_ON, asks_to_go_on
from tui_agent.errors import TuiAgentError
from tui_agent.model.parts import text_of
from tui_agent.session.session import Session
from tui_agent.store.conversation import Usage
from tui_agent.store.state import State
from tui_agent.ui.dialogs.dialog import Dialog, TextDialog
from tui_agent.ui.panes.known_files import clock
from tui_agent.ui.safe_text import clean, counted, label, one_line, parts

if TYPE_CHECKING:
    from tui_agent.log.transfer import Exchange

TOUCHES_SHOWN = 100
PARTS = ("system", "instructions", "files", "history", "reply")

#: Pairs of text and ink.
Row = tuple[tuple[str, str], ...]


class ContextView(Dialog[None]):
    ID = "context"
    DEFAULT_CSS = """
    ContextView {
        align: center middle;
        & > VerticalScroll {
            width: 100; max-width: 96%; height: 90%;
            background: $overlay; padding: 1 2; scrollbar-size-vertical: 1;
        }
        & Static { height: auto; }
    }
    """

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state

    def compose(self) -> Iterable[Widget]:
        with VerticalScroll():
            yield Static(Content("\n").join([parts(*row) for row in rows(self._state)]), markup=False)


def rows(state: State) -> Iterator[Row]:
    usage, window = state.usage, state.model.window
    about = "about " if usage.context_estimated else ""
    share = ""
    if window and state.model.window_known:
        share = f", {usage.context / window:.0%} of the window of {window:,}"
    elif window:
        share = f" (requests are limited to {window:,})"
    yield (("Content of the last request", "bold $accent"),)
    yield ((f"  {about}{usage.context:,} tokens{share}", "$text"),)
    for part in PARTS:
        if part in usage.parts:
            yield ((f"  {part:<14}", "$text"), (f"{usage.parts[part]:>9,}  estimated", "$muted"))
    restarted = counted(usage.resets, "restart") if usage.resets else "no restart"
    begins = f"it repeats {usage.prefix_share:.1%} of the request before it; {restarted} so far"
    yield ((f"  {begins}", "$muted"),)
    yield ((f"  this turn      {_spent(usage.turn)}", "$text"),)
    if usage.planning != Usage():
        yield ((f"  planning       {_spent(usage.planning)}", "$muted"),)
    yield ((f"  this session   {_spent(usage.session)}", "$text"),)
    yield (("", ""),)
    yield (("Instructions, nearest last", "bold $accent"),)
    for file in state.instructions:
        if file.left_out:
            why, ink, why_ink = f"ignored: {one_line(file.left_out)}", "$muted", "$warning"
        else:
            where = f"for {file.folder}/" if file.folder else "everywhere"
            why, ink, why_ink = f"{where} · {one_line(file.why)} · {file.tokens:,} tokens", "$text", "$muted"
        yield ((f"  {one_line(file.path)}", ink), (f"  {why}", why_ink))
    if not state.instructions:
        yield (("  none", "$muted"),)
    yield (("", ""),)
    yield (("Files, newest first", "bold $accent"),)
    for touch in reversed(state.known.touches[-TOUCHES_SHOWN:]):
        words = f"  {clock(touch.at):8}  turn {touch.turn:<3} {touch.kind:<16}"
        yield ((words, "$muted" if touch.active else "$stale"), (f" {one_line(touch.path)}", "$text"))
    if not state.known.touches:
        yield (("  none yet", "$muted"),)


def _spent(usage: Usage) -> str:
    about = "about " if usage.estimated else ""
    cached = f", {usage.cached / usage.input:.0%} from the cache" if usage.input else ""
    price = "" if usage.cost is None else f", ${usage.cost:.4f}"
    return f"{about}{usage.input:,} tokens in{cached}, {usage.output:,} out{price}"


class SentView(Dialog[None]):
    DEFAULT_CSS = """
    SentView {
        align: center middle;
        & > Vertical { width: 94%; height: 90%; margin-top: 0; }
        & OptionList { border: none; height: auto; max-height: 8; background: $overlay; padding: 0; }
        & OptionList > .option-list--option-highlighted { background: $accent-surface; color: $text; text-style: none; }
        & TextArea { border: none; height: 1fr; margin: 1 0 0 0; }
    }
    """

    def __init__(self, sent: Callable[[], Awaitable[Sequence[Exchange]]]) -> None:
        super().__init__()
        self._sent = sent
        self._exchanges: Sequence[Exchange] = ()

    def body(self) -> Iterable[Widget]:
        yield OptionList(markup=False, compact=True)
        yield TextArea("", read_only=True, soft_wrap=True, compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.fill(self._get())

    async def _get(self) -> None:
        self._exchanges = await self._sent()
        self.retitle(f"Requests to the model: {counted(len(self._exchanges), 'request')}")
        options = self.query_one(OptionList)
        heads = [
            (
                *(f"turn {one.turn}", one.purpose, one.model, f"{one.tokens:,} tokens"),
                *(("restarted",) if one.reset else ()),
                counted(len(one.messages), "new message"),
            )
            for one in self._exchanges
        ]
        options.set_options([label(" · ".join(head)) for head in heads])
        options.highlighted = len(self._exchanges) - 1 if self._exchanges else None

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        exchange = self._exchanges[event.option_index]
        reply = _message(exchange.reply) if exchange.reply else "(no answer)"
        self.query_one(TextArea).load_text(clean("\n\n".join([*map(_message, exchange.messages), reply])))


def _message(text: str) -> str:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return json.dumps(message, ensure_ascii=False, indent=2)
    others = {name: value for name, value in message.items() if name not in ("role", "content", "parts")}
    if rest := [part for part in message.get("parts") or () if part.get("type") != "text"]:
        others["parts"] = rest
    more = f"\n{json.dumps(others, ensure_ascii=False, indent=2)}" if others else ""
    return f"[{message['role']}]\n{text_of(message)}{more}"


async def show_context(app: App[object], session: Session) -> None:
    await app.push_screen_wait(ContextView(session.state))


async def show_sent(app: App[object], session: Session) -> None:
    await app.push_screen_wait(SentView(session.chat.sent))


async def _text(session: Session, call: Awaitable[str], none: str) -> str | None:
    """`None` after a notice."""
    try:
        found = await call
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return None
    if not found:
        await session.notice(none)
    return found or None


async def edit_summary(app: App[object], session: Session) -> None:
    none = "No message was summarised yet: all messages are sent complete"
    dialog = TextDialog(
        "Summary of older messages",
        _text(session, session.chat.summary(), none),
        wrap=True,
        kept=(session, "summary"),
    )
    text = await app.push_screen_wait(dialog)
    if text is not None and text.strip() and text != dialog.before:
        await session.chat.edit_summary(text)


async def edit_memory(app: App[object], session: Session, text: str) -> bool:
    """Sends the edited memory with `text`, or “continue”. Returns whether it was sent."""
    words = text if asks_to_go_on(text, 2) else GO_ON[0]
    dialog = TextDialog(
        f"Request for “{one_line(words)}”",
        _text(session, session.chat.memory(), "There is nothing to continue yet"),
        keep="send it",
        wrap=True,
        kept=(session, "memory"),
    )
    edited = await app.push_screen_wait(dialog)
    if edited is None or not edited.strip():
        return False
    try:
        await session.chat.go_on(words, edited)
    except TuiAgentError as error:
        await session.notice(str(error), "error")
        return False
    return True
