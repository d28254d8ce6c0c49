"""Names of files: which may be made, which nobody touches, and how an odd one is shown."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata

from tui_agent.files.visible import escaped, hidden

#: The folder in a workspace that holds settings for tui-agent.
OWN_FOLDER = ".tui-agent"
#: Limits of Linux and macOS, in bytes.
MAX_NAME = 255
MAX_PATH = 4095

_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_MARKS_OF_DIRECTION = frozenset("\u061c\u200e\u200f")
_SHOWN_LENGTH = 160


def shown(path: str) -> str:
    """A path with what acts or hides spelled out, shortened in the middle where it is long."""
    text = escaped(path)
    if len(text) <= _SHOWN_LENGTH:
        return text
    half = _SHOWN_LENGTH // 2
    return f"{text[:half]} … {text[-half:]}"


def plain(text: str) -> str:
    """A name for a file of our own, made of any text: letters, digits and dashes; no two texts have the same."""
    kept = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]
    if kept and kept == text:
        return kept
    return (
        f"{kept}-{hashlib.md5(text.encode('utf-8', 'surrogatepass'), usedforsecurity=False).hexdigest()[:8]}"
    )


def is_text(name: str) -> bool:
    """Whether a name from the disk can be written as UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def fault_of_new(name: str) -> str:
    """Why a file or folder of this name may not be made; empty where it may.

    Names that one system reads differently from another, or that look like another on the screen, are refused:
    control characters, line separators, bidi controls, tags and other invisible letters, backslashes, a space at
    either end, a trailing dot.
    """
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name):
        return "its name holds a control character"
    if any(unicodedata.category(c) == "Cs" for c in name):
        return "its name is not valid Unicode"
    if unseen := hidden(name):
        direction = unseen in _MARKS_OF_DIRECTION or unicodedata.bidirectional(unseen) in _DIRECTIONS
        return f"its name holds {'a control for the direction of writing' if direction else 'an invisible character'}"
    if "\\" in name:
        return "its name holds a backslash"
    if name != name.strip() or name.endswith("."):
        return "its name begins or ends with a space, or ends with a dot"
    return ""


def is_git(name: str) -> bool:
    """Whether some file system would take this component for `.git`: any case, trailing dots, invisible letters."""
    return _folded(name) in (".git", "git~1")


def is_own(name: str) -> bool:
    """Whether this component is tui-agent's own folder in a workspace."""
    return _folded(name) == OWN_FOLDER


def same_letters(name: str) -> str:
    """One form for all the ways in which Unicode can compose the same letters."""
    return unicodedata.normalize("NFC", name)


def without_case(name: str) -> str:
    """One form for all names that a file system which ignores case takes for the same."""
    return same_letters(name).casefold()


def is_too_long(path: str) -> bool:
    return len(os.fsencode(path)) > MAX_PATH


def _folded(name: str) -> str:
    kept = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", kept).casefold().split(":")[0].rstrip(". ")
