"""Known files: every file that the model has seen, and whether what it saw still holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.line_ranges import Range
from tui_agent.context.blocks import cell

#: A larger file is not read for the model, and not written; in bytes.
MAX_BYTES = 64 * 1024 * 1024
LoadedBy = Literal["plan", "mention", "buffer", "request", "bundle", "subtask"]
#: `fresh`: the hash is the one that was seen; `edited`: an applied change made it another, `undone`: taking one back
#: did; else who or what did.
Freshness = Literal["fresh", "edited", "undone", "disk", "buffer", "deleted", "renamed"]


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
    #: Whether secrets in it were masked, so that it was seen in part.
    masked: bool = False
    #: Whether `written` is exactly what the model proposed, so that it knows that text too.
    written_known: bool = False
    #: Which file on disk it is, whatever its name; 0 where that is not known.
    inode: int = 0
    #: The lines that were shown last, where that was not all of it.
    ranges: tuple[Range, ...] = ()
    #: All lines of this version that were shown so far, where that was not all of it.
    shown: tuple[Range, ...] = ()
    #: Whether an open buffer holds text of it that is not saved; known where it is asked for, and not kept.
    unsaved: bool = False

    @property
    def hash(self) -> str:
        """The hash of the newest version that the model knows; after an undo that of the text now."""
        if self.freshness == "undone":
            return self.written or self.md5  # which is that of the text now where it was read since
        seen = self.md5 or self.written
        return self.written if self.written_known and self.freshness == "edited" else seen

    @property
    def stale(self) -> bool:
        """Whether somebody else than the agent made it differ from what was seen."""
        return self.freshness not in ("fresh", "edited", "undone")


TouchKind = Literal["read", "mentioned", "edited", "undone", "changed outside"]


class Touch(Struct, frozen=True):
    """One line of a file's timeline: who did what to it at which turn.

    `md5` is of the version that the model came to know by it, empty where it did not. `active` is false where the
    model's knowledge became stale by it. `at` and the three times after it are in seconds since the epoch (0:
    never, or not known): the latest read, edit by the agent and change outside, this touch included.
    """

    path: str
    turn: int
    kind: TouchKind
    md5: str
    active: bool = True
    at: float = 0.0
    read_at: float = 0.0
    edited_at: float = 0.0
    outside_at: float = 0.0


def following(touch: Touch, before: Touch | None) -> Touch:
    """The touch with the times that it inherits from the one before it on the same file."""
    read_at, edited_at, outside_at = (
        (before.read_at, before.edited_at, before.outside_at) if before else (0.0, 0.0, 0.0)
    )
    match touch.kind:
        case "read":
            read_at = touch.at
        case "edited":
            edited_at = touch.at
            read_at = (
                touch.at if read_at or not before else 0.0
            )  # what it writes of a file that it has read it knows
        case "changed outside":
            outside_at = touch.at
    return replace(touch, read_at=read_at, edited_at=edited_at, outside_at=outside_at)


def overflow(files: Mapping[str, KnownFile], limit: int, keep: Collection[str]) -> tuple[str, ...]:
    """The paths that leave the registry so that it holds at most `limit`.

    The least recently seen go first; those in `keep` (open, pending) and modified ones only when nothing else is left.
    """
    count = len(files) - limit
    if count <= 0:
        return ()

    def rank(entry: KnownFile) -> tuple[bool, bool, int, str]:
        return entry.path in keep, bool(entry.modified_turn), entry.seen_turn, entry.path

    return tuple(entry.path for entry in sorted(files.values(), key=rank)[:count])


def freshness_mark(entry: KnownFile, again: bool = False) -> str:
    """The `Modified Since` cell; `again` says that the same message carries the file again."""
    match entry.freshness:
        case "fresh":
            mark = "No"
        case "edited":
            mark = f"⚠️ Yes (turn {entry.modified_turn})"
        case "undone":
            mark = "⚠️ Yes (undo)"
        case "disk":
            mark = "⚠️ Yes (on disk)"
        case "buffer":
            mark = "⚠️ Yes (unsaved in the editor)"
        case "deleted":
            mark = "deleted"
        case "renamed":
            mark = f"renamed to {cell(entry.renamed_to)}"
    if entry.unsaved and entry.freshness in ("fresh", "edited", "undone"):
        mark = f"{mark}, unsaved in the editor"
    return f"{mark}, read again below" if again and mark != "No" else mark


def table_row(entry: KnownFile, turn: int, again: bool = False) -> str:
    """One row of the table that the model is told, without its end of line."""
    seen = f"turn {entry.seen_turn}" if entry.seen_turn else "never"
    seen += " (this turn)" if entry.seen_turn == turn and turn else ""
    part = "" if entry.whole or not entry.seen_turn else " (in part)"
    return f"| {cell(entry.path)} | {seen}{part} | {freshness_mark(entry, again)} | {entry.hash[:12]} |"


def table(rows: Iterable[str], left_out: str = "") -> str:
    """The `## KNOWN FILES` section with these rows and the sentence on what was left out; empty without either."""
    rows = tuple(rows)
    if not rows:
        return f"## KNOWN FILES\n{left_out}" if left_out else ""
    head = "| File | Last Seen | Modified Since | Hash |\n| --- | --- | --- | --- |\n"
    return "## KNOWN FILES\n" + head + "\n".join(rows) + (f"\n{left_out}" if left_out else "")


def left_out_line(count: int) -> str:
    """What the table says of files that left the registry; empty where none did."""
    if not count:
        return ""
    return f"{count} more seen earlier {'is' if count == 1 else 'are'} left out of this table: request them again."
