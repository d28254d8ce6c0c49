"""Phrases that mean many files at once: "all scripts in docs/x", "every test", "tests for orders"."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tui_agent.planning.references import Masked

IsFolder = Callable[[str], bool]

_FOLDER: Final = r"[`\"']?(?P<folder>\.?[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*/?)[`\"']?"
_FOLDER_WORD: Final = r"(?:\s+(?:folder|directory|dir|package))?"
_ALL: Final = r"\b(?:all|every|each|any)\b(?:\s+(?:one\s+)?of)?(?:\s+(?:the|our|my|these))?"
_NOUN: Final = r"(?:files?|scripts?|modules?|documents?|pages?|sources?|code|components?|configs?|examples?)"

_BY_WORD: Final = {
    "bash": "sh",
    "c": "{c,h}",
    "c++": "{cc,cpp,cxx,hpp,hh,h}",
    "css": "{css,scss,sass,less}",
    "go": "go",
    "html": "{html,htm}",
    "java": "java",
    "javascript": "{js,jsx,mjs,cjs}",
    "js": "{js,jsx,mjs,cjs}",
    "json": "json",
    "kotlin": "{kt,kts}",
    "markdown": "{md,markdown,mdx}",
    "md": "md",
    "php": "php",
    "python": "{py,pyi}",
    "ruby": "rb",
    "rust": "rs",
    "shell": "{sh,bash,zsh}",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "ts": "{ts,tsx}",
    "typescript": "{ts,tsx}",
    "xml": "xml",
    "yaml": "{yaml,yml}",
    "yml": "{yaml,yml}",
}
_TYPE: Final = r"(?P<type>\*?\.\w{1,8}|" + "|".join(re.escape(word) for word in _BY_WORD) + r")"
#: The names that test files have, over languages.
TEST_NAMES: Final = "{test_*,*_test,*.test,*.spec,*_spec,*Test,*Tests}.*"

_EVERYTHING_IN: Final = re.compile(
    rf"(?:{_ALL}(?:\s+(?P<what>[\w.*+#-]+(?:\s+[\w.*+#-]+){{0,2}}?))?|\beverything|\bthe\s+(?P<what2>\w+\s+)?{_NOUN})"
    rf"(?:\s+that\s+(?:is|are))?\s+(?:in|under|inside|within|below|from|of)\s+(?:the\s+)?{_FOLDER}{_FOLDER_WORD}(?![\w/])",
    re.IGNORECASE,
)
_ALL_OF_TYPE: Final = re.compile(rf"{_ALL}\s+{_TYPE}(?:\s+{_NOUN}|s)?(?!\w)", re.IGNORECASE)
_ALL_TESTS: Final = re.compile(
    rf"(?:{_ALL}|\b(?:whole|entire|full|complete)\b)\s+(?:unit\s+|integration\s+)?tests?(?:\s+(?:files?|suite))?\b(?!\s+(?:for|of)\b)",
    re.IGNORECASE,
)
_TESTS_FOR: Final = (
    re.compile(
        r"\b(?:unit\s+)?(?:tests?|specs?)\s+(?:for|of|covering)\s+(?:the\s+)?[`\"']?(?P<name>[\w./@-]*\w)",
        re.I,
    ),
    re.compile(r"(?<![\w./@-])(?P<name>[\w./@-]*\w)['’]s\s+(?:unit\s+)?tests?\b", re.I),
)
_ASKED: Final = (
    r"(?:\b(?:list|ls|show)(?:\s+me)?(?:\s+(?:all|the|every|all\s+the))*\s+(?:files|contents?|entries|folders)|\bls|"
    r"\bwhat(?:(?:'s|’s|\s+is|\s+are)|\s+(?:other\s+)?(?:files|modules|scripts|things)(?:\s+(?:are|is|do\s+we\s+have))?)"
    r"(?:\s+there)?)"
)
_WHAT_IS_IN: Final = re.compile(
    rf"{_ASKED}(?:\s+(?:in|under|inside|within|of|below))?\s+(?:the\s+)?{_FOLDER}{_FOLDER_WORD}(?![\w/])",
    re.IGNORECASE,
)
_THE_FOLDER: Final = re.compile(rf"\b(?:the|our|my)\s+{_FOLDER}\s+(?:folder|directory|dir)\b", re.IGNORECASE)


class Batch(Struct, frozen=True):
    """Many files meant at once: those below `folder` (empty: anywhere) whose names fit `names`."""

    text: str
    folder: str
    names: str
    at: int


class TestsFor(Struct, frozen=True):
    """The tests of something that is named."""

    text: str
    name: str
    at: int


class Folder(Struct, frozen=True):
    """A folder whose listing is wanted."""

    path: str
    recursive: bool
    at: int


def find_many(masked: Masked, is_folder: IsFolder) -> tuple[list[Batch], list[Folder]]:
    """Phrases that mean many files, and those that ask what is in a folder.

    One about a folder counts only where `is_folder(name)` says that it is one.
    """

    def about_a_folder(match: re.Match[str]) -> bool:
        return is_folder(_folder(match))

    asked = masked.take(_WHAT_IS_IN, about_a_folder)
    batches = [
        Batch(_text(match), _folder(match), _names(match["what"] or match["what2"] or ""), match.start())
        for match in masked.take(_EVERYTHING_IN, about_a_folder)
    ]
    batches += [Batch(_text(match), "", TEST_NAMES, match.start()) for match in masked.take(_ALL_TESTS)]
    batches += [
        Batch(_text(match), "", _names(match["type"]), match.start()) for match in masked.take(_ALL_OF_TYPE)
    ]
    asked += masked.take(_THE_FOLDER, about_a_folder)
    recursive = bool(re.search(r"\brecursive", masked.text, re.IGNORECASE))
    return batches, [Folder(_folder(match), recursive, match.start()) for match in asked]


def find_tests_for(masked: Masked) -> list[TestsFor]:
    """Phrases that name what the wanted tests are for. The name stays readable: it is a reference as well."""
    return [
        TestsFor(_text(match), match["name"], match.start())
        for expression in _TESTS_FOR
        for match in expression.finditer(masked.text)
    ]


def _folder(match: re.Match[str]) -> str:
    return match["folder"].rstrip("/.")


def _text(match: re.Match[str]) -> str:
    return " ".join(match[0].split())


def _names(what: str) -> str:
    """The pattern for names that a noun phrase means; `*` where it says nothing of them."""
    for word in reversed(what.lower().split()):
        if word.startswith(("*.", ".")):
            return "*." + word.rpartition(".")[2]
        if word in ("test", "tests"):
            return TEST_NAMES
        if word in _BY_WORD:
            return f"*.{_BY_WORD[word]}"
    return "*"
