"""Copies in a place that has no folder of this machine: sent once, then updated by changes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import secrets
import shlex
import shutil
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_agent.errors import SessionError
from tui_agent.files.operating_system import remove_folder
from tui_agent.files.private import make_temporary, temporary_folder
from tui_agent.places.contents import Contents, Identity, can_travel, later, read_item, tar_stream
from tui_agent.places.kept_folder import CopySlot, Ignored, plan_of
from tui_agent.places.place import CommandPlace
from tui_agent.places.runner import call, failed
from tui_agent.sandbox.layer_changes import BUDGET, LayerReader, Read

#: Bytes of a list of names, and of the files that a command changed.
MOST_NAMES, MOST_BYTES = 8 << 20, 256 << 20
#: Seconds for a call that transfers nothing.
PATIENCE = 60.0
#: The place removes a copy unused for so many days.
KEPT_DAYS = 30

#: Folder of the copy, which only its owner can open, below the first folder that can be written.
_FOLDER = """\
umask 077; at=
for base in "${{XDG_CACHE_HOME:-${{HOME:-/nonexistent}}/.cache}}" "${{TMPDIR:-/tmp}}"; do
  at=$base/tui-agent/places/{key}
  mkdir -p "$at" 2>/dev/null && [ -O "$at" ] && break; at=
done
[ -n "$at" ] || {{ echo 'no folder can be written for the copy' >&2; exit 98; }}
umask 022; cd "$at" || exit 98
"""
#: Prints nothing if the earlier copy, named by its state, is gone or was used.
_EARLIER = '[ "$(cat state 2>/dev/null)" = {state} ] || exit 0\n'
#: Standard input: paths to delete, an empty line, an archive.
_SEND = """\
{first}rm -f state; mkdir -p {tree} && cd {tree} || exit 98
rest=
while IFS= read -r path && [ -n "$path" ]; do rm -rf -- "./$path"; rest=rest; done
[ -z "$rest" ] || find . -depth -type d -exec rmdir {{}} + 2>/dev/null
tar -xpof - || exit 98
pwd
"""
#: BusyBox compares modification times alone, in whole seconds.
_STAMP = 'touch ../../stamp; touch -d "@$(($(date +%s) - 1))" ../../second 2>/dev/null || touch ../../second'
_SEAL = """\
cd {tree} || exit 98
find . ! -type d | LC_ALL=C sort > ../../list; {stamp}; printf %s {state} > ../../state
find ../../.. -mindepth 1 -maxdepth 1 -type d -mtime +{days} -exec rm -rf {{}} + 2>/dev/null
exit 0
"""
_CHECK = """\
[ "$(cat state 2>/dev/null)" = {state} ] || {{ printf '\\001%s absent\\n' "$id"; exit 97; }}
printf %s "$id" > state
"""
#: Prints the paths whose file is newer than the copy, an empty line, and the paths that are gone.
_CHANGED = """\
cd {tree} || exit 98
{{ find . -name .git -prune -o ! -type d -cnewer ../../stamp -print 2>/dev/null \
|| find . -name .git -prune -o ! -type d -newer ../../second -print; }} | head -c {most}
echo
find . ! -type d | LC_ALL=C sort > ../../now; LC_ALL=C comm -23 ../../list ../../now | head -c {most}
{stamp}; mv ../../now ../../list
"""
#: The tar of BusyBox can lack -T; xargs may then print several archives.
_FETCH = """\
cd {tree} || exit 98
{{ if tar -cf /dev/null -T /dev/null; then tar -cf - -T -; else tr '\\n' '\\0' | xargs -0 tar -cf -; fi; }} \
2>/dev/null | head -c {most}
"""


class FarCopy:
    """A copy kept by scripts in the place. `told` gets a sentence before a long transfer."""

    def __init__(
        self,
        place: CommandPlace,
        parent: Path,
        ignored: Ignored,
        environment: Mapping[str, str],
        told: Callable[[str], Awaitable[object]],
    ) -> None:
        self._place, self._parent, self._ignored = place, parent, ignored
        self._environment, self._told = environment, told
        self._slot: CopySlot | None = None
        self._files: dict[str, tuple[Identity, int]] = {}
        self._state = self._path = self._name = self._tree = ""

    async def open(self, contents: Contents) -> str:
        again = self._slot is not None
        self._contents = contents
        if self._slot is None:
            self._slot = await asyncio.to_thread(CopySlot, self._parent, contents.key)
        record = {} if again else self._slot.record
        self._name = record.get("name") or os.path.basename(contents.root) or "root"
        self._tree = f"tree/{shlex.quote(self._name)}"
        self._files = dict(record.get("files", {}))
        self._state, self._path = record.get("state", ""), record.get("path", "")
        if not self._state or record.get("key") != contents.key:
            await self._send(record)
        return self._path

    async def _send(self, record: Mapping[str, Any]) -> None:
        contents, slot = self._contents, self._slot
        assert slot is not None
        fresh = not self._state
        before = {} if fresh else self._files
        gone = [path for path in (*before, *record.get("unwanted", ())) if path not in contents.items]
        wanted = {
            path: later(item.mtime, before[path][1] if path in before else None)
            for path, item in contents.items.items()
            if path not in before or before[path][0] != item.identity
        }
        if len(wanted) > 1_000:
            await self._told(f"{len(wanted):,} files are sent to {self._place.name}")
        await asyncio.to_thread(slot.save, {})  # A complete transfer follows a failed one.
        read: dict[str, Identity] = {}
        first = "rm -rf tree\n" if fresh else _EARLIER.format(state=self._state)
        rsync = "" if self._place.settings.copy == "bundle" or not self._place.ssh else shutil.which("rsync")
        # rsync saves bytes of files that exist there in another version; an archive takes half its time for
        # new files.
        deltas = {path: mtime for path, mtime in wanted.items() if path in before} if rsync else {}
        packed = {path: mtime for path, mtime in wanted.items() if path not in deltas}
        replaced = gone if fresh else [*gone, *packed]
        pieces = _after_names(replaced, tar_stream(contents, packed, read))
        self._state = secrets.token_hex(8)
        seal = _SEAL.format(tree=self._tree, state=self._state, days=KEPT_DAYS, stamp=_STAMP)
        send = _SEND.format(first=first, tree=self._tree)
        said = await self._call(f"{send}cd ../..\n{seal}" if not deltas else send, pieces, timeout=None)
        self._path = said.decode("utf-8", "surrogateescape").rstrip("\n").rpartition("\n")[2]
        if not self._path and not fresh:
            self._state, self._files = "", {}
            return await self._send({})
        if not self._path.startswith("/"):
            raise SessionError(f"{self._place.name} did not keep the copy", "see `tui-agent places test`")
        if rsync and deltas:
            if not await self._synchronise(rsync, deltas, read):
                pieces = _after_names(deltas, tar_stream(contents, deltas, read))
                await self._call(_SEND.format(first="", tree=self._tree), pieces, timeout=None)
            await self._call(seal)
        self._files = {
            **{path: known for path, known in before.items() if path in contents.items},
            **{path: (read[path], mtime) for path, mtime in wanted.items() if path in read},
        }
        await asyncio.to_thread(self._save, contents.key)

    def _save(self, key: str, unwanted: Sequence[str] = ()) -> None:
        assert self._slot is not None
        record = {"key": key, "state": self._state, "path": self._path, "name": self._name}
        self._slot.save({**record, "files": self._files, "unwanted": list(unwanted)})

    async def _synchronise(self, rsync: str, wanted: Mapping[str, int], read: dict[str, Identity]) -> bool:
        with temporary_folder() as folder:
            await asyncio.to_thread(_stage, folder, self._contents, wanted, read)
            *ssh, host = self._place.ssh
            words = [rsync, "-rlptzIs", "--no-owner", "--no-group", "-e", shlex.join(ssh), "--"]
            process = await asyncio.create_subprocess_exec(
                *words,
                *(f"{folder}/", f"{host}:{self._path}/"),
                env=dict(self._environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            try:
                _, said = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
        if process.returncode in (12, 127) or b"rsync: command not found" in said:
            return False
        if process.returncode:
            raise failed(self._place, said)
        return True

    def before(self, name: str) -> str:
        expected, self._state = self._state, name
        enters = "" if self._place.fills_view else f"cd {self._tree} || exit 98\n"
        return self._folder() + _CHECK.format(state=expected) + enters

    async def changes(self, since: float) -> Read:
        try:
            found, files = await self._noted()
            if not found and not files:
                return (), ""
            folder = make_temporary()
            try:
                plan = plan_of(self._contents, folder)
                await asyncio.to_thread(os.mkdir, plan.root)
                if found:
                    names = "".join(f"./{path}\n" for path in found).encode("utf-8", "surrogateescape")
                    words = _FETCH.format(tree=self._tree, most=MOST_BYTES)
                    packed = await self._call(words, [names], most=MOST_BYTES, timeout=None)
                    await asyncio.to_thread(_unpack, packed, plan.root)
                async with LayerReader() as reader:
                    return await reader.of_copy(plan, files, since)
            finally:
                await asyncio.to_thread(remove_folder, folder)
        except (OSError, SessionError) as error:
            await self._forget()
            return (), f"The files that it wrote in {self._place.name} are not listed: {error}"

    async def settle(self) -> None:
        try:
            await self._noted()
        except (OSError, SessionError):
            await self._forget()

    async def _noted(self) -> tuple[list[str], dict[str, tuple[int, int, int]]]:
        """Returns the written files, and those of the contents that were written or deleted."""
        words = _CHANGED.format(tree=self._tree, most=MOST_NAMES, stamp=_STAMP)
        said = (await self._call(words, most=2 * MOST_NAMES + 2)).decode("utf-8", "surrogateescape")
        lists = said.partition("\n\n" if "\n\n" in said else "\n")[::2]
        names = (dict.fromkeys(line.removeprefix("./") for line in lines.split("\n")) for lines in lists)
        newer, gone = ([path for path in paths if path and can_travel(path)] for paths in names)
        ignored = await self._ignored(newer) if newer else set()
        found = [path for path in newer if path not in ignored]
        files = {path: (-1, -1, -1) for path in (*found, *gone) if path in self._files}
        for path in files:
            self._files.pop(path)
        unwanted = [path for path in found if path not in files]
        key = "" if files or unwanted else self._contents.key
        await asyncio.to_thread(self._save, key, unwanted)
        return found, files

    async def _forget(self) -> None:
        """The next contents are sent whole."""
        assert self._slot is not None
        await asyncio.to_thread(self._slot.save, {})

    def close(self) -> None:
        if self._slot is not None:
            self._slot.close()

    def _folder(self) -> str:
        assert self._slot is not None
        ours = f"{socket.gethostname()}\0{self._slot.path}"
        return _FOLDER.format(key=hashlib.sha256(ours.encode(errors="surrogateescape")).hexdigest()[:20])

    async def _call(
        self,
        words: str,
        given: Iterable[bytes] = (),
        *,
        most: int = MOST_NAMES,
        timeout: float | None = PATIENCE,
    ) -> bytes:
        return await call(self._place, self._folder() + words, self._environment, given, most, timeout)


def _after_names(names: Iterable[str], archive: Iterator[bytes]) -> Iterator[bytes]:
    yield "".join(f"{path}\n" for path in (*names, "")).encode("utf-8", "surrogateescape")
    yield from archive


def _stage(folder: str, contents: Contents, wanted: Mapping[str, int], read: dict[str, Identity]) -> None:
    for path, mtime in wanted.items():
        item, target = contents.items[path], f"{folder}/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if item.target:
            os.symlink(item.target, target)
            read[path] = item.identity
            continue
        found = read_item(contents.root, path, item)
        if found is None:
            continue
        data, read[path] = found
        Path(target).write_bytes(data)
        os.chmod(target, item.mode | 0o200)
        os.utime(target, ns=(mtime, mtime))


def _unpack(packed: bytes, folder: str) -> None:
    """Writes the files and links of an archive, within the limits of the reader of changes. Blocking."""
    import tarfile

    left = BUDGET.read
    file = io.BytesIO(packed)
    with (
        suppress(tarfile.TarError, EOFError),
        tarfile.open(fileobj=file, mode="r:", ignore_zeros=True) as archive,
    ):
        for count, member in enumerate(archive):
            path = os.path.normpath(member.name)
            if (
                count >= BUDGET.files
                or path.startswith(("/", ".."))
                or not (member.isreg() or member.issym())
            ):
                continue
            target = f"{folder}/{path}"
            with suppress(OSError):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if member.issym():
                    os.symlink(member.linkname, target)
                elif (taken := archive.extractfile(member)) is not None and member.size <= left:
                    left -= member.size
                    with open(target, "xb") as written:
                        shutil.copyfileobj(taken, written, 1 << 20)
                    os.chmod(target, 0o755 if member.mode & 0o100 else 0o644)
