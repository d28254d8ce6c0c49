"""Path patterns: compiled once, matched in bounded time, without disk access.

Syntax: `*` and `?` within a name, `[a-z]` and `[!a-z]`, `**` for any folders, `{a,b}`, a leading `./`, a
trailing `/` for everything below, backslash escapes. Leading dots are not special.

Text between two wildcards is matched at its first position without backtracking (atomic groups), which is
correct if every piece has a fixed length; so brace alternatives are expanded first.

pathspec and wcmatch backtrack, and take seconds for a dozen wildcards, instead of 0.3 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, Literal

from msgspec import Struct

MAX_CHOICES: Final = 64
MAX_BRACES: Final = 32
#: Another escaped character is rejected as after a Windows separator.
_ESCAPABLE: Final = "*?[]{}\\,!@+() "
_CLASS: Final = re.compile(r"\[([!^]?)(\]?(?:\\[^/]|[^\]\\/])*)\]")
#: A class member with its optional backslash, and the optional end of its range.
_MEMBER: Final = re.compile(r"(\\?)(.)(?:-(\\?)(.))?", re.DOTALL)
MAX_LENGTH: Final = 4096
MAX_WILDCARDS: Final = 64


class Sign(Struct, frozen=True):
    """`text` is a literal's text, `expression` a regular expression.

    `any` is `*`; `one` is `?` or a class; `refused` has the error message in `text`.
    """

    kind: Literal["literal", "any", "one", "slash", "open", "comma", "close", "refused"]
    text: str
    expression: str = ""


ANY: Final = Sign("any", "*")
_SLASH: Final = Sign("slash", "/")
_QUESTION: Final = Sign("one", "?", "[^/]")
_MARKS: Final = {
    "*": ANY,
    "?": _QUESTION,
    "/": _SLASH,
    "{": Sign("open", "{"),
    ",": Sign("comma", ","),
    "}": Sign("close", "}"),
}


def read_signs(text: str) -> list[Sign]:
    if text.startswith("!"):
        return [
            Sign("refused", "a pattern that begins with '!' is not offered; write what is wanted instead")
        ]
    signs: list[Sign] = []
    at = 0
    while at < len(text):
        sign, length = _sign_at(text, at)
        signs.append(sign)
        at += length
    return signs


def invalid_sign(signs: Sequence[Sign]) -> str:
    return next((sign.text for sign in signs if sign.kind == "refused"), "")


def expand(signs: Sequence[Sign]) -> list[list[Sign]] | None:
    """Returns all brace expansions, in order; None beyond `MAX_CHOICES`. Braces without a comma or a
    counterpart are literals, as in a shell.
    """
    # Braces and commas without alternatives become literals
    settled = [
        Sign("literal", sign.text, re.escape(sign.text)) if sign.kind in ("open", "comma", "close") else sign
        for sign in signs
    ]
    open_braces: list[tuple[int, list[int]]] = []
    for at, sign in enumerate(signs):
        if sign.kind == "open":
            open_braces.append((at, []))
        elif sign.kind == "comma" and open_braces:
            open_braces[-1][1].append(at)
        elif sign.kind == "close" and open_braces:
            start, commas = open_braces.pop()
            for place in (start, *commas, at) if commas else ():
                settled[place] = signs[place]
    if sum(sign.kind == "open" for sign in settled) > MAX_BRACES:
        return None
    readings, _ = _choices(settled, 0)
    return readings


def _sign_at(text: str, at: int) -> tuple[Sign, int]:
    letter = text[at]
    if letter == "\\":
        following = text[at + 1 : at + 2]
        if not following or following not in _ESCAPABLE:
            return Sign("refused", "a backslash does not separate folders here; write '/'"), 1
        return Sign("literal", following, re.escape(following)), 2
    if letter in "?*+@!" and text[at + 1 : at + 2] == "(":
        return Sign("refused", f"extended patterns such as '{letter}(…)' are not offered; use {{a,b}}"), 1
    if letter != "[":
        return _MARKS.get(letter, Sign("literal", letter, re.escape(letter))), 1
    # `[a-z]`, `[!a-z]`, `[\]a]`. A backslash escapes the next character, so `[a\-z]` is not a range
    found = _CLASS.match(text, at)
    if found is None or not found[2]:
        return Sign("literal", "[", re.escape("[")), 1
    if "[:" in found[0]:
        return Sign("refused", "character classes such as '[:alpha:]' are not offered; write the range"), 1
    members = [(first, last) for _, first, _, last in _MEMBER.findall(found[2])]
    if any(last and last < first for first, last in members):
        return Sign("refused", f"the range in '{found[0]}' runs backwards; turn it round"), 1
    inner = "".join(
        f"{re.escape(first)}-{re.escape(last)}" if last else re.escape(first) for first, last in members
    )
    return Sign("one", found[0], f"(?!/)[{'^' if found[1] else ''}{inner}]"), len(found[0])


def _choices(signs: Sequence[Sign], at: int) -> tuple[list[list[Sign]] | None, int]:
    """Returns the expansions from `at`, and their end: a closing brace or the end of the pattern."""
    finished: list[list[Sign]] = []
    readings: list[list[Sign]] = [[]]
    while at < len(signs) and signs[at].kind != "close":
        inner: list[list[Sign]] | None = [[signs[at]]]
        if signs[at].kind == "comma":
            finished, readings, inner = finished + readings, [[]], [[]]
        elif signs[at].kind == "open":
            inner, at = _choices(signs, at + 1)
        if inner is None or len(finished) + len(readings) * len(inner) > MAX_CHOICES:
            return None, at
        readings = [head + tail for head in readings for tail in inner]
        at += 1
    return finished + readings, at


class InvalidPattern(Struct, frozen=True):
    text: str
    why: str


class Alternative(Struct, frozen=True):
    """A brace expansion.

    `exact` is the path if there is no wildcard. Every match begins with `prefix` (empty, or whole folders
    with their `/`) and contains `literal`, in lower case if `lowered`; both narrow a search before
    `matches` is called.
    """

    exact: str
    prefix: str
    literal: str
    matches: Callable[[str], re.Match[str] | None]
    lowered: bool = False


class Pattern(Struct, frozen=True):
    text: str
    alternatives: tuple[Alternative, ...]

    def fits(self, path: str) -> bool:
        return any(alternative.matches(path) for alternative in self.alternatives)


def compile_pattern(text: str, *, ignore_case: bool = False) -> Pattern | InvalidPattern:
    if not text.strip():
        return InvalidPattern(text, "the pattern is empty; name a file or a folder")
    if len(text) > MAX_LENGTH:
        why = f"the pattern has {len(text):,} characters; {MAX_LENGTH:,} is the limit"
        return InvalidPattern(text, why)
    if "\0" in text:
        return InvalidPattern(text, "the pattern holds a NUL character, which no path can")
    if text.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]", text):
        return InvalidPattern(text, "the pattern is absolute; write it relative to the workspace")
    signs = read_signs(text)
    why = invalid_sign(signs)
    if why:
        return InvalidPattern(text, why)
    choices = expand(signs)
    if choices is None:
        return InvalidPattern(text, "the braces expand to too many patterns; use fewer alternatives")
    alternatives = []
    for choice in choices:
        segments = _segments(choice)
        why = _segment_refusal(segments)
        if why:
            return InvalidPattern(text, why)
        alternatives.append(_alternative(segments, ignore_case))
    return Pattern(text, tuple(alternatives))


def escape(path: str) -> str:
    return re.sub(r"([*?\[\]{}\\,])", r"\\\1", path) if re.search(r"[*?\[\]{}\\]", path) else path


Segment = Sequence[Sign]
_DOUBLE: Final = (ANY, ANY)


def _segments(signs: Sequence[Sign]) -> list[Segment]:
    """`**` is `_DOUBLE`; a trailing slash matches everything below."""
    parts: list[Segment] = [
        tuple(group) for is_slash, group in groupby(signs, lambda sign: sign.kind == "slash") if not is_slash
    ]
    kept = [part for part in parts if _plain(part) != "."]
    if signs and signs[-1].kind == "slash":
        kept.append(_DOUBLE)
    doubled = [_DOUBLE if len(part) > 1 and all(s is ANY for s in part) else part for part in kept]
    return [
        part for n, part in enumerate(doubled) if not (n and part is _DOUBLE and doubled[n - 1] is _DOUBLE)
    ]


def _segment_refusal(segments: list[Segment]) -> str:
    if not segments:
        return "the pattern names nothing; name a file or a folder"
    if any(_plain(segment) == ".." for segment in segments):
        return "the pattern leads out of its folder with '..'; write it relative to the workspace"
    wildcards = sum(sign.kind == "any" for segment in segments for sign in segment)
    if wildcards > MAX_WILDCARDS:
        return f"the pattern has {wildcards} wildcards; {MAX_WILDCARDS} is the limit"
    return ""


def _plain(segment: Segment) -> str | None:
    if any(sign.kind != "literal" for sign in segment):
        return None
    return "".join(sign.text for sign in segment)


def _alternative(segments: list[Segment], ignore_case: bool) -> Alternative:
    expression = re.compile(_path_expression(segments), re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    if ignore_case:
        literal = _longest_literal(segments)
        # outside ASCII, case-insensitive equality does not imply equal lower case
        return Alternative(
            "", "", literal.lower() if literal.isascii() else "", expression.match, lowered=True
        )
    names = [_plain(segment) for segment in segments]
    leading = []
    for name in names[:-1]:
        if name is None:
            break
        leading.append(name + "/")
    exact = "/".join(name for name in names if name) if None not in names else ""
    return Alternative(exact, "".join(leading), _longest_literal(segments), expression.match)


def _longest_literal(segments: list[Segment]) -> str:
    marked = "\0".join(
        "".join(sign.text if sign.kind == "literal" else "\0" for sign in segment) for segment in segments
    )
    return max(marked.split("\0"), key=len)


def _path_expression(segments: list[Segment]) -> str:
    """Combines `first/run` `**` `middle/run` `**` `last/run`: each middle run at its first match, the last
    at the end.
    """
    runs: list[list[Segment]] = [[]]
    for segment in segments:
        if segment is _DOUBLE:
            runs.append([])
        else:
            runs[-1].append(segment)
    if len(runs) == 1:
        return "/".join(_name_expression(segment) for segment in runs[0]) + r"\Z"
    first, *middle, last = runs
    parts = [_name_expression(segment) + "/" for segment in first]
    parts += ["(?>(?:[^/]+/)*?" + "".join(_name_expression(s) + "/" for s in run) + ")" for run in middle]
    if not last:
        return "".join(parts) + r".+\Z"
    return "".join(parts) + "(?:[^/]+/)*" + "/".join(_name_expression(segment) for segment in last) + r"\Z"


def _name_expression(segment: Segment) -> str:
    """Combines the pieces between `*`, each at its first match, the last at the end."""
    pieces = [""]
    last: Literal["any", "other"] = "other"
    for sign in segment:
        if sign.kind != "any":
            pieces[-1] += sign.expression
        elif last != "any":
            pieces.append("")
        last = "any" if sign.kind == "any" else "other"
    if len(pieces) == 1:
        return pieces[0]
    if pieces == ["", ""]:
        return "[^/]+"
    first, *middle, end = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + "[^/]*" + end
