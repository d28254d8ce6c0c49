"""Where a request names files: the signs are found here; what they mean, the index tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

ReferenceKind = Literal["mention", "traceback", "glob", "alias", "path", "name", "module", "quoted", "word"]
#: A pasted log may have megabytes; names are at its beginning and at its end.
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
    """A sign that may name files, as it was written; `at` is its place in the text."""

    kind: ReferenceKind
    text: str
    at: int


class Masked:
    """A text in which what was understood is blanked out, so that nothing is read twice."""

    def __init__(self, text: str) -> None:
        self.text = text if len(text) <= HEAD + TAIL else text[:HEAD] + "\n" + text[-TAIL:]

    def take(
        self, expression: re.Pattern[str], keep: Callable[[re.Match[str]], bool] | None = None
    ) -> list[re.Match[str]]:
        """Every place that fits (and that `keep` keeps), blanked out."""
        found = [match for match in expression.finditer(self.text) if keep is None or keep(match)]
        pieces, end = [], 0
        for match in found:
            pieces += [self.text[end : match.start()], " " * (match.end() - match.start())]
            end = match.end()
        self.text = "".join([*pieces, self.text[end:]])
        return found


def find_references(masked: Masked) -> list[Reference]:
    """Everything that may name a file, in the order of the text. Of pasted blocks, only tracebacks count."""
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
    """Not `*emphasis*`, not `a * b`: a pattern has a folder or an extension beside its star."""
    text = match[1]
    if re.fullmatch(r"\*{1,3}[^*/]+\*{1,3}[.,;:!?]?", text):
        return bool(re.fullmatch(r"\*[\w.-]*\.[\w*]+", text))
    return "/" in text or bool(re.search(r"\*[\w-]*\.\w|\w\.\*|\w\*|\*\w", text))


def _trimmed(text: str) -> str:
    """Without the punctuation of the sentence around it."""
    text = text.rstrip(".,;:!?")
    for opening, closing in ("()", "[]", "{}"):
        while text.endswith(closing) and text.count(closing) > text.count(opening):
            text = text[:-1].rstrip(".,;:!?")
        if text.startswith(opening) and text.count(opening) > text.count(closing):
            text = text[1:]
    return text
