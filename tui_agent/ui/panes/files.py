"""The file tree pane: git status, known or stale files, and open files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from textual.widget import Widget
from textual.widgets import Tree

from tui_agent.store.state import State
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.safe_text import label
from tui_agent.ui.widgets.file_tree import FileMark, FileTree, GitMark, TreeEntry
from tui_agent.ui.widgets.pane import Pane

FOUND = 60
#: Conflicts without a U in their code: both added, both deleted.
_BOTH_SIDES = frozenset({"AA", "DD"})
_CHANGED_BELOW: GitMark = ((" ", ""), ("·", "stale"))


class FilesPane(Pane):
    ID = "files"
    SLICES = ("workspace", "known", "buffers.tabs")

    @cached_property
    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {
            "open": lambda: self.files.action_select_cursor(),
            "find": self._find,
            "mention": self._mention_current,
            "diff": self._compare,
            "reveal": self._reveal,
        }

    def compose(self) -> Iterable[Widget]:
        yield FileTree(self.session.files.folder)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.show(self.session.state))
        self._revision = -1

    @property
    def files(self) -> FileTree:
        return self.query_one(FileTree)

    def show(self, state: State) -> None:
        where = state.workspace
        count = f" {where.files:,}" if where.files else ""
        self.title_text = f"Files{count}" + (" …" if where.indexing else "")
        if where.revision != self._revision:
            self._revision = where.revision
            self.files.update_files()
        self.files.mark(marks_of(state), self.app.theme_variables)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────

    def on_tree_node_selected(self, event: Tree.NodeSelected[TreeEntry]) -> None:
        entry = event.node.data
        if entry and entry.more:
            self._find()
        elif entry and not entry.is_folder:
            self._open(entry.path)

    def _open(self, path: str) -> None:
        self.act(self._opened(path), changes=("buffers",))

    async def _opened(self, path: str) -> None:
        await self.session.files.open(path)
        self.go_to("buffers", focus=self.has_focus_within)

    def _find(self) -> None:
        self.app.push_screen(Chooser("Find a file", self._found), self._chosen)

    def _found(self, query: str) -> list[ChooserRow]:
        return [ChooserRow(path, label(path)) for path in self.session.files.find(query, FOUND)]

    def _chosen(self, path: str | None) -> None:
        if path:
            self._open(path)

    def _mention_current(self) -> None:
        entry = self.files.current
        if entry and not entry.more:
            self.act(self._mention(entry.path), changes=("chat",))

    async def _mention(self, path: str) -> None:
        draft = self.session.state.input.draft
        gap = " " if draft and not draft.endswith((" ", "\n")) else ""
        name = f'@"{path}"' if " " in path else f"@{path}"
        self.session.chat.set_draft(f"{draft}{gap}{name} ")
        self.go_to("chat", focus=self.has_focus_within)

    def _compare(self) -> None:
        from tui_agent.ui.dialogs.preview import FileDiff

        entry = self.files.current
        if entry and not entry.more and not entry.is_folder:
            self.app.push_screen(FileDiff(self.session, entry.path))

    def _reveal(self) -> None:
        if active := self.session.state.buffers.active:
            self.files.go_to(active)


def marks_of(state: State) -> dict[str, FileMark]:
    """Marks by path, including ancestors of changed files."""
    after: dict[str, list[tuple[str, str]]] = {}
    for path, entry in state.known.files.items():
        after.setdefault(path, []).append(("⚠", "stale") if entry.stale else ("◆", "faint"))
    for buffer in state.buffers.open:
        after.setdefault(buffer.path, []).append(("●", "warning" if buffer.unsaved else "faint"))
    marks = {path: FileMark(after=tuple(signs)) for path, signs in after.items()}
    for path, letters in state.workspace.marks.items():
        marks[path] = marks.get(path, FileMark())._replace(git=_git_mark(letters))
        for folder in _above(path):
            marks.setdefault(folder, FileMark(_CHANGED_BELOW))
    return marks


def _git_mark(letters: str) -> GitMark:
    if letters == "??":
        return (" ", ""), ("?", "muted")
    if "U" in letters or letters in _BOTH_SIDES:
        return (letters[:1], "failed"), (letters[1:2], "failed")
    return (letters[:1], "done"), (letters[1:2], "stale")


def _above(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
