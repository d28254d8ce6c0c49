"""Syntax colours of visible lines, in editors and in read-only text.

The tree is queried in chunks: a chunk takes 1 ms in any file, the whole tree 35 ms at 500 lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import pairwise
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.app import App

from tui_agent.edits.change import Diff
from tui_agent.ui.diff.diff_lines import DiffLine, new_lines
from tui_agent.workspace.syntax_trees import parse, prepared

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query


#: Lines per query.
CHUNK = 24
#: Maximum inserted lines for which colours are shifted; larger edits discard them.
MOVED = 1_000
LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".jsx": "javascript",
    ".ts": "javascript",
    ".tsx": "javascript",
    ".json": "json",
    ".toml": "toml",
    ".md": "markdown",
    ".markdown": "markdown",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".html": "html",
    ".htm": "html",
    ".css": "css",
    ".tcss": "css",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".sh": "bash",
    ".bash": "bash",
    ".sql": "sql",
    ".xml": "xml",
    ".svg": "xml",
}
Highlight = tuple[int, int | None, str]
#: Row, and column in bytes.
Point = tuple[int, int]


class HasSyntaxTree(Protocol):
    query: Query | None

    def query_syntax_tree(
        self, query: Query, start_point: Point, end_point: Point
    ) -> dict[str, list[Node]]: ...


class LineHighlights(defaultdict[int, list[Highlight]]):
    """Queried on access; `clear` empties the cache."""

    def __init__(self, parsed: Callable[[], HasSyntaxTree | None]) -> None:
        super().__init__(list)
        self._parsed = parsed

    def __missing__(self, row: int) -> list[Highlight]:
        first = row - row % CHUNK
        missing = {line: list[Highlight]() for line in range(first, first + CHUNK) if line not in self}
        self.update(missing)
        parsed = self._parsed()
        if parsed is None or not (query := parsed.query):
            return self[row]
        first, end = min(missing), max(missing) + 1
        captures = parsed.query_syntax_tree(query, (first, 0), (end, 0))
        # A fixed order for all requests: of two colours on a word the later one wins.
        for name in (query.capture_name(number) for number in range(query.capture_count)):
            for node in sorted(captures.get(name, ()), key=attrgetter("start_byte")):
                (top, left), (bottom, right) = node.start_point, node.end_point
                for line in missing.keys() & range(max(top, first), min(bottom + 1, end)):
                    start = left if line == top else 0
                    self[line].append((start, right if line == bottom else None, name))
        return self[row]

    def move(self, top: Point, bottom: Point, end: Point, grows: bool) -> None:
        """Shifts the colours after an edit. With `grows`, text at the end of a coloured word gets its
        colour.
        """
        right = [
            (
                max(start, bottom[1]) - bottom[1] + end[1],
                None if stop is None else stop - bottom[1] + end[1],
                name,
            )
            for start, stop, name in self.get(bottom[0], [])
            if stop is None or stop > bottom[1]
        ]
        left = [(start, stop, name) for start, stop, name in self.get(top[0], []) if start < top[1]]
        known = top[0] in self, bottom[0] in self
        step = end[0] - bottom[0]
        if end[0] - top[0] > MOVED:
            self.clear()
            return
        kept = {
            row if row < top[0] else row + step: found
            for row, found in self.items()
            if not top[0] <= row <= bottom[0]
        }
        self.clear()
        self.update(kept)
        if not all(known):
            return
        if top[0] == bottom[0] == end[0]:
            more = end[1] - bottom[1]
            left = [
                (start, None if stop is None else _stop(stop, top[1], bottom[1], more, grows), name)
                for start, stop, name in left
            ]
            right = [one for one in right if one[0] >= end[1]]
            self[top[0]] = left + right
        else:
            self[top[0]] = left
            for row in range(top[0] + 1, end[0]):
                self[row] = []
            self[end[0]] = right if end[0] != top[0] else left + right


def _stop(stop: int, top: int, bottom: int, more: int, grows: bool) -> int:
    """New end of a highlight after an edit of `top`–`bottom` that adds `more` bytes."""
    if stop > bottom or (stop == bottom and grows):
        return stop + more
    return min(stop, top)


#: Maximum lines of coloured read-only text; parsing more would be noticeable.
LONGEST = 1_000
#: Limit of a parse, in seconds of processor time.
SECONDS = 0.2


@cache
def grammar_of(language: str) -> Language | None:
    """`None` if its package is missing or broken."""
    from tree_sitter import Language

    try:
        module: Any = import_module(f"tree_sitter_{language}")
        grammar: object = module.language_xml() if language == "xml" else module.language()
        return Language(grammar)
    except (ImportError, OSError, AttributeError):
        return None


@cache
def query_of(language: str) -> Query | None:
    grammar = grammar_of(language)
    file = files("textual") / "tree-sitter" / "highlights" / f"{language}.scm"
    if grammar is None or not file.is_file():
        return None
    return prepared(grammar, file.read_text(encoding="utf-8"))


class StyleSpan(NamedTuple):
    start: int
    end: int
    style: Style


class ParsedText:
    def __init__(self, lines: Sequence[str], language: str) -> None:
        from tree_sitter import Parser

        grammar = grammar_of(language)
        self.query: Query | None = None
        if grammar is None:
            return
        tree = parse(Parser(grammar), "".join(lines).encode(errors="replace"), SECONDS)
        if tree is None:
            return
        self._tree = tree
        self.query = query_of(language)

    def query_syntax_tree(self, query: Query, start_point: Point, end_point: Point) -> dict[str, list[Node]]:
        from tree_sitter import QueryCursor

        cursor = QueryCursor(query)
        cursor.set_point_range(start_point, end_point)
        return cursor.captures(self._tree.root_node)


class SyntaxColours:
    """Computed on access; `styles` maps tree-sitter capture names."""

    def __init__(self, lines: Sequence[str], language: str, styles: Mapping[str, Style]) -> None:
        self._lines = lines
        self._styles = styles
        parsed = ParsedText(lines, language)
        self._found = LineHighlights(lambda: parsed)

    def of(self, row: int) -> list[StyleSpan]:
        """Coloured ranges of a line in characters; later ones cover earlier ones."""
        text = self._lines[row].rstrip("\r\n")
        size = len(text.encode(errors="replace"))
        found = []
        for start, end, name in self._found[row]:
            style = self._styles.get(name)
            if style is not None:
                found.append(
                    StyleSpan(characters(text, start), characters(text, size if end is None else end), style)
                )
        return found


class DiffColours:
    """Removed lines have the base's colours, all others those of the new text."""

    def __init__(self, diff: Diff, styles: Mapping[str, Style]) -> None:
        self._base = self._new = None
        language = language_of(diff.path)
        new = new_lines(diff)
        if language and max(len(diff.base), len(new)) <= LONGEST:
            self._base = SyntaxColours(diff.base, language, styles)
            self._new = SyntaxColours(new, language, styles)

    @property
    def any(self) -> bool:
        return self._base is not None

    def of(self, line: DiffLine) -> list[StyleSpan]:
        side = self._base if line.kind == "removed" else self._new
        return side.of(line.number - 1) if side else []


def layered(text: str, style: Style, layers: Iterable[StyleSpan]) -> list[Segment]:
    """The text with `layers` on top of `style`, the last layer uppermost."""
    layers = [StyleSpan(max(start, 0), min(end, len(text)), over) for start, end, over in layers]
    edges = sorted({0, len(text), *(edge for layer in layers for edge in layer[:2])})
    segments = []
    for start, end in pairwise(edges):
        over = [layer.style for layer in layers if layer.start <= start and end <= layer.end]
        segments.append(Segment(text[start:end], Style.combine([style, *over])))
    return segments


def code_styles(app: App[object]) -> Mapping[str, Style]:
    from tui_agent.ui.themes import editor_theme

    return editor_theme(app.theme, app.theme_variables).syntax_styles


def language_of(path: str) -> str | None:
    return LANGUAGES.get(PurePosixPath(path).suffix.lower())


def characters(text: str, offset: int) -> int:
    return offset if text.isascii() else len(text.encode(errors="replace")[:offset].decode(errors="ignore"))
