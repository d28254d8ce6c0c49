"""Parses texts with tree-sitter within a time limit, and extracts imports.

Some texts take quadratic time: 20,000 comment lines in Python take 7 s. A parser holds the GIL if it is
given the whole text, but not if it requests pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, Final

from tui_agent.workspace.related_files import Import

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query, Tree


_PIECE: Final = 4096


class _Source:
    """Provides a text to a parser and its tree; ends early if `given_up` returns True."""

    def __init__(self, text: bytes, seconds: float, unwanted: Callable[[], bool] | None) -> None:
        self._text = text
        self._until = thread_time() + seconds
        self._unwanted = unwanted
        self.given_up = self.parsed = False

    def __call__(self, offset: int, _: object = None) -> bytes:
        return b"" if self.over() else self._text[offset : offset + _PIECE]

    def over(self, *_: object) -> bool:
        if not self.parsed and not self.given_up:
            self.given_up = thread_time() > self._until or bool(self._unwanted and self._unwanted())
        return self.given_up

    def finish(self) -> None:
        self.parsed, self._unwanted = True, None


def parse(
    parser: Parser,
    text: bytes,
    seconds: float,
    old: Tree | None = None,
    unwanted: Callable[[], bool] | None = None,
) -> Tree | None:
    """Returns None after `seconds` of the thread's processor time, or if `unwanted` returns True."""
    source = _Source(text, seconds, unwanted)
    before = (old,) if old is not None else ()
    try:
        tree = parser.parse(source, *before, progress_callback=source.over)
    except ValueError:
        if not source.given_up:
            raise
        tree = None
    source.finish()
    if source.given_up:
        parser.reset()
        return None
    return tree


@cache
def prepared(language: Language, query: str) -> Query:
    """Caches the query: compiling takes 20 ms."""
    from tree_sitter import Query

    return Query(language, query)


_QUERIES: Final = {
    "python": "(import_statement) @import (import_from_statement) @from",
    "javascript": """
        (import_statement source: (string) @source)
        (export_statement source: (string) @source)
        (call_expression function: (identifier) @_called (#eq? @_called "require")
                         arguments: (arguments . (string) @source))
        (call_expression function: (import) arguments: (arguments . (string) @source))
    """,
    "go": "(import_spec path: (interpreted_string_literal) @source)",
    "rust": "(use_declaration argument: (_) @use) (mod_item !body name: (identifier) @mod)",
    "java": "(import_declaration) @java",
}
_QUERIES["typescript"] = _QUERIES["javascript"] + "(import_require_clause source: (string) @source)"
_QUERIES["tsx"] = _QUERIES["typescript"]
MOST_IMPORTS: Final = 500
#: Processor time, beyond which a text has no imports.
SECONDS: Final = 1.0


def read_imports(language: str, text: str) -> tuple[Import, ...]:
    """Returns imports in order, without duplicates; none for an unsupported language or beyond the time
    limit. `language` is as in `workspace.languages`, or `tsx`. Parses invalid source as far as possible.
    """
    if language not in _QUERIES:
        return ()
    from tree_sitter import QueryCursor

    parser, query = _tools(language)
    tree = parse(parser, text.encode(errors="replace"), SECONDS)
    if tree is None:
        return ()
    found: list[tuple[int, Import]] = []
    for name, nodes in QueryCursor(query).captures(tree.root_node).items():
        found += [(node.start_byte, one) for node in nodes for one in _imports(name, node)]
    found.sort(key=lambda item: item[0])
    return tuple(dict.fromkeys(one for _, one in found))[:MOST_IMPORTS]


@cache
def _tools(language: str) -> tuple[Parser, Query]:
    from tree_sitter import Language, Parser, Query

    grammar = Language(grammar_of(language)())
    return Parser(grammar), Query(grammar, _QUERIES[language])


def grammar_of(language: str) -> Callable[[], object]:
    match language:
        case "python":
            from tree_sitter_python import language as grammar
        case "javascript":
            from tree_sitter_javascript import language as grammar
        case "typescript":
            from tree_sitter_typescript import language_typescript as grammar
        case "tsx":
            from tree_sitter_typescript import language_tsx as grammar
        case "go":
            from tree_sitter_go import language as grammar
        case "rust":
            from tree_sitter_rust import language as grammar
        case "bash":
            from tree_sitter_bash import language as grammar
        case "markdown":
            from tree_sitter_markdown import language as grammar
        case _:
            from tree_sitter_java import language as grammar
    return grammar


def _text(node: Node | None) -> str:
    return node.text.decode(errors="replace") if node is not None and node.text else ""


def _imports(capture: str, node: Node) -> Iterator[Import]:
    match capture:
        case "import" | "from":
            names = [
                _text(child.child_by_field_name("name") if child.type == "aliased_import" else child)
                for child in node.children_by_field_name("name")
            ]
            if capture == "import":
                yield from map(Import, names)
                return
            written = _text(node.child_by_field_name("module_name"))
            level = len(written) - len(written.lstrip("."))
            yield Import("".join(written.lstrip(".").split()), tuple(names), level)
        case "source" if written := _text(node)[1:-1]:
            yield Import(written)
        case "use":
            yield from map(Import, _rust_paths(node))
        case "mod":
            yield Import(_text(node), inner=True)
        case "java":
            names = ("*",) if any(child.type == "asterisk" for child in node.children) else ()
            for child in node.named_children:
                if child.type in ("scoped_identifier", "identifier"):
                    yield Import(_text(child), names)


def _rust_paths(node: Node, before: str = "") -> Iterator[str]:
    def join(more: str) -> str:
        return f"{before}::{more}" if before and more else before or more

    match node.type:
        case "scoped_use_list":
            start = join(_text(node.child_by_field_name("path")))
            listed = node.child_by_field_name("list")
            for child in listed.named_children if listed else ():
                yield from _rust_paths(child, start)
        case "use_list":
            for child in node.named_children:
                yield from _rust_paths(child, before)
        case "use_as_clause":
            yield join(_text(node.child_by_field_name("path")))
        case "use_wildcard":
            yield join(_text(node.named_children[0]) if node.named_children else "")
        case _:
            yield join(_text(node))
