"""Remarks that stand for text which was left out: a file that held one would have lost that text."""

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


def elision(base: str, new: str) -> str:
    """The first line of `new` that says that something was left out and does not stand in `base`, or nothing."""
    if not base.strip():
        return ""
    own = {line.strip() for line in base.splitlines()}
    for line in new.splitlines():
        bare = line.strip()
        if (
            3 <= len(bare) <= _LONGEST
            and bare not in own
            and (_REMARK.fullmatch(bare) or _BARE.fullmatch(bare))
        ):
            return bare
    return ""
