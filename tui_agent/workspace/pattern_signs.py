"""The signs that a pattern is written in: letters, wildcards, classes, slashes, and braces written out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

MAX_CHOICES: Final = 64
MAX_BRACES: Final = 32
#: What a backslash may be before; before anything else it is taken for a Windows separator and refused.
_ESCAPABLE: Final = "*?[]{}\\,!@+() "
_CLASS: Final = re.compile(r"\[([!^]?)(\]?(?:\\[^/]|[^\]\\/])*)\]")
#: A sign in a class, with the backslash that may be before it, and the end of a range that begins with it.
_MEMBER: Final = re.compile(r"(\\?)(.)(?:-(\\?)(.))?", re.DOTALL)


class Sign(Struct, frozen=True):
    """One sign. `text` is what a literal is; `expression` is what the sign is as a regular expression.

    `any` is `*`; `one` is `?` or a class, exactly one character; `refused` carries the sentence why in `text`.
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
    """The signs of a pattern, in order; what cannot be read becomes a `refused` sign."""
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
    """The sentence why one of the signs cannot be used; empty where all can."""
    return next((sign.text for sign in signs if sign.kind == "refused"), "")


def expand(signs: Sequence[Sign]) -> list[list[Sign]] | None:
    """Every reading of the braces, in order; None where there would be more than `MAX_CHOICES`.

    Braces without a comma, and a brace that has no partner, are letters, as in a shell.
    """
    settled = _settled(signs)
    if sum(sign.kind == "open" for sign in settled) > MAX_BRACES:
        return None
    readings, _ = _choices(settled, 0)
    return readings


def _sign_at(text: str, at: int) -> tuple[Sign, int]:
    letter = text[at]
    if letter == "\\":
        return _escaped(text, at)
    if letter in "?*+@!" and text[at + 1 : at + 2] == "(":
        return Sign("refused", f"extended patterns such as '{letter}(…)' are not offered; use {{a,b}}"), 1
    if letter == "[":
        return _class_at(text, at)
    return _MARKS.get(letter, Sign("literal", letter, re.escape(letter))), 1


def _escaped(text: str, at: int) -> tuple[Sign, int]:
    following = text[at + 1 : at + 2]
    if not following or following not in _ESCAPABLE:
        return Sign("refused", "a backslash does not separate folders here; write '/'"), 1
    return Sign("literal", following, re.escape(following)), 2


def _class_at(text: str, at: int) -> tuple[Sign, int]:
    """`[a-z]`, `[!a-z]`, `[\\]a]`; a bracket without its partner in the same name is a letter.

    A backslash before a sign means the sign itself, as in git and in shells, so that `[a\\-z]` is not a range.
    """
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


def _settled(signs: Sequence[Sign]) -> list[Sign]:
    """The signs, with every brace and comma that offers no choice turned into a letter."""
    settled = [_letter(sign) for sign in signs]
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
    return settled


def _letter(sign: Sign) -> Sign:
    if sign.kind in ("open", "comma", "close"):
        return Sign("literal", sign.text, re.escape(sign.text))
    return sign


def _choices(signs: Sequence[Sign], at: int) -> tuple[list[list[Sign]] | None, int]:
    """Readings from `at` on, and where they end: at the brace that closes, or at the end of all."""
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
