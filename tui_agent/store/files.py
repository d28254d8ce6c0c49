"""Files: those that the model knows, and those that the person has open."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from tui_agent.context.known import KnownFile, Touch, following
from tui_agent.files.text import Encoding, md5

#: The timeline that is kept in memory; the whole of it is in the log.
TOUCHES_KEPT = 2000


class KnownSlice(Struct, frozen=True):
    """The registry, by path, and the timeline, newest last. `dropped` are the paths that had to leave it."""

    files: dict[str, KnownFile] = field(default_factory=dict)
    touches: tuple[Touch, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def stale(self) -> tuple[KnownFile, ...]:
        return tuple(entry for entry in self.files.values() if entry.stale)

    def moved(self, path: str) -> str:
        """Where the file that was known under this path is now: that path itself unless it was renamed."""
        passed = {path}
        while (entry := self.files.get(path)) and entry.freshness == "renamed":
            if entry.renamed_to in passed:
                break
            path = entry.renamed_to
            passed.add(path)
        return path

    def names(self, path: str) -> tuple[str, ...]:
        """The names under which the file at this path is known, its own first."""
        return (path, *(old for old in self.files if old != path and self.moved(old) == path))

    def entry(self, path: str) -> KnownFile | None:
        """What is known of the file at this path, under its own name or an older one."""
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
    """An open file. `text` is what the editor shows; `disk` is the hash of the file it was read from.

    `cursor` and `anchor` are (line, column) from 0; they differ while something is selected. `clash` says that
    the disk has moved away from under unsaved edits. `note` says why the file cannot be edited, if so.
    """

    path: str
    text: str = ""
    disk: str = ""
    unsaved: bool = False
    cursor: tuple[int, int] = (0, 0)
    anchor: tuple[int, int] = (0, 0)
    #: The first (line, column) in view, from 0; None: wherever the cursor is.
    scroll: tuple[int, int] | None = None
    clash: bool = False
    note: str = ""
    #: When the file on disk last changed, in whole seconds; 0 where there is none.
    mtime: int = 0
    #: How the file is stored on disk, and how the text would be: with this byte-order mark.
    encoding: Encoding = "utf-8"
    mark: bytes = b""
    #: Counts every change of the text that did not come from the editor, so that it knows to load it again.
    revision: int = 0

    def holds(self, text_hash: str) -> bool:
        """Whether it still holds the text of this hash (see `hash_of_text`), and nothing was typed since it was saved.

        True while a log is read, when buffers hold no text: what was kept of it comes last.
        """
        return not self.revision or not text_hash or hash_of_text(self.text) == text_hash


@lru_cache(1)  # a save asks three times, and 10 MB take 20 ms
def hash_of_text(text: str) -> str:
    """The hash of a text as an editor holds it, whatever the encoding of its file."""
    return md5(text.encode("utf-8", "surrogatepass"))


class BuffersSlice(Struct, frozen=True):
    """The open files in tab order, and the active one's path."""

    open: tuple[Buffer, ...] = ()
    active: str = ""

    @property
    def tabs(self) -> tuple[object, ...]:
        """Which files are open, and how each is: the same whatever is typed in them."""
        return self.active, *((it.path, it.unsaved, it.clash, it.note, it.revision) for it in self.open)

    def get(self, path: str) -> Buffer | None:
        return next((buffer for buffer in self.open if buffer.path == path), None)


def with_unsaved(known: KnownSlice, buffers: BuffersSlice) -> dict[str, KnownFile]:
    """The known files by path, those marked of which an open buffer holds unsaved text."""
    files = known.files
    unsaved = {buffer.path for buffer in buffers.open if buffer.unsaved and buffer.path in files}
    return {**files, **{path: replace(files[path], unsaved=True) for path in unsaved}} if unsaved else files
