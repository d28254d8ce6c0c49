"""Extracts references to files from a request: paths, names, tracebacks, globs, and phrases for many files.

Only syntax is analyzed here; the index determines the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

ReferenceKind = Literal["mention", "traceback", "glob", "alias", "path", "name", "module", "quoted", "word"]
#: Only the beginning and the end of a request are searched, because pasted logs may be large.
HEAD: Final = 20_000
TAIL: Final = 10_000

_NAME: Final = r"[\w.@+()\[\]$-]"
_FENCE: Final = re.compile(r"^(```+|~~~+).*?(?:^\1`*\s*$|\Z)", re.DOTALL | re.MULTILINE)
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_TRACE: Final = (
    re.compile(r'\bFile "([^"\n]{1,1000})", line \d+'),
    re.compile(r"\bat (?:[^()\n]{1,200} )?\(?([^\s():]{1,500}\.\w{1,8}):\d+(?::\d+)?\)?"),
    re.compile(r"--> ([^\s:]{1,500}\.\w{1,8}):\d+:\d+"),
    re.compile(r"(?<![\w/:.])((?:[A-Za-z]:)?[\w./\\@+-]{1,500}\.[A-Za-z]\w{0,7}):\d+(?::\d+)?"),
)
_RULES: Final[tuple[tuple[ReferenceKind, re.Pattern[str]], ...]] = (
    ("mention", re.compile(r'(?<![\w@])@"([^"\n]{1,500})"')),
    ("alias", re.compile(rf"(?<![\w@])@/({_NAME}+(?:/{_NAME}+)*)")),
    ("mention", re.compile(rf"(?<![\w@])@({_NAME}+(?:/{_NAME}*)*)")),
    ("glob", re.compile(r"(?<![\w*/.])((?:[\w.@+-]+/|\*\*?/|\./)*[\w.*?{},@+\[\]-]*\*[\w.*?{},@+\[\]/-]*)")),
    ("quoted", re.compile(r"`([^`\n]{1,500})`")),
    ("quoted", re.compile(r'"([^"\n]{1,500})"')),
    ("quoted", re.compile(r"“([^”\n]{1,500})”")),
    ("quoted", re.compile(r"(?<!\w)'([^'\n]{1,500})'(?!\w)")),
    ("path", re.compile(rf"(?<![\w@.])((?:\.{{1,2}}/|~?/)?(?:{_NAME}+/)+{_NAME}*)")),
    ("path", re.compile(r"(?<![\w\\])((?:[\w.-]+\\)+[\w-]+\.\w{1,8})(?!\w)")),
    ("name", re.compile(r"(?<![\w/.@-])(\.?[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{0,7})(?![\w/(-])")),
    ("module", re.compile(r"(?<![\w/.@-])([A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+)(?![\w/])")),
    ("word", re.compile(r"(?<![\w.@/-])(\.?[A-Za-z_][\w]*(?:-\w+)*)(?![\w/])")),
)


class Reference(Struct, frozen=True):
    """A possible reference as written; `at` is its offset."""

    kind: ReferenceKind
    text: str
    at: int


class MaskedText:
    """A text in which processed parts are blanked, so that each is read once."""

    def __init__(self, text: str) -> None:
        self.text = text if len(text) <= HEAD + TAIL else text[:HEAD] + "\n" + text[-TAIL:]

    def take(
        self, expression: re.Pattern[str], keep: Callable[[re.Match[str]], bool] | None = None
    ) -> list[re.Match[str]]:
        """Returns and blanks all matches accepted by `keep`."""
        found = [match for match in expression.finditer(self.text) if keep is None or keep(match)]
        pieces, end = [], 0
        for match in found:
            pieces += [self.text[end : match.start()], " " * (match.end() - match.start())]
            end = match.end()
        self.text = "".join([*pieces, self.text[end:]])
        return found


def find_references(masked: MaskedText) -> list[Reference]:
    """All possible references in text order. In fenced blocks, only tracebacks count."""
    references: list[Reference] = []
    for expression in _TRACE:
        found = masked.take(expression)
        references += [Reference("traceback", match[1], match.start()) for match in found]
    masked.take(_FENCE)
    masked.take(_URL)
    for kind, expression in _RULES:
        for match in masked.take(expression, _is_glob if kind == "glob" else None):
            text = match[1] if kind == "quoted" else _trimmed(match[1])
            if text:
                references.append(Reference(kind, text, match.start()))
    return sorted(references, key=lambda reference: reference.at)


def _is_glob(match: re.Match[str]) -> bool:
    """Excludes `*emphasis*` and `a * b`: a glob has a folder or an extension beside its star."""
    text = match[1]
    if re.fullmatch(r"\*{1,3}[^*/]+\*{1,3}[.,;:!?]?", text):
        return bool(re.fullmatch(r"\*[\w.-]*\.[\w*]+", text))
    return "/" in text or bool(re.search(r"\*[\w-]*\.\w|\w\.\*|\w\*|\*\w", text))


def _trimmed(text: str) -> str:
    text = text.rstrip(".,;:!?")
    for opening, closing in ("()", "[]", "{}"):
        while text.endswith(closing) and text.count(closing) > text.count(opening):
            text = text[:-1].rstrip(".,;:!?")
        if text.startswith(opening) and text.count(opening) > text.count(closing):
            text = text[1:]
    return text


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
#: Names of test files in all languages.
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


class BatchPhrase(Struct, frozen=True):
    """A reference to many files: those below `folder` (empty: anywhere) matching `names`."""

    text: str
    folder: str
    names: str
    at: int


class TestsFor(Struct, frozen=True):
    text: str
    name: str
    at: int


class FolderPhrase(Struct, frozen=True):
    path: str
    recursive: bool
    at: int


def find_many(masked: MaskedText, is_folder: IsFolder) -> tuple[list[BatchPhrase], list[FolderPhrase]]:
    """Phrases that refer to many files or to a folder's content.

    Folder phrases count only if `is_folder(name)` is true.
    """

    def about_a_folder(match: re.Match[str]) -> bool:
        return is_folder(_folder(match))

    asked = masked.take(_WHAT_IS_IN, about_a_folder)
    batches = [
        BatchPhrase(
            _text(match), _folder(match), _names(match["what"] or match["what2"] or ""), match.start()
        )
        for match in masked.take(_EVERYTHING_IN, about_a_folder)
    ]
    batches += [BatchPhrase(_text(match), "", TEST_NAMES, match.start()) for match in masked.take(_ALL_TESTS)]
    batches += [
        BatchPhrase(_text(match), "", _names(match["type"]), match.start())
        for match in masked.take(_ALL_OF_TYPE)
    ]
    asked += masked.take(_THE_FOLDER, about_a_folder)
    recursive = bool(re.search(r"\brecursive", masked.text, re.IGNORECASE))
    return batches, [FolderPhrase(_folder(match), recursive, match.start()) for match in asked]


def find_tests_for(masked: MaskedText) -> list[TestsFor]:
    """Phrases about the tests of a name. The name itself is not blanked, because it is a reference too."""
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
    """The file name pattern for a noun phrase; `*` if it does not restrict names."""
    for word in reversed(what.lower().split()):
        if word.startswith(("*.", ".")):
            return "*." + word.rpartition(".")[2]
        if word in ("test", "tests"):
            return TEST_NAMES
        if word in _BY_WORD:
            return f"*.{_BY_WORD[word]}"
    return "*"
