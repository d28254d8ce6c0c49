"""Languages by file name; classes, functions, methods and headings by tree-sitter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_agent.files.numbers import whole_number
from tui_agent.workspace.syntax_trees import grammar_of, parse, prepared

if TYPE_CHECKING:
    from tree_sitter import Node


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


#: Capture names are shown to the user.
_QUERIES: Final = {
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
_QUERIES["tsx"] = _QUERIES["typescript"]
_NAMES: Final = ("name", "property", "type", "heading_content")
#: Rows queried at once: a query blocks other threads.
_ROWS: Final = 1_000
SECONDS: Final = 5.0


class Symbol(NamedTuple):
    """`row` and `column` of its name count from 0."""

    name: str
    kind: str
    row: int
    column: int
    last: int
    depth: int


def has_symbols(path: str) -> bool:
    return _language(path) in _QUERIES


def symbols(path: str, text: str) -> list[Symbol] | None:
    """Returns parents first; None beyond the time limit. Parses invalid source as far as possible."""
    from tree_sitter import Language, Parser, QueryCursor

    grammar = Language(grammar_of(_language(path))())
    parser, query = Parser(grammar), prepared(grammar, _QUERIES[_language(path)])
    source = text.encode(errors="replace")
    tree = parse(parser, source, SECONDS)
    if tree is None:
        return None
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
