"""Ignore files where there is no git: `.gitignore` and `.ignore` in every folder, the nearest wins. Child only.

The rules are those of gitignore(5), and a rule means what git's own `wildmatch` and `dir.c` make of it, byte by byte.
A rule is matched by following all its possible places at once, so that the time is that of length times length.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tui_agent.files.git_folder import read_regular
from tui_agent.workspace.walk import Ignores

#: In this order: what `.ignore` says comes later and wins.
IGNORE_FILES: Final = (".gitignore", ".ignore")
MAX_BYTES: Final = 1 << 20
#: A rule of more bytes is taken for none: no path is as long.
_LONGEST: Final = 8192
_SPECIAL: Final = re.compile(rb"[*?\[\\]")
_SLASH: Final = ord("/")
_ANY_BYTE: Final = frozenset(range(256))
_NO_SLASH: Final = _ANY_BYTE - {_SLASH}
_CLASSES: Final[dict[bytes, Callable[[int], bool]]] = {
    b"alnum": lambda c: chr(c).isalnum() and c < 128,
    b"alpha": lambda c: chr(c).isalpha() and c < 128,
    b"blank": lambda c: c in b" \t",
    b"cntrl": lambda c: c < 32 or c == 127,
    b"digit": lambda c: c in b"0123456789",
    b"graph": lambda c: 32 < c < 127,
    b"lower": lambda c: c in b"abcdefghijklmnopqrstuvwxyz",
    b"print": lambda c: 32 <= c < 127,
    b"punct": lambda c: 32 < c < 127 and not chr(c).isalnum(),
    b"space": lambda c: c in b" \t\n\r\v\f",
    b"upper": lambda c: c in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    b"xdigit": lambda c: c in b"0123456789abcdefABCDEF",
}


class _Step(Struct, frozen=True):
    """One place of a rule: a byte that it takes, once or, with `again`, any number of times; `skip` places may be
    left out from here on."""

    takes: frozenset[int]
    again: bool = False
    skip: int = 0


class _Rule(Struct, frozen=True):
    """One line: a path begins with `start`, ends with `end`, and `steps` lead through what is between them.

    With `anywhere` the rule is about the last name of a path.
    """

    start: bytes
    steps: tuple[_Step, ...]
    end: bytes
    negated: bool = False
    folders_only: bool = False
    anywhere: bool = False

    def matches(self, path: bytes, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        name = path.rpartition(b"/")[2] if self.anywhere else path
        if not name.startswith(self.start) or not name.endswith(self.end):
            return False
        between = len(name) - len(self.end)
        return between >= len(self.start) and _matches(self.steps, name[len(self.start) : between])


class IgnoreFiles:
    """The rules in force in one folder: those of its own ignore files, and of the folders above it.

    `layers` are (length of the folder's path in bytes, its rules, the last first), the nearest first.
    """

    def __init__(self, root: str, layers: tuple[tuple[int, tuple[_Rule, ...]], ...] = ()) -> None:
        self._root = root
        self._layers = layers

    def enter(self, folder: str, names: list[str]) -> Ignores:
        rules = [
            rule
            for name in IGNORE_FILES
            if name in names
            for rule in _rules(os.path.join(self._root, folder, name))
        ]
        if not rules:
            return self
        return IgnoreFiles(self._root, ((len(os.fsencode(folder)), tuple(rules[::-1])), *self._layers))

    def ignores(self, path: str, is_folder: bool) -> bool:
        whole = os.fsencode(path)
        for length, rules in self._layers:
            below = whole[length:]
            for rule in rules:
                if rule.matches(below, is_folder):
                    return not rule.negated
        return False


def rules_for(root: str, folder: str) -> Ignores | None:
    """The rules in force above `folder` (ending in `/`), read from disk; None where they leave it out itself."""
    rules: Ignores = IgnoreFiles(root)
    at = ""
    for part in folder.rstrip("/").split("/"):
        rules = rules.enter(at, list(IGNORE_FILES))
        if rules.ignores(at + part, True):
            return None
        at += part + "/"
    return rules


def _rules(path: str) -> list[_Rule]:
    """The rules of an ignore file; none where it is a link, no file, or cannot be read."""
    if os.path.islink(path):
        return []
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError:
        return []
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [rule for line in lines if (rule := _rule(line)) is not None]


def _rule(line: bytes) -> _Rule | None:
    """None for a comment, and for a line that can match nothing."""
    text = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
    negated = text.startswith(b"!")
    pattern = text[negated:]
    folders_only = pattern.endswith(b"/")
    pattern = pattern[: len(pattern) - folders_only]
    if not pattern or text.startswith(b"#") or len(pattern) > _LONGEST:
        return None
    anywhere = b"/" not in pattern
    pattern = pattern.removeprefix(b"/")
    special = _SPECIAL.search(pattern)
    plain = special.start() if special else len(pattern)
    if anywhere:
        plain = 0 if special else plain
    steps = _steps(pattern[plain:], in_name=anywhere)
    if steps is None:
        return None
    middle = len(steps)
    while middle and len(steps[middle - 1].takes) == 1 and not (middle > 1 and steps[middle - 2].skip):
        middle -= 1
    end = bytes(byte for step in steps[middle:] for byte in step.takes)
    return _Rule(pattern[:plain], steps[:middle], end, negated, folders_only, anywhere)


def _without_trailing_spaces(line: bytes) -> bytes:
    """A space at the end counts where a backslash is before it."""
    kept = at = 0
    while at < len(line):
        escaped = line[at : at + 1] == b"\\"
        if escaped and at + 1 == len(line):
            return line
        at += 1 + escaped
        if escaped or line[at - 1 : at] != b" ":
            kept = at
    return line[:kept]


def _steps(pattern: bytes, *, in_name: bool) -> tuple[_Step, ...] | None:
    """The places of a pattern; None where it is one that never matches."""
    steps: list[_Step] = []
    at = 0
    while at < len(pattern):
        sign = pattern[at : at + 1]
        if sign == b"*":
            end = at
            while pattern[end : end + 1] == b"*":
                end += 1
            rest = pattern[end:]
            alone = at == 0 or pattern[at - 1] == _SLASH
            across = in_name or (end - at > 1 and alone and (not rest or rest.startswith((b"/", b"\\/"))))
            if across and not in_name and rest.startswith(b"/"):  # `**/` may also be nothing at all
                steps += (_Step(_ANY_BYTE, again=True, skip=2), _Step(frozenset({_SLASH})))
                end += 1
            else:
                steps.append(_Step(_ANY_BYTE if across else _NO_SLASH, again=True))
            at = end
            continue
        if sign == b"[":
            found = _class(pattern, at + 1)
            if found is None:
                return None
            taken, at = found
            steps.append(_Step(taken if in_name else taken - {_SLASH}))
            continue
        if sign == b"\\":
            at += 1
            if at == len(pattern):
                return None
        taken = frozenset({pattern[at]}) if sign != b"?" else (_ANY_BYTE if in_name else _NO_SLASH)
        steps.append(_Step(taken))
        at += 1
    return tuple(steps)


def _class(pattern: bytes, at: int) -> tuple[frozenset[int], int] | None:
    """The bytes of a class that begins after its bracket, and where it ends; None where it does not, or is wrong."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    taken: set[int] = set()
    before: int | None = None
    first = True
    while at < len(pattern) and (first or pattern[at : at + 1] != b"]"):
        first = False
        sign = pattern[at : at + 1]
        if sign == b"\\":
            at += 1
            if at == len(pattern):
                return None
            before = pattern[at]
            taken.add(before)
        elif sign == b"-" and before is not None and pattern[at + 1 : at + 2] not in (b"", b"]"):
            at += 1
            if pattern[at : at + 1] == b"\\":
                at += 1
                if at == len(pattern):
                    return None
            taken.update(range(before, pattern[at] + 1))
            before = None
        elif pattern[at : at + 2] == b"[:":
            end = pattern.find(b"]", at + 2)
            if end < 0:
                return None
            if end > at + 2 and pattern[end - 1 : end] == b":":
                kind = _CLASSES.get(pattern[at + 2 : end - 1])
                if kind is None:
                    return None
                taken.update(filter(kind, range(256)))
                before, at = None, end
            else:
                taken.add(pattern[at])
                before = pattern[at]
        else:
            before = pattern[at]
            taken.add(before)
        at += 1
    if at >= len(pattern):
        return None
    return (_ANY_BYTE - taken if negated else frozenset(taken)), at + 1


def _matches(steps: tuple[_Step, ...], text: bytes) -> bool:
    """Whether the steps lead from the beginning of the text to its end."""
    if not steps:
        return not text
    if len(steps) == 1 and steps[0].again:
        return steps[0].takes is _ANY_BYTE or _SLASH not in text
    reached = _open(steps, {0})
    for byte in text:
        if not reached:
            return False
        following = set()
        for place in reached:
            if place < len(steps) and byte in steps[place].takes:
                following.add(place if steps[place].again else place + 1)
        reached = _open(steps, following)
    return len(steps) in reached


def _open(steps: tuple[_Step, ...], places: set[int]) -> set[int]:
    """These places and those that are reached without another byte."""
    waiting, found = list(places), set(places)
    while waiting:
        place = waiting.pop()
        if place == len(steps) or not steps[place].again:
            continue
        for next_place in {place + 1, place + steps[place].skip}:
            if next_place not in found:
                found.add(next_place)
                waiting.append(next_place)
    return found
