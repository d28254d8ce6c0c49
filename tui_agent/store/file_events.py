"""Events of files: what the model knows of them, and what is open in the editor."""

from __future__ import annotations

from tui_agent.context.known import Freshness, KnownFile, Touch
from tui_agent.files.text import Encoding
from tui_agent.store.event import Growing, Lasting, Passing


class FreshnessChanged(Lasting, frozen=True):
    """A known file no longer is (or is again) what the model saw; `by_agent` says that an applied change did it,
    `undone` that taking one back did."""

    path: str
    freshness: Freshness
    renamed_to: str = ""
    at: float = 0.0
    by_agent: bool = False
    undone: bool = False


class KnownFileEdited(Lasting, frozen=True):
    """A change that was applied gave a known file (or one that is new) the content `file.written`; one that was
    `undone` gave it that or, where it is fresh then, `file.md5`.

    `as_proposed` says that it is exactly what the model proposed, so that the model knows it.
    """

    file: KnownFile
    as_proposed: bool = False
    at: float = 0.0
    undone: bool = False


class FileTouched(Lasting, frozen=True):
    """One line for the timeline of a file."""

    touch: Touch


class KnownFilesDropped(Lasting, frozen=True):
    """The registry was full: these files left it, the least recently seen first."""

    paths: tuple[str, ...]


class BufferOpened(Lasting, frozen=True):
    """A file was opened in the editor. Its text is read from disk, here and at every resume."""

    path: str


class BufferLoaded(Passing, frozen=True):
    """The text of an open file came from disk; unsaved edits, if any, are gone with it."""

    path: str
    text: str
    disk: str
    note: str = ""
    mtime: int = 0
    encoding: Encoding = "utf-8"
    mark: bytes = b""


class BufferEdited(Growing, frozen=True):
    """The person changed the text of an open file and has not saved it. `disk` is what it started from."""

    path: str
    text: str
    disk: str
    cursor: tuple[int, int] = (0, 0)
    anchor: tuple[int, int] = (0, 0)
    #: False where the person came back, by undo say, to the text that is on disk.
    unsaved: bool = True
    #: True where the text did not come from the editor itself, which then loads it again.
    from_outside: bool = False

    @property
    def key(self) -> str:
        return f"buffer:{self.path}"


class CursorMoved(Growing, frozen=True):
    """The cursor of an open file stands here; `anchor` differs from it while text is selected."""

    path: str
    cursor: tuple[int, int]
    anchor: tuple[int, int]

    @property
    def key(self) -> str:
        return f"cursor:{self.path}"


class BufferScrolled(Growing, frozen=True):
    """The editor shows an open file from this line and column on; None: wherever its cursor is."""

    path: str
    scroll: tuple[int, int] | None

    @property
    def key(self) -> str:
        return f"scroll:{self.path}"


class BufferSaved(Lasting, frozen=True):
    """An open file was written to disk. `text` is the hash of the text as the editor held it when it was written:
    what was typed since is unsaved. It is empty in the logs of older versions."""

    path: str
    disk: str
    mtime: int = 0
    text: str = ""


class BufferClashed(Passing, frozen=True):
    """The disk moved away from under unsaved edits, or came back to where they started."""

    path: str
    clash: bool


class BufferActivated(Lasting, frozen=True):
    """Another open file is in front."""

    path: str


class BufferClosed(Lasting, frozen=True):
    """An open file was closed; what was not saved is gone, by the person's own word."""

    path: str
