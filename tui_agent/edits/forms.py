"""What a model wrote, in any of its forms, and the text it starts from: what the file would become."""

from __future__ import annotations

import re

from msgspec import Struct

from tui_agent.answers.placeholders import placeholder
from tui_agent.answers.values import ChangeRequest
from tui_agent.edits import file_edit
from tui_agent.edits.change import ChangeKind
from tui_agent.edits.file_edit import FileEdit
from tui_agent.edits.lines import BOM, ended_like, plain
from tui_agent.edits.locate import lower
from tui_agent.edits.merge import merge
from tui_agent.edits.place import place
from tui_agent.edits.source import SourceText
from tui_agent.errors import Ambiguous, EditFailed

_LEADER = r"(?:#+|//+|/\*+|\*|<!--|--+|;+|%+|\{/\*|\"\"\"|'''|\(\*|REM\b)"
_LEFT_OUT = (
    r"(?:rest|remain(?:ing|der)|existing|unchanged|same|previous|other|omitted|as before|keep|snip|truncated)"
)
_DOTS = r"(?:\.{3,}|…)"
_REMARK = re.compile(
    rf"{_LEADER}\s*\W*(?:{_DOTS}.*\b{_LEFT_OUT}\b.*|.*\b{_LEFT_OUT}\b.*{_DOTS}.*"
    rf"|(?:the\s+)?(?:rest|remaining|remainder|other|existing|previous)\b.*\b"
    rf"(?:unchanged|same|as before|omitted|stays?|here|goes here|remains?)\b(?:\W+(?:as|for|below|above|here)\b.*)?\W*"
    rf"|{_DOTS}\s*(?:\*/|-->|\*/\}}|\*\))?)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"[\[(<{{]?\s*{_DOTS}\s*.*\b{_LEFT_OUT}\b.*|{_DOTS}\s*(?:rest|existing)\b.*", re.IGNORECASE
)
#: What some languages unpack: `...rest,`, `...this.other)`.
_SPREAD = re.compile(r"\.{3}[\w$]+(?:[.(\[].*|[,;)}\]\s]*)")
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
    if not 3 <= len(bare) <= _LONGEST or _SPREAD.fullmatch(bare):
        return False
    return bool(_REMARK.fullmatch(bare) or _BARE.fullmatch(bare))


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


#: A floor above every score: nothing is near enough.
NEVER_NEAR = 2.0


class Proposal(Struct, frozen=True):
    """What a request comes to. `new_text` is None for a file that goes, or that only moves.

    `rung` is the lowest step of the ladder that was needed, empty where nothing had to be found.
    """

    kind: ChangeKind
    new_text: str | None = None
    rename_to: str = ""
    rung: str = ""


def propose(request: ChangeRequest, base: str | None, near_threshold: float = 0.9) -> Proposal:
    """The new text of a request against `base`, None for a file that does not exist.

    The file's line endings, byte-order mark and final newline stay. Raises `EditFailed`, or `Ambiguous`.
    """
    edit = file_edit.of_request(request)
    if base is None and (edit.delete or edit.move):
        raise EditFailed(f"{edit.path} does not exist", "name a file that does")
    if edit.delete:
        return Proposal("delete")
    text, rung = _text(edit, base, near_threshold)
    text, rung = _further(edit, base, text, rung)
    if text is None and request.executable is not None:
        text = base
    if text is None and not edit.move:
        raise EditFailed(f"the change of {edit.path} is empty", "say what should become of the file")
    if text is not None:
        _refuse_elision(edit, base, text)
    kind: ChangeKind = "create" if base is None else "rename" if edit.move else "edit"
    return Proposal(kind, text, edit.move, rung)


def _text(edit: FileEdit, base: str | None, threshold: float) -> tuple[str | None, str]:
    """The text after one step, and the lowest rung that it needed."""
    if edit.whole is not None:
        return whole(edit.whole, base), ""
    if edit.in_order and not edit.hunks:
        raise EditFailed(f"the diff of {edit.path} has no hunks", "send the lines that change, with context")
    if not edit.hunks:
        return None, ""
    if edit.in_order and base is None and not any(hunk.old for hunk in edit.hunks):
        text = "".join(hunk.new for hunk in edit.hunks)
        return (text[:-1] if edit.hunks[-1].final_newline is False else text), ""
    if (
        not (base or "").strip()
        and not edit.in_order
        and len(edit.hunks) == 1
        and not edit.hunks[0].old.strip()
    ):
        return whole(edit.hunks[0].new, base), ""
    if base is None:
        raise EditFailed(
            f"{edit.path} does not exist, so there is nothing to search in", "send its whole content"
        )
    return place(base, edit.hunks, edit.in_order, threshold)


def _further(edit: FileEdit, base: str | None, text: str | None, rung: str) -> tuple[str | None, str]:
    """The text after the further steps of a change, and the lowest rung that was needed.

    Each is looked for in the file as it was and merged with what the steps before it made; one that is not
    there, in what they made. A place that is only near is none here.
    """
    if edit.whole is not None:
        base = text
    for step in edit.then:
        try:
            own, needed = _text(step, base, NEVER_NEAR)
        except Ambiguous:
            raise
        except EditFailed:
            text, needed = _text(step, text, NEVER_NEAR)
        else:
            text = _merged(edit.path, base, text, own)
        rung = lower(rung, needed)
    return text, rung


def _merged(path: str, base: str | None, one: str | None, other: str | None) -> str | None:
    merged = merge(base or "", one or "", other or "")
    if merged.conflicts:
        raise EditFailed(
            f"two changes of {path} in one answer change the same lines",
            "send one change of that place",
        )
    return merged.text


def _refuse_elision(edit: FileEdit, base: str | None, text: str) -> None:
    remark = elision(base or "", text)
    if edit.whole is not None:
        remark = remark or placeholder(edit.path, base, text)
    if remark:
        raise EditFailed(
            f"the new text of {edit.path} leaves something out (`{remark}`)",
            "send the whole text, or edits of the places that change",
        )


def whole(content: str, base: str | None) -> str:
    """New content in the manner of the file it replaces."""
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
