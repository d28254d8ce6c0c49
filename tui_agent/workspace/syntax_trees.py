"""Languages by file name; imports and symbols of a text by tree-sitter, within a time limit.

Some texts take quadratic time: 20,000 comment lines in Python take 7 s. A parser holds the GIL if it is
given the whole text, but not if it requests pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_agent.files.numbers import whole_number
from tui_agent.workspace.related_files import Import

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query, Tree


_BY_EXTENSION: Final = {
    extension: name
    for name, extensions in {
        "bash": "sh bash zsh ksh",
        "c": "c h",
        "cpp": "cc cpp cxx hpp hh hxx",
        "csharp": "cs",
        "css": "css",
        "dart": "dart",
        "elixir": "ex exs",
        "go": "go",
        "graphql": "graphql gql",
        "haskell": "hs",
        "html": "html htm xhtml",
        "ini": "ini cfg conf",
        "java": "java",
        "javascript": "js mjs cjs jsx",
        "json": "json jsonc jsonl webmanifest",
        "kotlin": "kt kts",
        "lua": "lua",
        "markdown": "md markdown mdx",
        "perl": "pl pm",
        "php": "php",
        "protobuf": "proto",
        "python": "py pyi pyw",
        "r": "r",
        "ruby": "rb rake gemspec",
        "rust": "rs",
        "scala": "scala sc",
        "scss": "scss sass less",
        "sql": "sql",
        "svelte": "svelte",
        "swift": "swift",
        "terraform": "tf tfvars",
        "text": "txt log",
        "toml": "toml",
        "typescript": "ts tsx mts cts",
        "vue": "vue",
        "xml": "xml svg xsd xsl",
        "yaml": "yaml yml",
        "zig": "zig",
    }.items()
    for extension in extensions.split()
}
_BY_NAME: Final = {
    ".bashrc": "bash",
    ".profile": "bash",
    ".zshrc": "bash",
    "cmakelists.txt": "cmake",
    "containerfile": "dockerfile",
    "dockerfile": "dockerfile",
    "gemfile": "ruby",
    "gnumakefile": "makefile",
    "go.mod": "go",
    "jenkinsfile": "groovy",
    "makefile": "makefile",
    "rakefile": "ruby",
    "cargo.lock": "toml",
    "poetry.lock": "toml",
    "uv.lock": "toml",
}


def language(path: str) -> str:
    """Returns the id used by editors (`python`); "" if unknown."""
    name = path.rpartition("/")[2].lower()
    return _BY_NAME.get(name) or _BY_EXTENSION.get(name.rpartition(".")[2] if "." in name else "", "")


def is_source_extension(extension: str) -> bool:
    """Accepts `py`, without the dot, in any case."""
    return extension.lower() in _BY_EXTENSION


_PIECE: Final = 4096


class _Source:
    """Provides a text to a parser; ends early if `unwanted` returns True."""

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


_IMPORT_QUERIES: Final = {
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
_IMPORT_QUERIES["typescript"] = (
    _IMPORT_QUERIES["javascript"] + "(import_require_clause source: (string) @source)"
)
_IMPORT_QUERIES["tsx"] = _IMPORT_QUERIES["typescript"]
MOST_IMPORTS: Final = 500
#: Processor time, beyond which a text has no imports.
IMPORT_SECONDS: Final = 1.0


def read_imports(language: str, text: str) -> tuple[Import, ...]:
    """Returns imports in order, without duplicates; none for an unsupported language or beyond the time
    limit. `language` may also be `tsx`.
    """
    if language not in _IMPORT_QUERIES:
        return ()
    from tree_sitter import QueryCursor

    grammar, tree = _parsed(language, text.encode(errors="replace"), IMPORT_SECONDS)
    if tree is None:
        return ()
    cursor = QueryCursor(prepared(grammar, _IMPORT_QUERIES[language]))
    found: list[tuple[int, Import]] = []
    for name, nodes in cursor.captures(tree.root_node).items():
        found += [(node.start_byte, one) for node in nodes for one in _imports(name, node)]
    found.sort(key=lambda item: item[0])
    return tuple(dict.fromkeys(one for _, one in found))[:MOST_IMPORTS]


def _parsed(language: str, source: bytes, seconds: float) -> tuple[Language, Tree | None]:
    from tree_sitter import Language, Parser

    grammar = Language(grammar_of(language)())
    return grammar, parse(Parser(grammar), source, seconds)


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


#: Capture names are shown to the user.
_SYMBOL_QUERIES: Final = {
    "python": "(class_definition) @class (function_definition) @function",
    "javascript": """
        (class_declaration) @class (method_definition) @method
        (function_declaration) @function (generator_function_declaration) @function
        (variable_declarator value: [(arrow_function) (function_expression) (class)]) @function
        (field_definition value: (arrow_function)) @method
    """,
    "typescript": """
        (class_declaration) @class (abstract_class_declaration) @class (interface_declaration) @interface
        (enum_declaration) @enum (type_alias_declaration) @type (internal_module) @namespace
        (method_definition) @method (method_signature) @method (abstract_method_signature) @method
        (function_declaration) @function (generator_function_declaration) @function
        (variable_declarator value: [(arrow_function) (function_expression) (class)]) @function
        (public_field_definition value: (arrow_function)) @method
    """,
    "go": "(type_spec) @type (function_declaration) @function (method_declaration) @method",
    "rust": """
        (struct_item) @struct (enum_item) @enum (trait_item) @trait (impl_item) @impl (mod_item body: (_)) @module
        (function_item) @function (function_signature_item) @function
    """,
    "java": """
        (class_declaration) @class (interface_declaration) @interface (enum_declaration) @enum
        (record_declaration) @record (constructor_declaration) @constructor (method_declaration) @method
    """,
    "bash": "(function_definition) @function",
    "markdown": "(atx_heading) @heading (setext_heading) @heading",
}
_SYMBOL_QUERIES["tsx"] = _SYMBOL_QUERIES["typescript"]
_NAMES: Final = ("name", "property", "type", "heading_content")
#: Rows queried at once: a query blocks other threads.
_ROWS: Final = 1_000
SYMBOL_SECONDS: Final = 5.0


class Symbol(NamedTuple):
    """`row` and `column` of its name count from 0."""

    name: str
    kind: str
    row: int
    column: int
    last: int
    depth: int


def has_symbols(path: str) -> bool:
    return _language(path) in _SYMBOL_QUERIES


def symbols(path: str, text: str) -> list[Symbol] | None:
    """Returns parents first; None beyond the time limit."""
    from tree_sitter import QueryCursor

    source = text.encode(errors="replace")
    grammar, tree = _parsed(_language(path), source, SYMBOL_SECONDS)
    if tree is None:
        return None
    query = prepared(grammar, _SYMBOL_QUERIES[_language(path)])
    seen: dict[tuple[int, int], tuple[Node, str]] = {}
    for row in range(0, tree.root_node.end_point[0] + 1, _ROWS):
        cursor = QueryCursor(query)
        cursor.set_point_range((row, 0), (row + _ROWS, 0))
        for kind, captured in cursor.captures(tree.root_node).items():
            seen |= {(node.start_byte, -node.end_byte): (node, kind) for node in captured}
    found: list[Symbol] = []
    around: list[tuple[int, str]] = []
    for _, (node, kind) in sorted(seen.items(), key=lambda one: one[0]):
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        name = next(filter(None, map(node.child_by_field_name, _NAMES)), node)
        if kind == "function" and around and around[-1][1] in ("class", "impl", "trait"):
            kind = "method"
        depth = len(around)
        if kind == "heading":
            marks = [child.type.partition("_h")[2][:1] for child in node.children if "_h" in child.type]
            depth = whole_number(marks[0], 1) - 1 if marks else 0
        start = source.rfind(b"\n", 0, name.start_byte) + 1
        column = len(source[start : name.start_byte].decode(errors="replace"))
        words = " ".join(source[name.start_byte : name.end_byte].decode(errors="replace").split())
        found.append(Symbol(words, kind, name.start_point[0], column, node.end_point[0], depth))
        if kind != "heading":
            around.append((node.end_byte, kind))
    return found


def symbol_at(found: Sequence[Symbol], row: int) -> int:
    """Returns the innermost symbol at a row, or the nearest preceding heading, or the first."""
    best = 0
    for at, symbol in enumerate(found):
        if symbol.row <= row and (symbol.kind == "heading" or row <= symbol.last):
            best = at
    return best


def _language(path: str) -> str:
    return "tsx" if path.lower().endswith(".tsx") else language(path)
