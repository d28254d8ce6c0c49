"""Keeps the files of a folder and of a program's view of it equal, and merges changes of both."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from tui_agent.edits.merge import merge
from tui_agent.errors import TuiAgentError
from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode, encode, md5
from tui_agent.sandbox.folder_access import WritableFolder, mode_of
from tui_agent.sandbox.layer_comparison import LEFT_OUT
from tui_agent.workspace.index import Index

#: Maximum bytes of a file kept equal in folder and view.
MOST = 5 << 20


class ViewMirror:
    """An overlay does not show files that are replaced below it, so changes are written through it. All methods are
    blocking, and take turns.
    """

    def __init__(
        self,
        root: str,
        merged: int,
        layer: str,
        blobs: Blobs,
        hidden: Collection[str],
        notify: Callable[[str, str], object],
    ) -> None:
        """- merged: descriptor of the folder as programs see it.
        - layer: folder with their writes.
        - hidden: paths that differ on purpose.
        - notify: called with a path, and why it could not be copied.
        """
        self._root, self._layer, self._blobs, self._hidden, self._notify = root, layer, blobs, hidden, notify
        self._view = os.dup(merged)
        self._turn = threading.Lock()
        self._folder: WritableFolder
        self._merged: WritableFolder
        #: Hash of each file when folder and view were last equal, if the program may have changed it.
        self.bases: dict[str, str] = {}
        #: Modes, and targets of links, when folder and view were last equal.
        self._modes: dict[str, int] = {}
        self._links: dict[str, str | None] = {}
        #: Folders of the view that the user replaced. An overlay cannot remove them.
        self.kept_folders: set[str] = set()

    def close(self) -> None:
        with self._turn:
            os.close(self._view)

    async def follow(
        self,
        batches: asyncio.Queue[set[str] | None],
        index: Index,
        then: Callable[[list[str], set[str]], Awaitable[None]] | None = None,
    ) -> None:
        """Copies changed paths until it is cancelled; None: any. `then` gets those that changed again, and all."""
        while True:
            some = [await batches.get()]
            while not batches.empty():
                some.append(batches.get_nowait())
            paths = {path for batch in some if batch is not None for path in batch}
            if None in some:
                paths |= self.bases.keys()
                paths.update(await asyncio.to_thread(self.different, index.paths))
            again = await asyncio.to_thread(self.copy, sorted(paths))
            if then is not None:
                await then(again, paths)

    @contextmanager
    def _opened(self) -> Generator[None]:
        # Both can be replaced between two calls. Raises OSError.
        with self._turn, WritableFolder(self._root) as folder, WritableFolder(self._view) as merged:
            self._folder, self._merged = folder, merged
            yield

    def remember(self, paths: Sequence[str]) -> None:
        """Notes the folder's version of files that the program changed."""
        with suppress(OSError), self._opened():
            for path in paths:
                if path not in self.bases:
                    with suppress(OSError, TuiAgentError):
                        now = self._on_disk(path)
                        self.bases[path] = self._kept_base(None if now is None else now[0])
                        if now is not None:
                            self._modes[path] = now[1]

    def read(self, path: str, most: int) -> bytes | None:
        """Raises OSError."""
        with self._opened():
            return self._merged.read(path, most)

    def copy(self, paths: Sequence[str]) -> list[str]:
        """Brings files of the folder into the view. Returns paths that changed again."""
        again = []
        with suppress(OSError), self._opened():
            every = sorted(
                {*self._with_gone_folders(paths)},
                key=lambda path: (self._folder.status(path) is not None, path),
            )
            for path in every:
                if path in self._hidden or not LEFT_OUT.isdisjoint(path.split("/")):
                    continue
                try:
                    if self._copy_file(path):
                        again.append(path)
                except (OSError, TuiAgentError, ValueError) as error:
                    # An overlay cannot show a renamed folder while the program has files under its old name.
                    stale = isinstance(error, OSError) and error.errno == errno.ESTALE
                    why = "the view keeps the folder that was there; end the agent and start it again"
                    self._notify(path, why if stale else str(error))
            for folder, path in {path.rpartition("/")[0]: path for path in every}.items():
                if folder and self._merged.status(path) is not None and not self._merged.names(folder):
                    self._notify(folder, "it was deleted and made again; end the agent and start it again")
        return again

    def different(self, paths: Sequence[str]) -> list[str]:
        different = []
        with suppress(OSError), self._opened():
            for path in paths:
                with suppress(OSError, ValueError):
                    here, there = self._folder.status(path), self._merged.status(path)
                    if (here and (here.st_size, here.st_mtime_ns)) != (
                        there and (there.st_size, there.st_mtime_ns)
                    ):
                        different.append(path)
        return different

    def _with_gone_folders(self, paths: Sequence[str]) -> Iterator[str]:
        """With files in the view that are folders now."""
        waiting = list(paths)
        for folder in {path.rpartition("/")[0] for path in paths} - {""}:
            there = self._merged.status(folder)
            if there is not None and not stat.S_ISDIR(there.st_mode):
                yield folder
        while waiting:
            path = waiting.pop()
            here, there = self._folder.status(path), self._merged.status(path)
            if here is None or not stat.S_ISDIR(here.st_mode):
                yield path
                if there is not None and stat.S_ISDIR(there.st_mode) and LEFT_OUT.isdisjoint(path.split("/")):
                    waiting += [f"{path}/{name}" for name in self._merged.names(path)]

    def _copy_file(self, path: str) -> bool:
        here, there = self._folder.status(path), self._merged.status(path)
        if there is not None and stat.S_ISDIR(there.st_mode):
            if here is not None and not stat.S_ISDIR(here.st_mode):
                raise OSError(errno.ESTALE, "a folder is there", path)
            return False
        target = self._folder.target(path)
        if target is not None or self._merged.target(path) is not None:
            return self._copy_link(path, target)
        now, view = self._on_disk(path), self._merged.read(path, MOST)
        content = None if now is None else now[0]
        was = self.bases.get(path)
        theirs = was is not None and was != ("" if view is None else md5(view))
        if was is None and content != view and self._is_written(path):
            self.bases[path] = self._kept_base(content)  # too new to be proposed yet
            return True
        if content != view and not theirs:
            self._write(path, now)
            self.bases[path] = self._kept_base(content)
            return was is not None
        if content == view:
            if now is not None:
                if (mode := self._mode_after(path, now[1])) != mode_of(there):
                    self._merged.set_mode(path, mode)
                self._modes[path] = now[1]
            if was is not None:
                self.bases[path] = self._kept_base(content)
            return was is not None
        if content is None or view is None or not was:
            return True  # one side removed it: the review shows the conflict
        base, ours, other = (decode(one, path) for one in (self._blobs.get(was), content, view))
        merged = merge(base.text, ours.text, other.text)
        if not merged.conflicts:
            assert now is not None
            if (text := encode(ours, merged.text)) != view:
                self._write(path, (text, now[1]))
            self.bases[path] = self._kept_base(content)
        return True

    def _copy_link(self, path: str, target: str | None) -> bool:
        """`target` is None if the folder has no link there."""
        there = self._merged.target(path)
        if target != there:
            if self._is_written(path) and (path not in self._links or self._links[path] != there):
                return True  # the program's
            if target is not None:
                self._merged.link(path, target)
            else:
                self._write(path, self._on_disk(path))
        self._links[path] = target
        return self._is_written(path)

    def _mode_after(self, path: str, mode: int) -> int:
        """Returns the program's mode if it changed that, otherwise the folder's."""
        if (there := self._merged.status(path)) is None:
            return mode
        base = self._modes.get(path)
        theirs = self._is_written(path) if base is None else mode_of(there) != base
        return mode_of(there) if theirs else mode

    def _kept_base(self, content: bytes | None) -> str:
        return "" if content is None else self._blobs.put_unsynced(content)

    def _is_written(self, path: str) -> bool:
        return os.path.lexists(f"{self._layer}/{path}")

    def _write(self, path: str, content: tuple[bytes, int] | None) -> None:
        if content is None:
            folder = path
            while folder := folder.rpartition("/")[0]:
                self.kept_folders.add(folder)
            self._merged.remove(path)
        else:
            self._merged.replace(path, content[0], self._mode_after(path, content[1]))
            self._modes[path] = content[1]

    def _on_disk(self, path: str) -> tuple[bytes, int] | None:
        there = self._folder.status(path)
        if there is None or stat.S_ISDIR(there.st_mode):
            return None
        content = self._folder.read(path, MOST)
        return None if content is None else (content, mode_of(there))
