"""Known files and open files."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from tui_agent.context.known_files import KnownFile, Touch, following
from tui_agent.files.text import Encoding, md5

#: Timeline entries in memory; the log is complete.
TOUCHES_KEPT = 2000


class KnownSlice(Struct, frozen=True):
    """The timeline has the newest last. `dropped` are evicted paths."""

    files: dict[str, KnownFile] = field(default_factory=dict)
    touches: tuple[Touch, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def stale(self) -> tuple[KnownFile, ...]:
        return tuple(entry for entry in self.files.values() if entry.stale)

    def moved(self, path: str) -> str:
        passed = {path}
        while (entry := self.files.get(path)) and entry.freshness == "renamed":
            if entry.renamed_to in passed:
                break
            path = entry.renamed_to
            passed.add(path)
        return path

    def names(self, path: str) -> tuple[str, ...]:
        return (path, *(old for old in self.files if old != path and self.moved(old) == path))

    def entry(self, path: str) -> KnownFile | None:
        return next((self.files[name] for name in self.names(path) if name in self.files), None)

    def with_file(self, entry: KnownFile) -> KnownSlice:
        dropped = self.dropped
        if entry.path in dropped:
            dropped = tuple(path for path in dropped if path != entry.path)
        return replace(self, files={**self.files, entry.path: entry}, dropped=dropped)

    def with_touch(self, touch: Touch) -> KnownSlice:
        before = next((past for past in reversed(self.touches) if past.path == touch.path), None)
        return replace(self, touches=(*self.touches, following(touch, before))[-TOUCHES_KEPT:])


class Buffer(Struct, frozen=True):
    """`disk` is the hash of the base file. `cursor` and `anchor` are (line, column) from 0. `clash`: the
    disk diverged from the base of unsaved edits. `note` is the reason a file is not editable.
    """

    path: str
    text: str = ""
    disk: str = ""
    unsaved: bool = False
    cursor: tuple[int, int] = (0, 0)
    anchor: tuple[int, int] = (0, 0)
    #: First visible (line, column), from 0; None follows the cursor.
    scroll: tuple[int, int] | None = None
    clash: bool = False
    note: str = ""
    #: Whole seconds; 0 without a file.
    mtime: int = 0
    encoding: Encoding = "utf-8"
    mark: bytes = b""
    #: Incremented by text changes outside the editor, which must reload.
    revision: int = 0

    def holds(self, text_hash: str) -> bool:
        """True while a log is read, because buffers have no text yet."""
        return not self.revision or not text_hash or hash_of_text(self.text) == text_hash


@lru_cache(16)  # An unsaved text is compared at each event; 10 MB take 20 ms.
def hash_of_text(text: str) -> str:
    return md5(text.encode("utf-8", "surrogatepass"))


class BuffersSlice(Struct, frozen=True):
    open: tuple[Buffer, ...] = ()
    active: str = ""

    @property
    def tabs(self) -> tuple[object, ...]:
        return self.active, *((it.path, it.unsaved, it.clash, it.note, it.revision) for it in self.open)

    def get(self, path: str) -> Buffer | None:
        return next((buffer for buffer in self.open if buffer.path == path), None)


def with_unsaved(known: KnownSlice, buffers: BuffersSlice) -> dict[str, KnownFile]:
    files = known.files
    unsaved = {buffer.path for buffer in buffers.open if buffer.unsaved and buffer.path in files}
    return {**files, **{path: replace(files[path], unsaved=True) for path in unsaved}} if unsaved else files
