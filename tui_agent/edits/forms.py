"""Computes a file's new text from a request in any edit form."""

from __future__ import annotations

import re

from msgspec import Struct

from tui_agent.answers.placeholders import placeholder
from tui_agent.answers.values import ChangeRequest
from tui_agent.edits.change import ChangeKind
from tui_agent.edits.hunk_placement import place
from tui_agent.edits.lines import BOM, ended_like, plain
from tui_agent.edits.locate import lower
from tui_agent.edits.merge import merge
from tui_agent.edits.source_text import SourceText
from tui_agent.errors import Ambiguous, EditFailed

_LONGEST = 200
_MARKER = re.compile(
    r"(?:<{5,9} ?(?:SEARCH|ORIGINAL)|>{5,9} ?(?:REPLACE|UPDATED)|-{5,9} ?SEARCH|\+{5,9} ?REPLACE"
    r"|\*\*\* (?:(?:Begin|End) Patch|(?:Add|Update|Delete) File: ))\b"
)


def leftover_marker(base: str, new: str) -> str:
    """Returns the first new line with a marker of an edit form or of a complete merge conflict, or ""."""
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


#: A threshold above all scores: disables fuzzy matching.
NEVER_NEAR = 2.0


class Proposal(Struct, frozen=True):
    """Result of a request. `new_text` is `None` for deletions and pure renames.

    `rung` is the lowest matching step in use, empty without any matching.
    """

    kind: ChangeKind
    new_text: str | None = None
    rename_to: str = ""
    rung: str = ""


def propose(request: ChangeRequest, base: str | None, near_threshold: float = 0.9) -> Proposal:
    """Returns the new text of a request; `base` is `None` for a missing file.

    Preserves line endings, byte-order mark and final newline. Raises `EditFailed` or `Ambiguous`.
    """
    if base is None and (request.delete or request.rename_to):
        raise EditFailed(f"{request.path} does not exist", "name a file that does")
    if request.delete:
        _check_removed(request, base or "")
        return Proposal("delete")
    text, rung = _text(request, base, near_threshold)
    text, rung = _further(request, base, text, rung)
    if text is None and request.executable is not None:
        text = base
    if text is None and not request.rename_to:
        raise EditFailed(f"the change of {request.path} is empty", "say what should become of the file")
    if text is not None:
        _refuse_elision(request, base, text)
    kind: ChangeKind = "create" if base is None else "rename" if request.rename_to else "edit"
    return Proposal(kind, text, request.rename_to or "", rung)


def _check_removed(request: ChangeRequest, base: str) -> None:
    """Raises `EditFailed` if a deleting diff shows lines missing from the file."""
    there = {line.strip() for line in base.splitlines()}
    if any(
        line.strip() not in there for hunk in request.diff for line in hunk.old.split("\n") if line.strip()
    ):
        raise EditFailed(
            f"the diff that removes {request.path} shows lines that the file does not have",
            "look at the file as it is now, and send `delete`",
        )


def _text(request: ChangeRequest, base: str | None, threshold: float) -> tuple[str | None, str]:
    """Returns the text after one step, and its lowest rung."""
    if request.content is not None:
        return whole(request.content, base), ""
    diff, edits = request.diff, request.edits
    if not diff and not edits:
        return None, ""
    if base is None and diff and not any(hunk.old for hunk in diff):
        text = "".join(hunk.new for hunk in diff)
        return (text[:-1] if diff[-1].final_newline is False else text), ""
    if not (base or "").strip() and len(edits) == 1 and not edits[0].old.strip():
        return whole(edits[0].new, base), ""
    if base is None:
        raise EditFailed(
            f"{request.path} does not exist, so there is nothing to search in", "send its whole content"
        )
    return place(base, diff or edits, bool(diff), threshold)


def _further(request: ChangeRequest, base: str | None, text: str | None, rung: str) -> tuple[str | None, str]:
    """Returns the text after the further steps of a request, and the lowest rung.

    Each step is located in the original file and merged with the earlier steps. If that fails, it is
    located in their result. Fuzzy matching is off.
    """
    if request.content is not None:
        base = text
    for step in request.then:
        try:
            own, needed = _text(step, base, NEVER_NEAR)
        except Ambiguous:
            raise
        except EditFailed:
            text, needed = _text(step, text, NEVER_NEAR)
        else:
            merged = merge(base or "", text or "", own or "")
            if merged.conflicts:
                raise EditFailed(
                    f"two changes of {request.path} in one answer change the same lines",
                    "send one change of that place",
                )
            text = merged.text
        rung = lower(rung, needed)
    return text, rung


def _refuse_elision(request: ChangeRequest, base: str | None, text: str) -> None:
    if remark := placeholder(request.path, base, text):
        raise EditFailed(
            f"the new text of {request.path} leaves something out (`{remark}`)",
            "send the whole text, or edits of the places that change",
        )


def whole(content: str, base: str | None) -> str:
    """Returns new content with the line endings, byte-order mark and final newline of `base`."""
    text = plain(content)
    if base is None:
        return content
    source = SourceText(base)
    text = text.removeprefix(BOM)
    if source.text and text:
        if source.ended and not text.endswith("\n"):
            text += "\n"
        elif not source.ended and text.endswith("\n") and text != source.text:
            text = text[:-1]
    return source.bom + ended_like(base.removeprefix(BOM), text)
