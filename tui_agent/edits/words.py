"""What a line says apart from its layout: names, numbers, strings and operators, in order."""

from __future__ import annotations

import re

#: Letters that look like the ones on a keyboard, one for one.
LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "
        ),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)
_TOKEN = re.compile(
    r"""
    "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `(?:\\.|[^`\\])*`   # a string
  | [^\W\d]\w*(?:'(?:s|t|re|ve|ll|d|m)\b)?                      # a name or a word
  | \d(?:[\w.]*\w)?                                             # a number or a version
  | [^\s,;]                                                     # any other mark
    """,
    re.VERBOSE,
)
#: A longer line counts as one word.
_LONGEST = 2000
_END = "\n"


def spans(line: str) -> list[tuple[int, int]]:
    """Where each word, string and mark of a line begins and ends; white space, commas and semicolons are none."""
    if len(line) > _LONGEST:
        bare = line.strip()
        at = line.find(bare)
        return [(at, at + len(bare))] if bare else []
    return [match.span() for match in _TOKEN.finditer(plain_marks(line))]


def key(line: str) -> str:
    """The words of a line, each with an ending; equal for lines that differ in layout, commas and quotes only."""
    if len(line) > _LONGEST:
        bare = line.strip()
        return bare + _END if bare else ""
    return "".join([_plain(word) + _END for word in _TOKEN.findall(plain_marks(line))])


def plain_marks(text: str) -> str:
    """The text with the marks of a keyboard for those that look like them, one for one."""
    return text if text.isascii() else text.translate(LOOK_ALIKES)


def _plain(word: str) -> str:
    if word[0] not in "\"'`":
        return word
    return f"'{word[1:-1]}'" if len(word) > 1 else "'"


def cuts(text: str, at: int) -> bool:
    """Whether the place before `text[at]` lies inside a word or a number, in scripts that have spaces."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _in_word(before) and _in_word(after):
        return True
    if after == "." and before.isdigit():
        return text[at + 1 : at + 2].isdigit()
    return before == "." and after.isdigit() and at > 1 and text[at - 2].isdigit()


def _in_word(char: str) -> bool:
    return char == "_" or (char.isalnum() and char < "\u0e00")
