"""The editor pane: tabs of open files, an editor, notices of external changes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from textual import events, on, work
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.errors import SessionError, TuiAgentError
from tui_agent.files.numbers import whole_number
from tui_agent.store.files import Buffer, BuffersSlice
from tui_agent.store.state import State
from tui_agent.ui.editor.code_editor import Editor, duplicate_lines, go_to_bracket, move_lines, toggle_comment
from tui_agent.ui.editor.find_bar import FindBar, FindMode
from tui_agent.ui.editor.writing_area import WritingArea
from tui_agent.ui.keys.keyboard import store_waiting
from tui_agent.ui.safe_text import parts
from tui_agent.ui.widgets.line_view import Hint, HintLine
from tui_agent.ui.widgets.pane import Pane, compare
from tui_agent.workspace.syntax_trees import has_symbols

if TYPE_CHECKING:
    from tui_agent.session.session import Session
    from tui_agent.ui.host import Host
    from tui_agent.ui.panes.review_body import ConflictChoices

_GAP = 3


class FileTabs(Widget):
    DEFAULT_CSS = """
    FileTabs { height: 1; padding: 0 1; background: $background; color: $text; }
    """

    class FilePressed(Message):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self._buffers = BuffersSlice()
        #: The tab may move before the release.
        self._pressed = ""

    def show(self, buffers: BuffersSlice) -> None:
        before, self._buffers = self.render(), buffers
        self.set_class(not buffers.open, "-empty")
        if not self.render().is_same(before):
            self.refresh()

    def render(self) -> Content:
        labels = [self._label(buffer) for buffer in self._shown()]
        return Content(" " * _GAP).join(labels) if labels else parts(("Editor", "bold"))

    def _shown(self) -> list[Buffer]:
        shown = list(self._buffers.open)
        while len(shown) > 1 and sum(self._label(b).cell_length + _GAP for b in shown) > self.size.width:
            if shown[0].path == self._buffers.active:
                shown.pop()
            else:
                shown.pop(0)
        return shown

    def _label(self, buffer: Buffer) -> Content:
        path = PurePosixPath(buffer.path)
        is_unique = sum(PurePosixPath(b.path).name == path.name for b in self._buffers.open) < 2
        name = path.name if is_unique else "/".join(path.parts[-2:])
        mark = ("!" if buffer.clash else "●", "$warning") if buffer.unsaved or buffer.clash else ("", "")
        front = buffer.path == self._buffers.active
        return parts((name, "bold" if front else "$muted"), " " if mark[0] else "", mark)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = ""
        x = event.get_content_offset_capture(self).x
        for buffer in self._shown():
            x -= self._label(buffer).cell_length + _GAP
            if x < 0:
                self._pressed = buffer.path
                return

    def on_click(self) -> None:
        if self._pressed:
            self.post_message(self.FilePressed(self._pressed))


#: Seconds between the first key and the session's copy of the text.
HAND_OVER_AFTER = 0.1
_ON_CLASH = (("merge", "compare and merge"), ("reload", "use the disk's"), ("overwrite", "overwrite it"))


class BuffersPane(Pane):
    ID = "buffers"
    SLICES = ("buffers",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._editors: dict[str, Editor] = {}
        self._timer: Timer | None = None
        self._banner = Content()
        self._tabs: object = None

    can_focus = True

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        files = self.session.files
        return {
            "save": partial(self._on_file, self._save, text_waits=False),
            "overwrite": partial(self._on_file, partial(files.save, overwrite=True), text_waits=False),
            "merge": lambda: self.act(self._merge(), opens=True),
            "reload": partial(self._on_file, files.reload),
            "close": partial(self._on_file, files.close),
            "discard": partial(self._on_file, partial(files.close, discard=True)),
            "diff": lambda: compare(self, self.session.state.buffers.active),
            "next_tab": partial(self._step, 1),
            "previous_tab": partial(self._step, -1),
            "comment": lambda: self._on_lines(toggle_comment),
            "duplicate": lambda: self._on_lines(duplicate_lines),
            "line_up": lambda: self._on_lines(lambda editor: move_lines(editor, -1)),
            "line_down": lambda: self._on_lines(lambda editor: move_lines(editor, 1)),
            "wrap": self._wrap,
            "symbol": self._find_symbol,
            "bracket": lambda: self.editor and go_to_bracket(self.editor),
            "outside": lambda: self._open_outside(),
            "find": partial(self._find, "find"),
            "replace": partial(self._find, "replace"),
            "replace_all": lambda: self.act(self.query_one(FindBar).replace_all(), opens=True),
            "find_case": lambda: self.query_one(FindBar).switch("find_case"),
            "find_regex": lambda: self.query_one(FindBar).switch("find_regex"),
            "find_selection": lambda: self.query_one(FindBar).switch("find_selection"),
            "goto_line": partial(self._find, "line"),
        }

    def compose(self) -> Iterable[Widget]:
        yield FileTabs()
        yield Static("", id="banner", markup=False)
        yield HintLine()
        yield Static("", id="no-file", markup=False)
        yield FindBar(self.session)
        if self.keys.modal:
            yield Static("", id="vim-mode", markup=False)

    def on_mount(self) -> None:
        self.query_one(HintLine).set_words([Hint(f"buffers.{name}", words) for name, words in _ON_CLASH])

    @property
    def editor(self) -> Editor | None:
        return self._editors.get(self.session.state.buffers.active)

    @property
    def entry(self) -> Widget:
        return self.editor or self

    def show(self, state: State) -> None:
        buffers = state.buffers
        active = buffers.get(buffers.active)
        before, self._tabs = self._tabs, buffers.tabs
        if before == self._tabs:
            if active:
                self._show_editor(active)
            return
        unsaved = sum(buffer.unsaved for buffer in buffers.open)
        count = f" {len(buffers.open)}" if buffers.open else ""
        self.title_text = f"Editor{count}" + (f" ●{unsaved}" if unsaved else "")
        self.query_one(FileTabs).show(buffers)
        for path in self._editors.keys() - {buffer.path for buffer in buffers.open}:
            editor = self._editors.pop(path)
            if self.screen.focused is editor:
                self.focus()
            editor.remove()
        if active:
            self._show_editor(active)
        for path, editor in self._editors.items():
            editor.display = path == buffers.active
        self._show_banner(active)
        no_file = self.query_one("#no-file", Static)
        no_file.display = active is None
        if active is None:
            find, files = self.keys.shown("files.find"), self.keys.shown("pane.files")
            no_file.update(
                parts(
                    ("No file is open. ", "$muted"), (f"{files} {find}", "$accent"), (" finds one.", "$muted")
                )
            )
        bar = self.query_one(FindBar)
        if bar.editor is not None and bar.editor is not self.editor:
            bar.close()
        self._show_mode()

    @on(WritingArea.VimCommand)
    def _run_typed(self, message: WritingArea.VimCommand) -> None:
        match message.name:
            case "w":
                self.commands["save"]()
            case "q":
                self.commands["close"]()
            case "q!":
                self.commands["discard"]()
            case "wq" | "x":
                self._on_file(partial(self._save, closes=True), text_waits=False)
            case _ if message.words:
                self.act(self.session.files.open(message.words), opens=True)
            case _:
                self.commands["reload"]()

    @on(WritingArea.VimShown)
    def _vim_shown(self, message: WritingArea.VimShown) -> None:
        message.stop()
        self._show_mode()

    def _show_mode(self) -> None:
        if not self.keys.modal:
            return
        from tui_agent.ui.editor.vim import mode_words

        line, vim = self.query_one("#vim-mode", Static), self.editor.vim if self.editor else None
        line.display = vim is not None
        if vim is not None:
            line.update(mode_words(vim.shown))

    def _show_editor(self, buffer: Buffer) -> None:
        editor = self._editors.get(buffer.path)
        if editor is None:
            editor = Editor(buffer)
            if self.keys.modal:
                editor.use_vim()
            self._editors[buffer.path] = editor
            self.mount(editor, before="#no-file")
            self.call_later(self._fill, editor)
        elif editor.is_mounted:
            editor.take(buffer)
            if self.screen.focused is self:
                editor.focus()

    def _fill(self, editor: Editor) -> None:
        buffer = self.session.state.buffers.get(editor.path)
        if buffer and editor.is_attached:
            editor.take(buffer)
            if editor.vim is not None:
                editor.vim.enter("normal")
            self._show_banner(buffer)
            focused = self.screen.focused
            if focused is not None and self in focused.ancestors_with_self and self.editor is editor:
                editor.focus()

    def _show_banner(self, buffer: Buffer | None) -> None:
        banner = self.query_one("#banner", Static)
        words = Content()
        if buffer and buffer.clash:
            words = parts(("Changed on disk while you edited", "$warning"))
        elif buffer and buffer.note:
            words = parts((f"Read only: {buffer.note}", "$muted"))
        elif buffer and (editor := self._editors.get(buffer.path)) and editor.whole:
            count, key = len(editor.whole), self.keys.shown("buffers.goto_line")
            words = parts(
                (f"Read only: {count:,} lines, shown in parts. ", "$muted"),
                (key, "$accent"),
                " goes to any of them.",
            )
        banner.display = bool(words)
        self.query_one(HintLine).display = bool(buffer and buffer.clash)
        if not words.is_same(self._banner):  # each update lays out the whole screen
            self._banner = words
            banner.update(words)

    def on_text_area_changed(self, message: WritingArea.Changed) -> None:
        """Updates the tab's mark at once, since it shifts the targets of clicks."""
        message.stop()  # bubbling would visit each ancestor for nothing
        editor = message.text_area
        buffer = self.session.state.buffers.get(editor.path) if isinstance(editor, Editor) else None
        if (
            isinstance(editor, Editor)
            and buffer is not None
            and (not buffer.unsaved or editor.length == editor.saved_length)
        ):
            self._stop_timer()
            self._hand_over()
            self.show(self.session.state)
        else:
            self._hand_over_soon()
        self.query_one(FindBar).text_changed()

    def on_text_area_selection_changed(self, message: WritingArea.SelectionChanged) -> None:
        message.stop()
        self._hand_over_soon()

    def on_editor_scrolled(self) -> None:
        self._hand_over_soon()

    def _hand_over_soon(self) -> None:
        if self._timer is None:
            self._timer = self.set_timer(HAND_OVER_AFTER, self._hand_over)

    def _hand_over(self) -> None:
        self._timer = None
        for path, editor in self._editors.items():
            buffer = self.session.state.buffers.get(path)
            if buffer is None or editor.revision < 0:
                continue
            if editor.revision != buffer.revision:
                editor.take(buffer)
            cursor, anchor = editor.place
            text = editor.changed_text
            if text is not None and text != buffer.text:
                editor.told, editor.agreed = (cursor, anchor), text
                self.session.files.edit(path, text, cursor, anchor)
                store_waiting(self.app, self.session)
            elif (cursor, anchor) != editor.told:
                editor.told = (cursor, anchor)
                self.session.files.move_cursor(path, cursor, anchor)
            if editor.size and editor.scroll_place != (buffer.scroll or (0, 0)):
                self.session.files.scroll(path, editor.scroll_place)

    async def flush(self) -> None:
        self._stop_timer()
        self._hand_over()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _on_file(
        self, call: Callable[[str], Coroutine[Any, Any, object]], *, text_waits: bool = True
    ) -> None:
        if active := self.session.state.buffers.active:
            self.act(call(active), text_waits=text_waits)

    async def _save(self, path: str, *, closes: bool = False) -> None:
        await self.session.files.save(path)
        await self.session.notice(f"Saved {path}")
        if closes:
            await self.session.files.close(path)

    def _on_lines(self, change: Callable[[Editor], object]) -> None:
        editor = self.editor
        if editor is not None and not editor.read_only:
            change(editor)

    def _wrap(self) -> None:
        if self.editor is not None:
            self.editor.soft_wrap = not self.editor.soft_wrap

    def _find_symbol(self) -> None:
        from tui_agent.ui.dialogs.chooser import room_of
        from tui_agent.ui.dialogs.palette import symbol_chooser

        editor = self.editor
        if editor is None:
            return
        if not has_symbols(editor.path):
            key = self.keys.shown("buffers.goto_line")
            self.act(
                self.session.notice(f"The language of {editor.path} has no symbols; {key} goes to a line")
            )
            return

        def go(chosen: str | None) -> None:
            if chosen:
                row, _, column = chosen.partition(":")
                editor.go_to_line(whole_number(row) + 1, whole_number(column) + 1)

        room = room_of(self.app.size.width)
        self.app.push_screen(symbol_chooser(editor.path, editor.lines, editor.place[0][0], room), go)

    async def _merge(self) -> None:
        from tui_agent.ui.dialogs.preview import Merge

        await self.flush()
        buffer, files = self.session.state.buffers.get(self.session.state.buffers.active), self.session.files
        if buffer is None or not buffer.clash:
            await self.session.notice("Nothing changed on disk while you edited the file")
            return
        path, view = buffer.path, await files.clash(buffer.path)

        async def settle(made: ConflictChoices) -> None:
            await files.resolve(path, made.sides, made.by_hand, made.view.now)
            made.drop_drafts(self.session)

        def merged(made: ConflictChoices | None) -> None:
            if made is not None:
                self.act(settle(made))

        await self.app.push_screen(Merge(view, buffer.text, self.session), merged)

    @work(exclusive=True)
    async def _open_outside(self) -> None:
        """Saved changes are reloaded like any change on disk."""
        from tui_agent.ui.desktop import editor, opening

        await self.flush()
        buffers, session = self.session.state.buffers, self.session
        active = buffers.get(buffers.active)
        if active is None:
            return
        try:
            if active.unsaved:
                key = self.keys.shown("buffers.save")
                raise SessionError(
                    f"{active.path} has unsaved text, which the external editor would not see",
                    f"save it: {key}",
                )
            words = opening(editor(), session.workspace.root / active.path, active.cursor[0] + 1)
            await cast("Host", self.app).hand_over(words)
        except TuiAgentError as error:
            await session.notice(str(error), "error")

    def _step(self, step: int) -> None:
        buffers = self.session.state.buffers
        paths = [buffer.path for buffer in buffers.open]
        if buffers.active in paths:
            self.act(self._activate(paths[(paths.index(buffers.active) + step) % len(paths)]))

    async def _activate(self, path: str) -> None:
        focused = self.has_focus_within
        await self.session.files.activate(path)
        if focused:
            self.call_later(self.enter)

    def on_file_tabs_file_pressed(self, message: FileTabs.FilePressed) -> None:
        self.act(self._activate(message.path))

    def _find(self, mode: FindMode) -> None:
        if self.editor:
            self.query_one(FindBar).open_for(mode, self.editor)

    def on_find_bar_closed(self) -> None:
        self.enter()

    def on_focus(self) -> None:
        if self.editor:
            self.editor.focus()
