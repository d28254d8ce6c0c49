"""Dialogs of sessions and messages: open, search, rename, fork, edit, delete, export."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from textual import events, on, work
from textual.app import App
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from tui_agent.control import sockets
from tui_agent.errors import TuiAgentError
from tui_agent.log import catalog
from tui_agent.log.catalog import SORTS, FoundLine, Sort, list_sessions, sorted_by
from tui_agent.log.directory import SessionEntry, SessionLock, folder_of
from tui_agent.log.transfer import fork
from tui_agent.store.state import ChatMessage
from tui_agent.ui.dialogs.chooser import MOST, Chooser, ChooserRow, question
from tui_agent.ui.host import Choice, Host
from tui_agent.ui.safe_text import counted, label, one_line, parts, plain
from tui_agent.ui.widgets.line_view import column

if TYPE_CHECKING:
    from tui_agent.session.session import Session

WHOLE = "whole"


async def fork_at_a_turn(app: App[Any], data: Path, session: str, turns: int) -> str | None:
    """Returns the copy's id, or `None` if cancelled. Raises `SessionError`."""
    requests: list[FoundLine] = []

    async def get() -> None:
        requests.extend(await asyncio.to_thread(catalog.requests, data, session))

    def rows(words: str) -> list[ChooserRow]:
        whole = [ChooserRow(WHOLE, label("The complete session"))] if not words.strip() else []
        turns = [
            ChooserRow(
                str(line.turn),
                parts((f"turn {line.turn:>3}  ", "$muted"), " ".join(line.text.split())[:64]),
            )
            for line in requests
            if words.lower() in f"{line.turn} {line.text}".lower()
        ]
        return [*whole, *turns]

    chosen: str | None = WHOLE
    if turns > 1:
        asked = Chooser("Fork this session as of …", rows, "text of a turn", get())
        chosen = await app.push_screen_wait(asked)
    if chosen is None:
        return None
    turn = None if chosen == WHOLE else int(chosen)
    return (await asyncio.to_thread(fork, data, session, turn)).id


class SessionPicker(Chooser):
    ID = "session_list"
    DEFAULT_CSS = """
    SessionPicker {
        align: center middle;
        & > Vertical { width: 90%; height: 84%; max-width: 90%; max-height: 84%; margin-top: 0; }
        & .hint { color: $faint; }
        & Horizontal { height: 1fr; margin: 0 0 1 0; }
        & OptionList { width: 3fr; height: 1fr; }
        & #preview { width: 2fr; height: 1fr; padding: 0 0 0 2; color: $text; }
    }
    """

    def __init__(self, data: Path, workspace: Path, current: str = "") -> None:
        super().__init__("", self._rows_of, "text of a message, or a file name", first=lambda: self._at)
        self._data = data
        self._workspace = workspace
        self._current = current
        self._everywhere = False
        self._sort: Sort = SORTS[0]
        self._entries: dict[str, SessionEntry] = {}
        #: The entry at the cursor of the next list.
        self._at = ""

    def body(self) -> Iterable[Widget]:
        typed, options = super().body()
        yield typed
        with Horizontal():
            yield options
            yield Static("", id="preview", markup=False)

    def hint(self) -> Content:
        more = ("session_list.more", "rename, fork, delete, sort, all folders")
        return label(self.keys_for(("chooser.choose", "opens"), more, ("dialog.close", "back"), gap=" · "))

    @property
    def _entry(self) -> SessionEntry | None:
        return self._entries.get(self.value)

    def needs_content(self, event: events.Event) -> bool:
        moves = isinstance(event, events.Key) and not event.is_printable
        return (moves and not self.matches(event, "dialog.close")) or isinstance(event, events.MouseEvent)

    def narrow(self, words: str) -> None:
        self.fill(self._list(words))

    async def _list(self, words: str) -> None:
        where = None if self._everywhere else self._workspace
        entries = await asyncio.to_thread(list_sessions, self._data, where, words)
        if not self.query(OptionList):
            return
        before = self.value
        self._entries = {entry.id: entry for entry in sorted_by(entries, self._sort)[:MOST]}
        others = (name for name in self._entries if name != self._current)
        self._at = before if before in self._entries else next(others, "")
        super().narrow("")
        scope = "everywhere" if self._everywhere else "of this workspace"
        self.retitle(
            f"{counted(len(entries), 'session')} {scope}, by {self._sort}"
            if entries
            else f"No matching session {scope}"
        )
        if not entries:
            self.query_one("#preview", Static).update("")

    def _rows_of(self, _: str) -> list[ChooserRow]:
        room = int(self.app.size.width * 0.9 - 4) * 3 // 5 - 1
        return [
            ChooserRow(name, _row(entry, self._everywhere, self._current, room))
            for name, entry in self._entries.items()
        ]

    @on(OptionList.OptionHighlighted)
    @work(exclusive=True, group="preview")
    async def _preview(self) -> None:
        entry = self._entry
        if entry is None:
            return
        lines = await asyncio.to_thread(catalog.preview, self._data, entry.id)
        size = f"{counted(entry.turns, 'turn')} · {entry.size_in_words}"
        shown = [parts((f"{entry.id} · {size}  ", "$muted"), (entry.workspace, "$faint"))]
        for line in lines:
            who = ("you ", "$accent") if line.kind == "person" else ("agent ", "$muted")
            shown.append(Content.assemble(plain(*who), plain(line.text[:600])))
        for preview in self.query("#preview").results(Static):
            preview.update(Content("\n\n").join(shown))

    def choose(self, at: int | None) -> None:
        if self._entry:
            self.dismiss(Choice(self._entry.id))

    @work(exclusive=True, group="more")
    async def action_more(self) -> None:
        one = {"rename": "Rename it", "fork": "Fork it", "delete": "Delete it"} if self._entry else {}
        scope = "this folder" if self._everywhere else "all folders"
        then = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        lists = {"list('sort')": f"Sort by {then}", "list('everywhere')": f"Show the sessions of {scope}"}
        answers = {**one, **lists}
        name = self._entry.name if self._entry else ""
        if chosen := await self.app.push_screen_wait(question(name or "Sessions", answers)):
            await self.run_action(chosen)

    def action_list(self, what: str) -> None:
        if what == "sort":
            self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        else:
            self._everywhere = not self._everywhere
        self.narrow(self.query_one(Input).value)

    @work(exclusive=True, group="change")
    async def action_fork(self) -> None:
        if self._entry:
            entry = self._entry
            try:
                forked = await fork_at_a_turn(self.app, self._data, entry.id, entry.turns)
            except TuiAgentError as error:
                self._show_error(error)
            else:
                if forked:
                    self.dismiss(Choice(forked))

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        if self._entry:
            entry = self._entry
            name = await self.app.push_screen_wait(naming(entry.name))
            if name:
                await self._change(asyncio.to_thread(catalog.rename, self._data, entry.id, name))

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        if self._entry:
            entry = self._entry
            answers = {"": "No", "delete": "Yes, delete it permanently"}
            asked = question(f"Delete “{entry.title[:50]}”?", answers, to_type="")
            if await self.app.push_screen_wait(asked) == "delete":
                await self._change(catalog.delete(self._data, entry.id))

    async def _change(self, change: Awaitable[None]) -> None:
        try:
            await change
        except TuiAgentError as error:
            self._show_error(error)
        self.narrow(self.query_one(Input).value)

    def _show_error(self, error: TuiAgentError) -> None:
        self.notify(str(error), severity="error", markup=False)


def naming(name: str) -> Chooser:
    return Chooser(
        f"Name of “{name}”" if name else "Name of this session",
        lambda words: (
            [ChooserRow(words.strip(), label(f"Rename it to “{words.strip()}”"))] if words.strip() else []
        ),
        "type the name, {choose} saves it",
    )


def _row(entry: SessionEntry, everywhere: bool, current: str, room: int) -> Content:
    mark = "● " if entry.id == current else "  "
    updated = datetime.fromtimestamp(entry.updated, UTC).astimezone()
    when, size = (
        f"{updated:%Y-%m-%d %H:%M}  ",
        f"{counted(entry.turns, 'turn'):>9} {entry.size_in_words:>8}  ",
    )
    where = f"  {Path(entry.workspace).name}"[: room // 4] if everywhere and not entry.note else ""
    note = f"  {entry.note}"[: room // 3] if entry.note else ""
    left = room - sum(map(cell_len, (mark, when, where, note)))
    size = size if left > _WIDE else ""
    return parts(
        (mark, "$accent"),
        (when, "$muted"),
        (size, "$faint"),
        column(entry.title, max(left - len(size), 8)),
        (where, "$muted"),
        (note, "$error"),
    )


#: Cells of a title with its size.
_WIDE = 60


async def pick(app: Host, data: Path, workspace: Path, current: str = "") -> Choice | None:
    return await app.push_screen_wait(SessionPicker(data, workspace, current))


async def choose_another(app: Host, session: Session) -> None:
    if app.reopen is None:
        app.notify("Another session can be opened only if `tui-agent` started this one.", severity="warning")
        return
    current = session.state.session.id
    choice = await pick(app, session.folders.data, session.workspace.root, current)
    if choice is None or choice.session == current:
        return
    if await asyncio.to_thread(sockets.of_session, choice.session):
        await app.switch(Choice(choice.session, attach=True))
        return
    SessionLock.take(folder_of(session.folders.data, choice.session)).release()
    await app.switch(choice)


async def begin_new(app: Host, session: Session) -> None:
    if app.reopen is None:
        app.notify("Another session can be started only from `tui-agent` itself.", severity="warning")
    else:
        await app.switch(Choice(""))


async def export_this(app: Host, session: Session) -> None:
    default = f"{session.state.session.name or session.state.session.id}.md".replace("/", "-")

    def rows(words: str) -> list[ChooserRow]:
        name = words.strip() or default
        return [ChooserRow(name, label(f"Write {name}"))]

    chosen = await app.push_screen_wait(Chooser("Export to a Markdown file", rows, "type another file name"))
    if not chosen:
        return
    target = session.workspace.root / await asyncio.to_thread(Path(chosen).expanduser)
    await session.chat.export(target)
    await session.notice(f"Exported to {target}")


async def fork_this(app: Host, session: Session) -> None:
    if app.reopen is None:
        return
    forked = await fork_at_a_turn(
        app, session.folders.data, session.state.session.id, session.state.turn.number
    )
    if forked:
        await app.switch(Choice(forked))


async def rename_this(app: Host, session: Session) -> None:
    name = await app.push_screen_wait(naming(session.state.session.name))
    if name:
        await session.rename(name)


#: Messages searched, newest first, and characters of context around a match.
LOOKED_THROUGH, AROUND = 5_000, 60
_WHO = {"person": "you", "agent": "agent", "note": "note", "command": "command"}


async def find_in_transcript(app: App[object], session: Session) -> int | None:
    messages: list[ChatMessage] = list(session.state.chat.messages)

    async def get() -> None:
        if messages and messages[0].number > 1:
            messages[:0] = await session.chat.earlier(messages[0].number, LOOKED_THROUGH)

    def rows(words: str) -> list[ChooserRow]:
        wanted = words.strip().lower()
        found = []
        for message in reversed(messages):
            text = "\n".join(part for part in (message.headline, message.text) if part)
            at = text.lower().find(wanted)
            if wanted and at >= 0:
                start = max(0, text.rfind("\n", 0, at) + 1, at - AROUND // 2)
                line = text[start : start + AROUND].partition("\n")[0] or text[at : at + AROUND]
                who = _WHO.get(message.kind, message.kind)
                found.append(ChooserRow(str(message.number), parts((f"{who:<8}", "$muted"), one_line(line))))
        return found

    chosen = await app.push_screen_wait(Chooser("Search the chat", rows, "type text", get()))
    return int(chosen) if chosen else None


async def find_in_history(app: App[object], session: Session) -> str | None:
    history = list(reversed(session.state.input.history))

    def rows(words: str) -> list[ChooserRow]:
        wanted = words.strip().lower()
        return [
            ChooserRow(str(at), label(one_line(text)))
            for at, text in enumerate(history)
            if wanted in text.lower()
        ]

    chosen = await app.push_screen_wait(Chooser("Messages you sent", rows))
    return history[int(chosen)] if chosen else None


async def rewind(app: Host, session: Session) -> None:
    await edit_earlier(app, session, files=True)


async def edit_earlier(app: Host, session: Session, *, files: bool = False) -> None:
    """Forks before an earlier message, with its text in the prompt; `files` also restores the files."""
    if app.reopen is None:
        app.notify("A fork can be started only from `tui-agent` itself.", severity="warning")
        return
    sent: dict[int, str] = {}

    async def get() -> None:
        try:
            messages = await session.chat.earlier(session.state.chat.total + 1, LOOKED_THROUGH)
        except TuiAgentError as error:
            await session.notice(str(error), "error")
            return
        sent.update((message.turn, message.text) for message in messages if message.kind == "person")

    def rows(words: str) -> list[ChooserRow]:
        return [
            ChooserRow(str(turn), parts((f"turn {turn:<4}", "$muted"), one_line(text)))
            for turn, text in reversed(sent.items())
            if words.strip().lower() in text.lower()
        ]

    title = "Rewind files and conversation to before …" if files else "Edit and send again in a fork"
    chosen = await app.push_screen_wait(Chooser(title, rows, getting=get()))
    if not chosen:
        return
    turn = int(chosen)
    if files:
        copy = await session.rewind(turn)
    else:
        data, name = session.folders.data, session.state.session.id
        copy = (await asyncio.to_thread(fork, data, name, turn - 1)).id if turn > 1 else ""
    await app.switch(Choice(copy, draft=sent[turn]))
