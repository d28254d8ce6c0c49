"""Detects a file's language by its name."""

from __future__ import annotations

from typing import Final

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
    """The lower-case language id used by editors (`python`); "" if unknown."""
    name = path.rpartition("/")[2].lower()
    return _BY_NAME.get(name) or _BY_EXTENSION.get(name.rpartition(".")[2] if "." in name else "", "")


def is_source_extension(extension: str) -> bool:
    """Whether an extension (`py`, without the dot, in any case) is a known one."""
    return extension.lower() in _BY_EXTENSION
