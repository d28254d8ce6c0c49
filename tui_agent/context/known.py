"""Known files: every file that the model has seen, and whether what it saw still holds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

LoadedBy = Literal["plan", "mention", "buffer", "request", "bundle", "subtask"]
#: `fresh`: the hash is the one that was seen; `edited`: an applied change made it another; else who or what did.
Freshness = Literal["fresh", "edited", "disk", "buffer", "deleted", "renamed"]


class KnownFile(Struct, frozen=True):
    """One entry of the registry. `md5` is of the content that was seen, `written` of what we wrote since.

    Turns count from 1, 0 is never; `size` is in bytes; `whole` is false where only a part was seen.
    """

    path: str
    md5: str
    seen_turn: int
    size: int
    lines: int = 0
    tokens: int = 0
    language: str = ""
    loaded_by: LoadedBy = "plan"
    whole: bool = True
    modified_turn: int = 0
    written: str = ""
    freshness: Freshness = "fresh"
    renamed_to: str = ""

    @property
    def stale(self) -> bool:
        """Whether somebody else than the agent made it differ from what was seen."""
        return self.freshness not in ("fresh", "edited")


class Touch(Struct, frozen=True):
    """One line of a file's timeline: who did what to it at which turn."""

    path: str
    turn: int
    kind: Literal["read", "mentioned", "edited", "changed outside"]
    md5: str
    active: bool = True


def freshness_mark(entry: KnownFile, again: bool = False) -> str:
    """The `Modified Since` cell (K4); `again` says that the same message carries the file anew."""
    match entry.freshness:
        case "fresh":
            mark = "No"
        case "edited":
            mark = f"⚠️ Yes (turn {entry.modified_turn})"
        case "disk":
            mark = "⚠️ Yes (on disk)"
        case "buffer":
            mark = "⚠️ Yes (unsaved in the editor)"
        case "deleted":
            mark = "deleted"
        case "renamed":
            mark = f"renamed to {entry.renamed_to}"
    return f"{mark}, read again below" if again and mark != "No" else mark


def table_row(entry: KnownFile, turn: int, again: bool = False) -> str:
    """One row of the table that the model is told, without its end of line."""
    seen = f"turn {entry.seen_turn}" + (" (this turn)" if entry.seen_turn == turn else "")
    part = "" if entry.whole else " (in part)"
    return f"| {_cell(entry.path)} | {seen}{part} | {freshness_mark(entry, again)} | {entry.md5[:12]} |"


def table(rows: list[str]) -> str:
    """The `## KNOWN FILES` section with these rows; empty without any."""
    if not rows:
        return ""
    head = "| File | Last Seen | Modified Since | Hash |\n| --- | --- | --- | --- |\n"
    return "## KNOWN FILES\n" + head + "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n")
