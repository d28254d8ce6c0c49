"""Registry of files seen by the model, and their freshness."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tui_agent.answers.plans import Range
from tui_agent.context.blocks import cell

#: Larger files are neither read nor written.
MAX_BYTES = 64 * 1024 * 1024
LoadedBy = Literal["plan", "mention", "buffer", "request", "bundle", "subtask"]
#: `fresh`: the seen hash is current; `edited`: changed by an applied edit; `undone`: by an undo; the others:
#: by external causes.
Freshness = Literal["fresh", "edited", "undone", "disk", "buffer", "deleted", "renamed"]


class KnownFile(Struct, frozen=True):
    """`md5` is the hash of the seen content, `written` of our last write. Turns count from 1, 0 means never;
    `whole`: the whole file was seen.
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
    #: Whether masked secrets limit it to a part.
    masked: bool = False
    #: Whether `written` is exactly the model's proposal.
    written_known: bool = False
    inode: int = 0
    #: The lines shown last, if incomplete.
    ranges: tuple[Range, ...] = ()
    #: All lines of this version shown so far, if incomplete.
    shown: tuple[Range, ...] = ()
    #: Whether a buffer has unsaved text; set on demand and not stored.
    unsaved: bool = False

    @property
    def hash(self) -> str:
        """Of the newest version known to the model; after an undo, of the current text."""
        if self.freshness == "undone":
            return self.written or self.md5
        seen = self.md5 or self.written
        return self.written if self.written_known and self.freshness == "edited" else seen

    @property
    def stale(self) -> bool:
        """Changed by anything except the agent."""
        return self.freshness not in ("fresh", "edited", "undone")


TouchKind = Literal["read", "mentioned", "edited", "undone", "changed outside"]


class Touch(Struct, frozen=True):
    """One entry of a file's timeline. `md5` is the version that the model learned. `active` is false if the
    model's knowledge became stale. The times are those of this event and of the latest read, agent edit
    and external change; 0 means never or unknown.
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
    read_at, edited_at, outside_at = (
        (before.read_at, before.edited_at, before.outside_at) if before else (0.0, 0.0, 0.0)
    )
    match touch.kind:
        case "read":
            read_at = touch.at
        case "edited":
            edited_at = touch.at
            read_at = touch.at if read_at or not before else 0.0
        case "changed outside":
            outside_at = touch.at
    return replace(touch, read_at=read_at, edited_at=edited_at, outside_at=outside_at)


def overflow(files: Mapping[str, KnownFile], limit: int, keep: Collection[str]) -> tuple[str, ...]:
    """Returns paths to remove, the least recently seen first; those in `keep` and modified files last."""
    count = len(files) - limit
    if count <= 0:
        return ()

    def rank(entry: KnownFile) -> tuple[bool, bool, int, str]:
        return entry.path in keep, bool(entry.modified_turn), entry.seen_turn, entry.path

    return tuple(entry.path for entry in sorted(files.values(), key=rank)[:count])


def freshness_mark(entry: KnownFile, again: bool = False) -> str:
    """Returns the `Modified Since` cell; `again`: the same message contains the file."""
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
    seen = f"turn {entry.seen_turn}" if entry.seen_turn else "never"
    seen += " (this turn)" if entry.seen_turn == turn and turn else ""
    part = "" if entry.whole or not entry.seen_turn else " (in part)"
    return f"| {cell(entry.path)} | {seen}{part} | {freshness_mark(entry, again)} | {entry.hash[:12]} |"


def table(rows: Iterable[str], left_out: str = "") -> str:
    rows = tuple(rows)
    if not rows:
        return f"## KNOWN FILES\n{left_out}" if left_out else ""
    head = "| File | Last Seen | Modified Since | Hash |\n| --- | --- | --- | --- |\n"
    return "## KNOWN FILES\n" + head + "\n".join(rows) + (f"\n{left_out}" if left_out else "")


def left_out_line(count: int) -> str:
    if not count:
        return ""
    return f"{count} more seen earlier {'is' if count == 1 else 'are'} left out of this table: request them again."
