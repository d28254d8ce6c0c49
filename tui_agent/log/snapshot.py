"""The state of a session as its log folded to it at one record: made now and then, thrown away when it does not fit."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tui_agent import __version__
from tui_agent.files.private import write_private
from tui_agent.store import state as slices
from tui_agent.store.state import Buffer, State

#: The file in a session's folder.
NAME = "snapshot"
_MAGIC = "tui-agent-snapshot"


class Snapshot(Struct, frozen=True):
    """`state` is what records 1 to `number` lead to; `checksum` is that of the last of them."""

    number: int
    checksum: int
    state: State


def save(folder: Path, snapshot: Snapshot) -> None:
    """Keep a snapshot in place of the one before. It is only a shortcut: where it cannot be kept, none is."""
    try:
        body = msgspec.msgpack.encode(lasting_part(snapshot.state))
        head = f"{_MAGIC} {fingerprint()} {snapshot.number} {snapshot.checksum} {zlib.crc32(body)}\n"
        write_private(folder / NAME, head.encode() + body)
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        pass  # no room, the name of a file is no text, a number is too large: the log has everything


def load(folder: Path) -> Snapshot | None:
    """The snapshot of a session; None where there is none that is whole and of this version."""
    try:
        head, _, body = (folder / NAME).read_bytes().partition(b"\n")
        magic, made_by, number, checksum, crc = head.decode("ascii").split(" ")
        if (magic, made_by, int(crc)) != (_MAGIC, fingerprint(), zlib.crc32(body)):
            return None
        return Snapshot(int(number), int(checksum), msgspec.msgpack.decode(body, type=State))
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def lasting_part(state: State) -> State:
    """What follows from lasting events alone: what grows is kept elsewhere, what passes is measured again."""
    return replace(
        state,
        session=replace(state.session, read_only=False, trusted=False, not_kept=""),
        workspace=slices.WorkspaceSlice(),
        model=replace(state.model, status="idle"),
        reply=slices.ReplySlice(),
        input=replace(state.input, draft=""),
        buffers=replace(state.buffers, open=tuple(Buffer(buffer.path) for buffer in state.buffers.open)),
        layout=slices.LayoutSlice(),
    )


def fingerprint() -> str:
    """This version of the state and of the way to it: a snapshot of any other is of no use."""
    sources = sorted(Path(slices.__file__).parent.glob("*.py"))
    crc = 0
    for source in sources:
        crc = zlib.crc32(source.read_bytes(), crc)
    return f"{__version__}-{crc:08x}"
