"""Configuration errors as values: location, description, remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*)\s*="""
)
_TABLE = re.compile(r"""\s*\[\[?\s*([^\]\n]+?)\s*\]""")
_LONG_TEXT = re.compile(r'"""(?:\\.|.)*?"""|\'\'\'.*?\'\'\'', re.DOTALL)


class ConfigFault(Struct, frozen=True):
    """A configuration error. `where` names a file, the environment or an option; `line` is 0 if unknown."""

    where: str
    what: str
    remedy: str
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.where}, line {self.line}" if self.line else self.where
        return f"{place}: {self.what}: {self.remedy}"


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word closest to `word`, or "". Dotted keys also match by their last part."""
    from difflib import get_close_matches

    known = tuple(known)
    close = get_close_matches(word, known, n=1, cutoff=0.7)
    if close:
        return close[0]
    last_parts = {key.rpartition(".")[2]: key for key in known}
    close = get_close_matches(word.rpartition(".")[2], tuple(last_parts), n=1, cutoff=0.8)
    return last_parts[close[0]] if close else ""


def line_of(text: str, key: str) -> int:
    """The 1-based line of a TOML text that sets a dotted key, or 0."""
    table = ""
    plain = _LONG_TEXT.sub(lambda found: '""' + "\n" * found.group().count("\n"), text)
    for number, line in enumerate(plain.splitlines(), start=1):
        if found := _TABLE.match(line):
            table = _joined(found.group(1))
            if table == key:
                return number
        elif found := _KEY.match(line):
            name = _joined(found.group(1))
            full = f"{table}.{name}" if table else name
            if full == key or key.startswith(f"{full}."):
                return number
    return 0


def _joined(name: str) -> str:
    """Normalizes a TOML key: removes quotes and spaces around dots."""
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
