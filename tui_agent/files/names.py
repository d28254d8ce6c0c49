"""File names: validity, protected names, and display."""

from __future__ import annotations

import os
import re
import unicodedata

from tui_agent.files.text import escaped, hidden, md5

OWN_FOLDER = ".tui-agent"
#: Limit of Linux and macOS, in bytes.
MAX_NAME = 255
MAX_PATH = 4095

_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_MARKS_OF_DIRECTION = frozenset("\u061c\u200e\u200f")
_SHOWN_LENGTH = 160


def display_path(path: str) -> str:
    """Escapes control and invisible characters; shortens a long path in the middle."""
    text = escaped(path)
    if len(text) <= _SHOWN_LENGTH:
        return text
    half = _SHOWN_LENGTH // 2
    return f"{text[:half]} … {text[-half:]}"


def plain(text: str) -> str:
    """Maps text to a file name of letters, digits and dashes; injective."""
    kept = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]
    if kept and kept == text:
        return kept
    return f"{kept}-{md5(text.encode('utf-8', 'surrogatepass'))[:8]}"


def is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def fault_of_new(name: str) -> str:
    """Returns why a new file or folder may not have this name, or "".

    Refuses names that differ between systems or imitate others on the screen.
    """
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name):
        return "its name contains a control character"
    if any(unicodedata.category(c) == "Cs" for c in name):
        return "its name is not valid Unicode"
    if unseen := hidden(name):
        direction = unseen in _MARKS_OF_DIRECTION or unicodedata.bidirectional(unseen) in _DIRECTIONS
        return (
            f"its name holds {'a bidirectional control character' if direction else 'an invisible character'}"
        )
    if "\\" in name:
        return "its name contains a backslash"
    if name != name.strip() or name.endswith("."):
        return "its name begins or ends with a space, or ends with a dot"
    return ""


def is_git(name: str) -> bool:
    """Whether any file system might read it as `.git`: any case, trailing dots, invisible characters."""
    return _folded(name) in (".git", "git~1")


def is_own(name: str) -> bool:
    return _folded(name) == OWN_FOLDER


def same_letters(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def without_case(name: str) -> str:
    return same_letters(name).casefold()


def is_too_long(path: str) -> bool:
    return len(os.fsencode(path)) > MAX_PATH


def _folded(name: str) -> str:
    if name.isascii():
        return name.lower().split(":")[0].rstrip(". ")
    kept = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", kept).casefold().split(":")[0].rstrip(". ")
