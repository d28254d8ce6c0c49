"""The file tree pane: git status, known or stale files, and open files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.widget import Widget
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tui_agent.store.state import State
from tui_agent.ui.dialogs.chooser import Chooser, ChooserRow
from tui_agent.ui.safe_text import label, rich_label
from tui_agent.ui.widgets.pane import Pane, compare

#: Maximum files shown per folder; finding by name has no limit.
MOST = 2_000

Folder = Callable[[str], tuple[list[str], list[str]]]


class TreeEntry(NamedTuple):
    """A file or folder; `more` is the number of omitted files."""

    path: str
    is_folder: bool
    more: int = 0


#: Git status characters, staged and unstaged, each with a colour name; a space means unchanged.
GitMark = tuple[tuple[str, str], tuple[str, str]]
NO_GIT_MARK: GitMark = ((" ", ""), (" ", ""))


class FileMark(NamedTuple):
    """`git` is before the name, `after` behind it, each with a colour name."""

    git: GitMark = NO_GIT_MARK
    after: tuple[tuple[str, str], ...] = ()


class FileTree(Tree[TreeEntry]):
    """`folder(path)` returns sorted folders and files."""

    ICON_NODE = "▸ "
    ICON_NODE_EXPANDED = "▾ "

    DEFAULT_CSS = """
    FileTree {
        background: $surface; padding: 0 1 0 0; scrollbar-size-vertical: 1; height: 1fr;
        &:focus { background-tint: transparent; }
        & > .tree--cursor { background: $surface-raised; color: $text; text-style: none; }
        &:focus > .tree--cursor { background: $accent-surface; color: $text; text-style: none; }
        & > .tree--highlight-line { background: $surface-raised; }
        & > .tree--highlight { text-style: none; }
    }
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._listed: dict[str, tuple[list[str], list[str]]] = {}
        self._marks: dict[str, FileMark] = {}
        self._colours: dict[str, str] = {}
        super().__init__("", TreeEntry("", True))
        self.show_root = False
        self.show_guides = False
        self.guide_depth = 2
        self.auto_expand = True

    def on_mount(self) -> None:
        # Records pseudo classes that Textual needs for a click, which may precede the first frame.
        self.render_lines(Region())

    def on_focus(self) -> None:
        self.cursor_line = max(self.cursor_line, 0)

    def point(self, x: int, y: int) -> None:
        line = y + self.scroll_offset.y
        if line <= self.last_line:
            self.cursor_line = line

    def update_files(self) -> None:
        if self._listed and all(self._folder(path) == seen for path, seen in self._listed.items()):
            return
        cursor = self.cursor_node.data if self.cursor_node else None
        opened = {node.data.path for node in self._nodes_below() if node.data and node.is_expanded}
        scroll = self.scroll_y
        self._listed = {}
        self.root.remove_children()
        self._fill(self.root, opened)
        self.root.expand()
        if cursor:
            self.call_after_refresh(self.go_to, cursor.path, scroll)

    def _fill(self, node: TreeNode[TreeEntry], opened: set[str]) -> None:
        assert node.data is not None
        path = node.data.path
        folders, files = self._listed[path] = self._folder(path)
        prefix = f"{path}/" if path else ""
        for name in folders:
            child = node.add(rich_label(name), TreeEntry(prefix + name, True))
            if prefix + name in opened:
                self._fill(child, opened)
                child.expand()
        for name in files[:MOST]:
            node.add_leaf(rich_label(name), TreeEntry(prefix + name, False))
        if len(files) > MOST:
            more = len(files) - MOST
            node.add_leaf(rich_label(f"and {more:,} more"), TreeEntry(path, False, more))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[TreeEntry]) -> None:
        entry = event.node.data
        if entry and entry.path not in self._listed:
            self._fill(event.node, set())

    def _nodes_below(self) -> Iterator[TreeNode[TreeEntry]]:
        stack = list(self.root.children)
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children)

    def go_to(self, path: str, scroll: float | None = None) -> None:
        node = self.root
        for depth in range(1, path.count("/") + 2):
            wanted = "/".join(path.split("/")[:depth])
            found = next((n for n in node.children if n.data and n.data.path == wanted), None)
            if found is None:
                break
            node = found
            if node.data and node.data.is_folder and wanted != path:
                if wanted not in self._listed:
                    self._fill(node, set())
                node.expand()
        if node is not self.root:
            self.call_after_refresh(self.move_cursor, node)
        if scroll is not None:
            self.call_after_refresh(self.scroll_to, None, scroll, animate=False)

    @property
    def current(self) -> TreeEntry | None:
        return self.cursor_node.data if self.cursor_node else None

    def mark(self, marks: dict[str, FileMark], colours: dict[str, str]) -> None:
        if (marks, colours) != (self._marks, self._colours):
            self._marks, self._colours = marks, colours
            for node in self._nodes_below():
                node.refresh()

    def render_label(self, node: TreeNode[TreeEntry], base_style: Style, style: Style) -> Text:
        entry = node.data
        if entry is None:
            return super().render_label(node, base_style, style)
        mark = self._marks.get(entry.path, FileMark())
        line = Text(style=style, end="", no_wrap=True)
        if entry.is_folder:
            icon = self.ICON_NODE_EXPANDED if node.is_expanded else self.ICON_NODE
            line.append(f" {icon}", self._style("muted"))
        else:
            for letter, colour in mark.git:
                line.append(letter, self._style(colour))
            line.append(" ")
        label = rich_label(str(node.label))
        if entry.more or entry.is_folder:
            label.stylize(self._style("muted" if entry.more else mark.git[1][1]))
        line.append_text(label)
        for sign, colour in mark.after:
            line.append(f" {sign}", self._style(colour))
        return line

    def _style(self, colour: str) -> Style:
        return Style(color=self._colours.get(colour)) if colour else Style()


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
            "mention": lambda: (
                (it := self.files.current)
                and not it.more
                and self.act(self._mention(it.path), changes=("chat",))
            ),
            "diff": lambda: compare(
                self, it.path if (it := self.files.current) and not (it.more or it.is_folder) else ""
            ),
            "reveal": lambda: (path := self.session.state.buffers.active) and self.files.go_to(path),
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

    def on_tree_node_selected(self, event: Tree.NodeSelected[TreeEntry]) -> None:
        entry = event.node.data
        if entry and entry.more:
            self._find()
        elif entry and not entry.is_folder:
            self._open(entry.path)

    def _open(self, path: str | None) -> None:
        if path:
            self.act(self._opened(path), changes=("buffers",))

    async def _opened(self, path: str) -> None:
        await self.session.files.open(path)
        self.go_to("buffers", focus=self.has_focus_within)

    def _find(self) -> None:
        def found(query: str) -> list[ChooserRow]:
            return [ChooserRow(path, label(path)) for path in self.session.files.find(query, FOUND)]

        self.app.push_screen(Chooser("Find a file", found), self._open)

    async def _mention(self, path: str) -> None:
        draft = self.session.state.input.draft
        gap = " " if draft and not draft.endswith((" ", "\n")) else ""
        name = f'@"{path}"' if " " in path else f"@{path}"
        self.session.chat.set_draft(f"{draft}{gap}{name} ")
        self.go_to("chat", focus=self.has_focus_within)


def marks_of(state: State) -> dict[str, FileMark]:
    after: dict[str, list[tuple[str, str]]] = {}
    for path, entry in state.known.files.items():
        after.setdefault(path, []).append(("⚠", "stale") if entry.stale else ("◆", "faint"))
    for buffer in state.buffers.open:
        after.setdefault(buffer.path, []).append(("●", "warning" if buffer.unsaved else "faint"))
    marks = {path: FileMark(after=tuple(signs)) for path, signs in after.items()}
    for path, letters in state.workspace.marks.items():
        git: GitMark = (letters[:1], "done"), (letters[1:2], "stale")
        if letters == "??":
            git = (" ", ""), ("?", "muted")
        elif "U" in letters or letters in _BOTH_SIDES:
            git = (letters[:1], "failed"), (letters[1:2], "failed")
        marks[path] = marks.get(path, FileMark())._replace(git=git)
        while path := path.rpartition("/")[0]:
            marks.setdefault(path, FileMark(_CHANGED_BELOW))
    return marks
