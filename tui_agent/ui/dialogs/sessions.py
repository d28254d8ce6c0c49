"""Sessions: one to be opened, searched, renamed, forked at a turn or deleted, also in the middle of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from tui_agent.errors import OpenElsewhere, TuiAgentError
from tui_agent.log import catalog
from tui_agent.log.catalog import SORTS, FoundLine, Sort, list_sessions, sorted_by
from tui_agent.log.directory import SessionEntry
from tui_agent.log.fork import fork
from tui_agent.ui.dialogs.chooser import MOST, Chooser, ChooserRow
from tui_agent.ui.dialogs.dialog import Dialog
from tui_agent.ui.host import Choice, Host, Reopen
from tui_agent.ui.sink import counted, label, parts, plain

if TYPE_CHECKING:
    from tui_agent.session.session import Session


#: Stands for the whole session.
WHOLE = "whole"


async def fork_at_a_turn(app: App[Any], data: Path, session: str, turns: int) -> str | None:
    """The id of a copy of the session up to the turn that the person chose; None where they chose none.

    Raises `SessionError`.
    """
    chosen = await app.push_screen_wait(_turns(data, session)) if turns > 1 else WHOLE
    if chosen is None:
        return None
    turn = None if chosen == WHOLE else int(chosen)
    return (await asyncio.to_thread(fork, data, session, turn)).id


def _turns(data: Path, session: str) -> Chooser:
    requests: list[FoundLine] = []

    async def get() -> None:
        requests.extend(await asyncio.to_thread(catalog.requests, data, session))

    def rows(words: str) -> list[ChooserRow]:
        fitting = [line for line in requests if words.lower() in f"{line.turn} {line.text}".lower()]
        whole = [ChooserRow(WHOLE, label("All of it, as it is now"))] if not words.strip() else []
        return [*whole, *(_turn_row(line) for line in fitting)]

    return Chooser("Fork this session, as it stood after …", rows, "words of a turn", get())


def _turn_row(line: FoundLine) -> ChooserRow:
    words = " ".join(line.text.split())[:64]
    return ChooserRow(str(line.turn), parts((f"turn {line.turn:>3}  ", "$muted"), words))


HINTS = (
    "Enter opens · Ctrl+T all folders · Ctrl+O sort · Ctrl+R rename · Ctrl+G fork · Ctrl+L delete · Esc back"
)


class SessionPicker(Dialog[Choice | None], inherit_bindings=False):
    """Gives the session that is to be opened, or None."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("f2,ctrl+r", "rename", show=False),
        Binding("f3,ctrl+t", "everywhere", show=False),
        Binding("f4,ctrl+o", "sort", show=False),
        Binding("f6,ctrl+g", "fork", show=False),
        Binding("f9,ctrl+l", "delete", show=False),
    ]

    def __init__(self, data: Path, workspace: Path, current: str = "") -> None:
        super().__init__()
        self._data = data
        self._workspace = workspace
        self._current = current
        self._everywhere = False
        self._sort: Sort = SORTS[0]
        self._entries: list[SessionEntry] = []

    def compose(self) -> Iterable[Widget]:
        with Vertical():
            yield Static("", id="picker-title", markup=False)
            yield Input(placeholder="words that were said, or a file's name", compact=True)
            with Horizontal():
                yield OptionList(markup=False, compact=True)
                yield Static("", id="preview", markup=False)
            yield Static(label(HINTS), id="picker-hints", markup=False)

    def on_mount(self) -> None:
        self._look()

    @property
    def options(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def entry(self) -> SessionEntry | None:
        """The session under the cursor."""
        at = self.options.highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    # ── showing ──────────────────────────────────────────────────────────────────────────────────────────

    def needs_content(self, event: events.Event) -> bool:
        moves = isinstance(event, events.Key) and not event.is_printable and event.key != "escape"
        return moves or isinstance(event, events.MouseEvent)

    def _look(self) -> None:
        self.fill(self._list())

    async def _list(self) -> None:
        """List what fits the words, the scope and the order; the cursor stays on its session."""
        words = self.query_one(Input).value
        where = None if self._everywhere else self._workspace
        entries = await asyncio.to_thread(list_sessions, self._data, where, words)
        if not self.query(OptionList):
            return  # it was closed meanwhile
        self._show(sorted_by(entries, self._sort)[:MOST], len(entries))

    def _show(self, entries: list[SessionEntry], count: int) -> None:
        before = self.entry
        self._entries = entries
        self.options.set_options([_row(entry, self._everywhere, self._current) for entry in entries])
        # to open the one that is open would do nothing
        others = (n for n, entry in enumerate(entries) if entry.id != self._current)
        stays = (n for n, entry in enumerate(entries) if before and entry.id == before.id)
        at = next(stays, next(others, 0))
        self.options.highlighted = at if entries else None
        where = "everywhere" if self._everywhere else "of this workspace"
        title = (
            f"{counted(count, 'session')} {where}, by {self._sort}" if entries else f"No such session {where}"
        )
        self.query_one("#picker-title", Static).update(label(title))
        if not entries:
            self.query_one("#preview", Static).update("")

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        self._preview()

    @work(exclusive=True, group="preview")
    async def _preview(self) -> None:
        entry = self.entry
        if entry:
            lines = await asyncio.to_thread(catalog.preview, self._data, entry.id)
            for preview in self.query("#preview").results(Static):  # none once it is closed
                preview.update(_preview_of(entry, lines))

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

    def on_input_changed(self) -> None:
        self._look()

    def on_input_submitted(self) -> None:
        self._open()

    def on_option_list_option_selected(self) -> None:
        self._open()

    def on_key(self, event: events.Key) -> None:
        moves = {
            "up": self.options.action_cursor_up,
            "down": self.options.action_cursor_down,
            "pageup": self.options.action_page_up,
            "pagedown": self.options.action_page_down,
        }
        if event.key in moves:
            event.stop()
            event.prevent_default()
            moves[event.key]()

    def _open(self) -> None:
        if self.entry:
            self.dismiss(Choice(self.entry.id))

    def action_everywhere(self) -> None:
        self._everywhere = not self._everywhere
        self._look()

    def action_sort(self) -> None:
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self._look()

    @work(exclusive=True, group="change")
    async def action_fork(self) -> None:
        if self.entry:
            entry = self.entry
            try:
                forked = await fork_at_a_turn(self.app, self._data, entry.id, entry.turns)
            except TuiAgentError as error:
                self._say(error)
            else:
                if forked:
                    self.dismiss(Choice(forked))

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        if self.entry:
            entry = self.entry
            name = await self.app.push_screen_wait(naming(entry.name))
            if name:
                await self._change(asyncio.to_thread(catalog.rename, self._data, entry.id, name))

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        if self.entry:
            entry = self.entry
            rows = [
                ChooserRow("", label("No, keep it")),
                ChooserRow("delete", label("Yes, delete it for good")),
            ]
            question = Chooser(f"Delete “{entry.title[:50]}”?", lambda _: rows, "")
            if await self.app.push_screen_wait(question) == "delete":
                await self._change(catalog.delete(self._data, entry.id))

    async def _change(self, change: Awaitable[None]) -> None:
        try:
            await change
        except TuiAgentError as error:
            self._say(error)
        self._look()

    def _say(self, error: TuiAgentError) -> None:
        self.notify(str(error), severity="error", markup=False)


def naming(name: str) -> Chooser:
    """Asks for a name; gives None where none is wanted."""
    return Chooser(
        f"A name for “{name}”" if name else "A name for this session",
        lambda words: (
            [ChooserRow(words.strip(), label(f"Rename it to “{words.strip()}”"))] if words.strip() else []
        ),
        "type the name",
    )


def elsewhere(session: str, what: str) -> Chooser:
    """Asks what to do about a session that another process has open: gives `fork`, `read`, or None."""
    rows = [
        ChooserRow("fork", label("Fork it")),
        ChooserRow("read", label("Look at it, without changing anything")),
        ChooserRow("", label("Leave it")),
    ]
    return Chooser(f"{what[:1].upper()}{what[1:]}", lambda _: rows, "")


def _row(entry: SessionEntry, everywhere: bool, current: str) -> Content:
    mark = "● " if entry.id == current else "  "
    where = f"  {Path(entry.workspace).name}" if everywhere else ""
    note = f"  {entry.note}" if entry.note else ""
    return parts(
        (mark, "$accent"),
        (f"{_when(entry)}  ", "$muted"),
        (f"{counted(entry.turns, 'turn'):>9} {entry.size_in_words:>7}  ", "$faint"),
        entry.title[:60],
        (where, "$muted"),
        (note, "$error"),
    )


def _when(entry: SessionEntry) -> str:
    return datetime.fromtimestamp(entry.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _preview_of(entry: SessionEntry, lines: list[FoundLine]) -> Content:
    said = [
        Content.assemble(
            plain(
                "you " if line.kind == "person" else "agent ",
                "$accent" if line.kind == "person" else "$muted",
            ),
            plain(line.text[:600]),
        )
        for line in lines
    ]
    head = parts((entry.id, "$muted"), "  ", (entry.workspace, "$faint"))
    return Content("\n\n").join([head, *said])


async def pick(app: Host, data: Path, workspace: Path, current: str = "") -> Choice | None:
    """Let the person pick one."""
    return await app.push_screen_wait(SessionPicker(data, workspace, current))


async def open_otherwise(app: Host, reopen: Reopen, error: OpenElsewhere) -> Session | None:
    """Ask what to do with a session that is open elsewhere, and do it. None where the person lets it be."""
    match await app.push_screen_wait(elsewhere(error.session, error.what)):
        case "fork":
            return await reopen(Choice(await _forked(error.session)))
        case "read":
            return await reopen(Choice(error.session, read_only=True))
    return None


async def choose_another(app: Host, session: Session) -> None:
    """Close the session that is open, and go on with another."""
    if app.reopen is None:
        app.notify(
            "Another session can be opened only where `tui-agent` was started for one.", severity="warning"
        )
        return
    current = session.state.session.id
    choice = await pick(app, session.folders.data, session.workspace.root, current)
    if choice is not None and choice.session != current:
        await app.switch(choice)


async def begin_new(app: Host, session: Session) -> None:
    """Close the session that is open, and begin another in the same folder; it stays in the list."""
    if app.reopen is None:
        app.notify("Only `tui-agent` itself can begin another session here.", severity="warning")
    else:
        await app.switch(Choice(""))


async def export_this(app: Host, session: Session) -> None:
    """Ask for a file, and write what was said to it."""
    default = f"{session.state.session.name or session.state.session.id}.md".replace("/", "-")

    def rows(words: str) -> list[ChooserRow]:
        name = words.strip() or default
        return [ChooserRow(name, label(f"Write {name}"))]

    chosen = await app.push_screen_wait(
        Chooser("Export to a Markdown file", rows, "type another name or path")
    )
    if not chosen:
        return
    target = await asyncio.to_thread(_target, session.workspace.root, chosen)
    try:
        await session.chat.export(target)
        await session.notice(f"{target} holds this session")
    except TuiAgentError as error:
        await session.notice(str(error), "error")


def _target(root: Path, name: str) -> Path:
    return root / Path(name).expanduser()


async def fork_this(app: Host, session: Session) -> None:
    """Go on with a copy of the session that is open, as it stood after a turn."""
    if app.reopen is None:
        return
    try:
        forked = await fork_at_a_turn(
            app, session.folders.data, session.state.session.id, session.state.turn.number
        )
        if forked:
            await app.switch(Choice(forked))
    except TuiAgentError as error:
        await session.notice(str(error), "error")


async def rename_this(app: Host, session: Session) -> None:
    """Ask for a name for the session that is open."""
    name = await app.push_screen_wait(naming(session.state.session.name))
    if name:
        await session.rename(name)


async def _forked(session: str) -> str:
    from tui_agent.settings.folders import user_folders

    return (await asyncio.to_thread(fork, user_folders().data, session)).id
