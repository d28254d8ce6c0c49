"""What to hide in a repository, and replacements, so that commands can use git without its secrets.

    python -P -m tui_agent.git.without_secrets

A low-priority process that reads a `HistoryRequest` and writes a `HistoryAnswer` (msgpack). A pack with a
secret blob is rewritten once without it into a cache folder. A secret blob is replaced by a sentence under
the same id, because git cannot commit a tree with a missing object.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from tui_agent.errors import ChildFailed
from tui_agent.files.git_folder import GitFolder, format_config, read_regular
from tui_agent.files.operating_system import remove_folder
from tui_agent.files.private import make_private, temporary_folder, write_private
from tui_agent.git import secret_blobs as blobs
from tui_agent.git.object_stores import (
    HistoryAnswer,
    HistoryRequest,
    WithoutSecrets,
    all_repositories,
    in_progress,
    object_stores,
)
from tui_agent.git.process import run_git
from tui_agent.git.repository import LONG_SECONDS
from tui_agent.git.secret_blobs import GitUnreadable

SENTENCE: Final = b"(this is a secret, which is not shown in a trial view)\n"
#: git reports further replaced blobs as corrupt.
MOST_REPLACED: Final = 5_000
_MOST_REFS: Final = 1 << 23
MOST_TOLD, MOST_TOLD_BYTES = 500, 4 << 20
_MOST_READ: Final = 1 << 20
_KEPT_SECONDS: Final = 14 * 86400.0
_STORED_ELSEWHERE: Final = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)


def answer(asked: HistoryRequest) -> HistoryAnswer:
    folders, others = all_repositories(asked.top, asked.nested)
    told = HistoryAnswer(gone=[os.fsencode(path) for path in others])
    for folder in folders:
        try:
            found = _replaced(folder, asked, told.secrets)
        except (GitUnreadable, ChildFailed, OSError, ValueError) as error:
            told.gone.append(os.fsencode(os.path.join(folder.common_dir, "objects")))
            told.why = (
                f"Commands cannot use git here: its history could not be searched for secrets ({error})"
            )
            continue
        if found is not None:
            told.repositories.append(found)
    return told


def _replaced(
    folder: GitFolder, asked: HistoryRequest, told: list[tuple[bytes, bytes]]
) -> WithoutSecrets | None:
    way = os.path.relpath(folder.work_tree, asked.top)
    below = b"" if way == "." else os.fsencode(way) + b"/"
    hidden = [path.removeprefix(below) for path in asked.hidden if path.startswith(below)]
    kept = Path(asked.cache, hashlib.sha256(os.fsencode(folder.common_dir)).hexdigest()[:32])
    names = blobs.find_names(folder, kept, hidden)
    index = blobs.staged(folder, names)
    with suppress(OSError):
        write_private(kept, msgspec.msgpack.encode(names), sync=False)
    tracked = {
        path for path in (*names.secret, *names.asked) if _is_hidden(path, folder, hidden, below, asked)
    }
    shown = {each for path, ids in names.secret.items() if path not in tracked for each in ids}
    harmless = names.public | shown | {blobs.blob_id(folder, b"")}
    held = (_start_of(os.path.join(folder.work_tree, os.fsdecode(path))) for path in hidden)
    there = [data for data in held if data and not _is_sent(data, asked)]
    of = {
        each: path
        for path in sorted(tracked)
        for each in names.secret.get(path) or names.asked.get(path) or ()
    }
    ids = of.keys() | {index[path][0] for path in tracked if path in index}
    ids |= {blobs.blob_id(folder, data) for data in there}
    ids -= harmless
    lines = {line for data in there for line in blobs.identifying_lines(data)}
    stored = []
    sent: set[str] = set()
    for each, data in blobs.contents(folder, sorted(ids)) if tracked else ():
        if _is_sent(data, asked):
            sent.add(each)
            continue
        _record_match(told, of.get(each, b"git"), data)
        lines |= blobs.identifying_lines(data)
        stored += _STORED_ELSEWHERE.findall(data) if data.startswith(b"version https://git-lfs") else []
    ids -= sent
    tracked -= {path for path in tracked if path in index and index[path][0] in sent}
    if lines:
        among = blobs.among_secrets(folder, names.nameless - harmless, lines)
        for _, data in blobs.contents(folder, sorted(among - ids)):
            _record_match(told, b"git", data)
        ids |= among
    for _, data in blobs.contents(folder, sorted(names.keyed - ids - harmless)[:MOST_TOLD]):
        if not _is_sent(data, asked):
            _record_match(told, b"git", b"\n".join(blobs.keys_in(data)))
    if asked.values:
        return None
    made = WithoutSecrets(os.fsencode(folder.git_dir), os.fsencode(folder.common_dir))
    _leave_out(folder, ids, Path(asked.cache), made, {each for each, _ in index.values()})
    for each in map(bytes.decode, stored):
        path = os.path.join(folder.common_dir, "lfs/objects", each[:2], each[2:4], each)
        made.gone += [os.fsencode(path)] if os.path.lexists(path) else []
    for path in in_progress(folder):
        if (start := _start_of(path)) is None or any(line in start for line in lines):
            made.emptied.append(os.fsencode(path))
    made.tracked = sorted(tracked)
    if in_index := sorted(path for path in tracked if index.get(path, ("", False))[1]):
        made.index = _index(folder, in_index)
    return made if made.gone or made.emptied or made.index is not None else None


def _record_match(told: list[tuple[bytes, bytes]], name: bytes, data: bytes) -> None:
    if data and len(told) < MOST_TOLD and sum(len(each) for _, each in told) + len(data) <= MOST_TOLD_BYTES:
        told.append((name, data))


def _is_sent(data: bytes, asked: HistoryRequest) -> bool:
    return bool(asked.sent) and hashlib.sha256(data).hexdigest() in asked.sent


def _is_hidden(
    path: bytes, folder: GitFolder, hidden: Sequence[bytes], below: bytes, asked: HistoryRequest
) -> bool:
    if path in hidden or asked.values:
        return True
    with suppress(OSError):
        if stat.S_ISREG(os.lstat(os.path.join(os.fsencode(folder.work_tree), path)).st_mode):
            return False
    whole = os.fsdecode(below + path)
    return not any(
        fnmatchcase(each, glob) for each in (whole, whole.removeprefix(asked.prefix)) for glob in asked.reveal
    )


def _leave_out(
    folder: GitFolder, ids: set[str], cache: Path, made: WithoutSecrets, current: set[str]
) -> None:
    there: set[str] = set()
    for store in object_stores(folder.common_dir):
        rewritten = False
        for pack in blobs.packs_of(store):
            inside = blobs.ids_of(folder, pack)
            secret = ids.intersection(inside)
            if not secret:
                continue
            there |= secret
            rewritten = True
            rest = [each for each in inside if each not in secret]
            if rest:
                made.stores.append(os.fsencode(_rewritten(folder, pack, rest, secret, cache)))
            place, _, name = pack.rpartition(b"/")
            stem = name.removesuffix(b"idx")
            made.gone += [place + b"/" + each for each in os.listdir(place) if each.startswith(stem)]
        if rewritten:
            names = (name for name in os.listdir(f"{store}/pack") if name.startswith("multi-pack-index"))
            made.gone += [os.fsencode(f"{store}/pack/{name}") for name in names]
        for each in ids:
            path = f"{store}/{each[:2]}/{each[2:]}"
            if os.path.lexists(path):
                there.add(each)
                made.gone.append(os.fsencode(path))
    if there:
        by = blobs.blob_id(folder, SENTENCE)
        replaced = sorted(there, key=lambda each: (each not in current, each))[:MOST_REPLACED]
        made.refs = _refs(folder, replaced, by)
        made.stores.append(os.fsencode(_replacements({*there, by}, cache)))


def _refs(folder: GitFolder, ids: Iterable[str], by: str) -> bytes | None:
    """Returns `packed-refs` with replacement refs; None for other ref formats or beyond the size limit."""
    if os.path.isdir(os.path.join(folder.common_dir, "reftable")):
        return None
    try:
        before = read_regular(os.path.join(folder.common_dir, "packed-refs"), _MOST_REFS)
    except FileNotFoundError:
        before = b"# pack-refs with: peeled fully-peeled sorted \n"
    except OSError:
        return None
    head, told = (
        b"",
        {f"refs/replace/{each}".encode(): f"{by} refs/replace/{each}\n".encode() for each in ids},
    )
    name = b""
    for line in before.splitlines(keepends=True):
        if line.startswith(b"#"):
            head += line
        elif line.startswith(b"^"):
            told[name] += line
        else:
            name = line.rstrip(b"\n").partition(b" ")[2]
            told.setdefault(name, line)
    return head + b"".join(told[name] for name in sorted(told))


def _rewritten(folder: GitFolder, pack: bytes, rest: Iterable[str], secret: set[str], cache: Path) -> str:
    key = hashlib.sha256(b"\0".join([os.path.basename(pack), *map(str.encode, sorted(secret))])).hexdigest()[
        :32
    ]
    place = cache / "packs" / key
    if (place / "pack").is_dir():
        with suppress(OSError):
            os.utime(place)
        return str(place)
    make_private(place.parent)
    making = place.with_name(f"{key}.{os.getpid()}")
    make_private(making / "objects" / "pack")
    make_private(making / "objects" / "info")
    make_private(making / "refs")
    try:  # a temporary repository that borrows objects and receives git's files
        (making / "objects" / "info" / "alternates").write_bytes(pack.rpartition(b"/pack/")[0] + b"\n")
        (making / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        version, hashes = "0", ()
        if blobs.id_size(folder) != 20:
            version, hashes = "1", (("extensions.objectformat", "sha256"),)
        (making / "config").write_bytes(format_config((("core.repositoryformatversion", version), *hashes)))
        how = ("-q", "--window=0", "--delta-base-offset", "--threads=1", "objects/pack/pack")
        feed = "".join(f"{each}\n" for each in rest).encode()
        variables = {"GIT_DIR": str(making)}
        done = run_git(str(making), ("pack-objects", *how), variables, feed=feed, seconds=LONG_SECONDS)
        if not done.ok:
            raise GitUnreadable(
                f"a pack cannot be written: {done.err.decode(errors='replace').strip()[-200:]}"
            )
        make_private(place)
        _finish(making / "objects" / "pack", place / "pack")
    finally:
        remove_folder(str(making))
    return str(place)


def _replacements(ids: set[str], cache: Path) -> str:
    data = zlib.compress(b"blob %d\0" % len(SENTENCE) + SENTENCE)
    key = hashlib.sha256(b"\0".join([data, *map(str.encode, sorted(ids))])).hexdigest()[:32]
    place, making = cache / "packs" / key, cache / "packs" / f"{key}.{os.getpid()}"
    if place.is_dir():
        with suppress(OSError):
            os.utime(place)
        return str(place)
    try:
        for each in ids:
            folder = making / each[:2]
            make_private(folder)
            (folder / each[2:]).write_bytes(data)
        _finish(making, place)
    finally:
        remove_folder(str(making))
    return str(place)


def _finish(made: Path, place: Path) -> None:
    try:
        os.rename(made, place)
    except OSError:
        if not place.is_dir():  # else another process was first
            raise


def sweep(cache: Path) -> None:
    packs = cache / "packs"
    for name in os.listdir(packs) if packs.is_dir() else ():
        with suppress(OSError):
            if time.time() - (packs / name).stat().st_mtime > _KEPT_SECONDS:
                remove_folder(str(packs / name))


def _index(folder: GitFolder, paths: Iterable[bytes]) -> bytes:
    with temporary_folder() as own:
        place = os.path.join(own, "index")
        shutil.copyfile(os.path.join(folder.git_dir, "index"), place)
        os.utime(place, ns=(0, os.lstat(os.path.join(folder.git_dir, "index")).st_mtime_ns))
        feed = b"".join(path + b"\0" for path in paths)
        blobs.run(
            folder,
            "update-index",
            "--no-split-index",
            "-z",
            "--skip-worktree",
            "--stdin",
            feed=feed,
            index=place,
        )
        return Path(place).read_bytes()


def _start_of(path: str) -> bytes | None:
    try:
        return read_regular(path, _MOST_READ)
    except OSError:
        return None


def main() -> None:
    os.nice(10)
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=HistoryRequest)
    with suppress(OSError):
        sweep(Path(asked.cache))
    told = answer(asked)
    sys.stdout.buffer.write(msgspec.msgpack.encode(told))


if __name__ == "__main__":
    main()
