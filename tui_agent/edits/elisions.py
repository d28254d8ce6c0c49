"""What a reply may leave in a new text by mistake: remarks for text that was left out, and markers of edits."""

from __future__ import annotations

import re

_LEADER = r"(?:#+|//+|/\*+|\*|<!--|--+|;+|%+|\{/\*|\"\"\"|'''|\(\*|REM\b)"
_LEFT_OUT = (
    r"(?:rest|remain(?:ing|der)|existing|unchanged|same|previous|other|omitted|as before|keep|snip|truncated)"
)
_DOTS = r"(?:\.{3,}|…)"
_REMARK = re.compile(
    rf"{_LEADER}\s*\W*(?:{_DOTS}.*\b{_LEFT_OUT}\b.*|.*\b{_LEFT_OUT}\b.*{_DOTS}.*"
    rf"|(?:the\s+)?(?:rest|remaining|remainder|other|existing|previous)\b.*\b"
    rf"(?:unchanged|same|as before|omitted|stays?|here|goes here|remains?)\b.*|{_DOTS}\s*(?:\*/|-->|\*/\}}|\*\))?)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"[\[(<{{]?\s*{_DOTS}\s*.*\b{_LEFT_OUT}\b.*|{_DOTS}\s*(?:rest|existing)\b.*", re.IGNORECASE
)
_LONGEST = 200
_MARKER = re.compile(
    r"(?:<{5,9} ?(?:SEARCH|ORIGINAL)|>{5,9} ?(?:REPLACE|UPDATED)|-{5,9} ?SEARCH|\+{5,9} ?REPLACE"
    r"|\*\*\* (?:(?:Begin|End) Patch|(?:Add|Update|Delete) File: ))\b"
)


def elision(base: str, new: str) -> str:
    """The first line of `new` that says that something was left out and is not in `base`, or nothing."""
    if not base.strip():
        return ""
    there, lines = base.splitlines(), new.splitlines()
    fresh = set(lines).difference(there)
    found = [bare for line in lines if line in fresh and _leaves_out(bare := line.strip())]
    own = {line.strip() for line in there} if found else ()
    return next((bare for bare in found if bare not in own), "")


def _leaves_out(bare: str) -> bool:
    return 3 <= len(bare) <= _LONGEST and bool(_REMARK.fullmatch(bare) or _BARE.fullmatch(bare))


def leftover(base: str, new: str) -> str:
    """The first line of `new`, not in `base`, that is the marker of an edit form, or that opens a whole conflict."""
    if not any(sign in new for sign in ("<<<<<", ">>>>>", "----- SEARCH", "+++++ REPLACE", "*** ")):
        return ""
    own = set(base.splitlines())
    opened = ""
    divided = False
    for line in new.splitlines():
        if line[:1] not in ("<", "=", ">", "-", "+", "*") or line in own:
            continue
        if _MARKER.match(line):
            return line.rstrip()[:_LONGEST]
        if line.startswith("<<<<<<< "):
            opened, divided = line, False
        elif line.rstrip() == "=======":
            divided = True
        elif line.startswith(">>>>>>> ") and opened and divided:
            return opened.rstrip()[:_LONGEST]
    return ""
