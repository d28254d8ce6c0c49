"""What to hide in a repository, and replacements, so that commands can use git without its secrets.

    python -P -m tui_agent.git.without_secrets

A low-priority process that reads a `HistoryRequest` and writes a `HistoryAnswer` (msgpack). A pack with a
secret blob is rewritten once without it into a cache folder. A secret blob is replaced by a sentence under
the same id, because git cannot commit a tree with a missing object.

Blobs have no names: all commits in the object store, including unreachable ones and stashes, are compared
with their parents for the paths of new blobs. Blobs only staged are judged by content.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tui_agent.errors import ChildFailed
from tui_agent.files import sensitive_paths
from tui_agent.files.git_folder import GitFolder, format_config, read_regular
from tui_agent.files.masking import hits, may_hold_key
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import read_start, remove_folder
from tui_agent.files.private import make_private, temporary_folder, write_private
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.git.object_stores import (
    HistoryAnswer,
    HistoryRequest,
    WithoutSecrets,
    all_repositories,
    in_progress,
    names_in_git,
    object_stores,
)
from tui_agent.git.process import Result, run_git, started
from tui_agent.git.repository import LONG_SECONDS, git

SENTENCE: Final = b"(this is a secret, which is not shown in a trial view)\n"
#: git reports further replaced blobs as corrupt.
MOST_REPLACED: Final = 5_000
_MOST_REFS: Final = 1 << 23
MOST_TOLD, MOST_TOLD_BYTES = 500, 4 << 20
_MOST_READ: Final = 1 << 20
_KEPT_SECONDS: Final = 14 * 86400.0
_STORED_ELSEWHERE: Final = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
MOST_OBJECTS: Final = 6_000_000
_COMMITS: Final = 20_000
_PATHS: Final = 500
#: A new pack with more objects causes a complete search.
_FEW: Final = 20_000
_MOST_OF_BLOB: Final = 1 << 16
_MOST_JUDGED: Final = 20_000
#: Blobs searched for keys (0.2 s per thousand), and number in memory at a time.
_MOST_SEARCHED: Final = 10_000
_AT_ONCE: Final = 1_000
_SUBMODULE, _LINK = b"160000", b"120000"
_HEX: Final = re.compile(r"[0-9a-f]+")
#: Sample files are public, also under other names.
_SAMPLE: Final = re.compile(
    rb"(?:^|[._-])(?:example|sample|template|tmpl|dist|defaults)(?:[._-]|$)", re.IGNORECASE
)


class GitUnreadable(Exception):
    """The search failed; `str` is the reason."""


class SecretNames(Struct):
    """Names of a repository's objects, kept between sessions.

    rules: their fingerprint. packs: indexes of searched packs. loose: ids of loose objects. secret: blob
    ids by secret path. asked: the same for requested paths. nameless: blobs without a commit. public:
    blobs of sample files. keyed: blobs with keys, if few enough to search.
    """

    rules: str
    packs: set[bytes]
    loose: set[str]
    secret: dict[bytes, set[str]]
    asked: dict[bytes, set[str]]
    nameless: set[str]
    public: set[str]
    keyed: set[str] = set()


def find_names(folder: GitFolder, kept: Path, asked: Sequence[bytes]) -> SecretNames:
    """Incremental if few objects are new since those of the file `kept`. Raises `GitUnreadable` and
    `ChildFailed`.
    """
    known: SecretNames | None = None
    with suppress(OSError, msgspec.MsgspecError):
        known = msgspec.msgpack.decode(read_start(kept), type=SecretNames)
    stores = object_stores(folder.common_dir)
    packs = {pack for store in stores for pack in packs_of(store)}
    loose = {
        beginning + rest
        for store in stores
        for beginning in names_in_git(store)
        if len(beginning) == 2 and _HEX.fullmatch(beginning)
        for rest in names_in_git(os.path.join(store, beginning))
        if len(rest) in (38, 62) and _HEX.fullmatch(rest)
    }
    rules = hashlib.sha256(
        b"".join(
            Path(each).read_bytes()
            for each in (str(sensitive_paths.__file__), sensitive_paths.PATH, __file__)
        )
    ).hexdigest()
    new: list[str] | None = None
    if known is not None and known.rules == rules and known.packs <= packs:
        ids = [each for pack in packs - known.packs for each in ids_of(folder, pack)]
        new = [*ids, *(loose - known.loose)] if len(ids) <= _FEW else None
    if known is None or new is None:
        known = SecretNames(rules, set(), set(), {}, {}, set(), set(), set())
        new = None
    if new is None or new:
        _look(folder, known, new)
        known.asked = {}
    known.packs, known.loose = packs, loose
    unknown = [path for path in asked if path not in known.asked and path not in known.secret]
    known.asked |= {path: set() for path in unknown}
    how = ("--all", "--reflog", "--full-history", "--root", "-c", "--format=", *_RAW)
    for at in range(0, len(unknown), _PATHS):
        literal = [f":(top,literal){os.fsdecode(path)}" for path in unknown[at : at + _PATHS]]
        for path, each in _brought(run(folder, "log", *how, "--", *literal).out):
            if path in known.asked:
                known.asked[path].add(each)
    return known


def run(folder: GitFolder, *words: str, feed: bytes | None = None, index: str = "") -> Result:
    done = git(folder.work_tree, *words, feed=feed, index=index, seconds=LONG_SECONDS, start=started)
    if not done.ok:
        said = done.err.decode(errors="replace").strip().splitlines()
        raise GitUnreadable(f"git {words[0]} failed ({said[-1][:200] if said else done.status})")
    return done


def packs_of(store: str) -> list[bytes]:
    folder = os.path.join(store, "pack")
    return [os.fsencode(os.path.join(folder, name)) for name in names_in_git(folder) if name.endswith(".idx")]


def ids_of(folder: GitFolder, pack: bytes) -> list[str]:
    try:
        data = read_regular(os.fsdecode(pack), 1 << 31)
    except OSError as error:
        raise GitUnreadable(f"{os.fsdecode(pack)}: {error.strerror}") from error
    size = id_size(folder)
    if data[:8] == b"\xfftOc\0\0\0\2" and len(data) > 1032:
        (count,) = struct.unpack_from(">I", data, 1028)
        if len(data) < 1032 + count * size:
            raise GitUnreadable(f"{os.fsdecode(pack)} is cut")
        text = data[1032 : 1032 + count * size].hex()
        return [text[at : at + 2 * size] for at in range(0, len(text), 2 * size)]
    how = () if size == 20 else ("--object-format=sha256",)
    lines = run(folder, "show-index", *how, feed=data).out.split(b"\n")
    return [line.split(b" ")[1].decode() for line in lines if line]


def id_size(folder: GitFolder) -> int:
    return 32 if dict(folder.entries).get("extensions.objectformat", "").lower() == "sha256" else 20


def blob_id(folder: GitFolder, content: bytes) -> str:
    made = hashlib.sha256() if id_size(folder) == 32 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(content) + content)
    return made.hexdigest()


def contents(folder: GitFolder, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Raises `GitUnreadable`."""
    feed = "".join(f"{each}\n" for each in ids).encode()
    if not feed:
        return
    listed = run(folder, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", feed=feed).out
    small = []
    for line in listed.split(b"\n"):
        words = line.split(b" ")
        if len(words) == 3 and words[1] == b"blob" and whole_number(words[2]) <= _MOST_OF_BLOB:
            small.append(words[0])
    if not small:
        return
    told = run(folder, "cat-file", "--batch", feed=b"\n".join(small) + b"\n").out
    at = 0
    while at < len(told):
        end = told.index(b"\n", at)
        name, _, told_size = told[at:end].split(b" ")
        size = whole_number(told_size)
        yield name.decode(), told[end + 1 : end + 1 + size]
        at = end + 2 + size


def among_secrets(folder: GitFolder, ids: Iterable[str], lines: set[bytes]) -> set[str]:
    chosen = sorted(ids)[:_MOST_JUDGED]
    return {
        each
        for each, data in contents(folder, chosen)
        if may_hold_key(data) or not lines.isdisjoint(identifying_lines(data))
    }


def keys_in(data: bytes) -> list[bytes]:
    if not may_hold_key(data):
        return []
    text = data.decode("utf-8", "replace")
    return [text[hit.start : hit.end].encode() for hit in hits(text)]


def identifying_lines(data: bytes) -> set[bytes]:
    """Returns lines, and values after `=`, long enough to identify their source."""
    found = {line.strip() for line in data.split(b"\n")}
    found |= {line.partition(b"=")[2].strip(b" \t\r\"'") for line in found}
    return {line for line in found if len(line) >= 8}


def _look(folder: GitFolder, known: SecretNames, new: list[str] | None) -> None:
    how = "--batch-check=%(objectname) %(objecttype)"
    if new is None:
        told = run(folder, "cat-file", "--batch-all-objects", "--unordered", how).out
    else:
        told = run(folder, "cat-file", how, feed="".join(f"{each}\n" for each in new).encode()).out
    lines = told.decode(errors="replace").split("\n")
    if len(lines) > MOST_OBJECTS:
        raise GitUnreadable(f"it has more than {MOST_OBJECTS:,} objects")
    blobs = {line.partition(" ")[0] for line in lines if line.endswith(" blob")}
    commits = [line.partition(" ")[0] for line in lines if line.endswith(" commit")]
    del lines
    if len(blobs) <= _MOST_SEARCHED:
        ids = sorted(blobs)
        for at in range(0, len(ids), _AT_ONCE):
            part = contents(folder, ids[at : at + _AT_ONCE])
            known.keyed.update(each for each, data in part if keys_in(data))
    judged: dict[bytes, bool] = {}
    for at in range(0, len(commits), _COMMITS):
        feed = "".join(f"{each}\n" for each in commits[at : at + _COMMITS]).encode()
        compared = ("--stdin", "--no-commit-id", "--root", "-c", *_RAW)
        for path, each in _brought(run(folder, "diff-tree", *compared, feed=feed).out):
            blobs.discard(each)
            known.nameless.discard(each)
            _judge(known, path, each, judged)
    known.nameless |= blobs


_RAW: Final = ("-r", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv")


def staged(folder: GitFolder, known: SecretNames) -> dict[bytes, tuple[str, bool]]:
    """Returns the index by path: blob id, and whether the entry is merged. Adds uncommitted secret paths to
    `known`.
    """
    found: dict[bytes, tuple[str, bool]] = {}
    for line in run(folder, "ls-files", "--stage", "-z").names:
        head, _, path = line.partition(b"\t")
        mode, _, rest = head.partition(b" ")
        if path and mode not in (_SUBMODULE, _LINK):
            each, _, stage = rest.partition(b" ")
            found[path] = (each.decode(), stage == b"0")
            if stage != b"0":
                _judge(known, path, each.decode(), {})
    done = git(folder.work_tree, "diff-index", "--cached", *_RAW, "HEAD", "--", start=started)
    new = _brought(done.out) if done.ok else ((path, each) for path, (each, _) in found.items())
    for path, each in new:
        known.nameless.discard(each)
        _judge(known, path, each, {})
    return found


def _judge(known: SecretNames, path: bytes, each: str, judged: dict[bytes, bool]) -> None:
    secret = judged.get(path)
    if secret is None:
        secret = judged[path] = is_secret(os.fsdecode(path))
    if secret:
        known.secret.setdefault(path, set()).add(each)
    elif _SAMPLE.search(path.rpartition(b"/")[2]):
        known.public.add(each)


def _brought(told: bytes) -> Iterator[tuple[bytes, str]]:
    """Yields paths and ids of new blobs in raw diff output: `:<mode> … <id> … <status>`, NUL, path."""
    words = iter(told.split(b"\0"))
    for word in words:
        head = word.lstrip(b"\n")
        if not head.startswith(b":"):
            continue
        path = next(words, b"")
        before = len(head) - len(head.lstrip(b":"))
        fields = head[before:].split(b" ")
        each = fields[-2].decode()
        if fields[before] not in (_SUBMODULE, _LINK) and each.strip("0"):
            yield path, each


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
    names = find_names(folder, kept, hidden)
    index = staged(folder, names)
    with suppress(OSError):
        write_private(kept, msgspec.msgpack.encode(names), sync=False)
    tracked = {
        path for path in (*names.secret, *names.asked) if _is_hidden(path, folder, hidden, below, asked)
    }
    shown = {each for path, ids in names.secret.items() if path not in tracked for each in ids}
    harmless = names.public | shown | {blob_id(folder, b"")}
    held = (_start_of(os.path.join(folder.work_tree, os.fsdecode(path))) for path in hidden)
    there = [data for data in held if data and not _is_sent(data, asked)]
    of = {
        each: path
        for path in sorted(tracked)
        for each in names.secret.get(path) or names.asked.get(path) or ()
    }
    ids = of.keys() | {index[path][0] for path in tracked if path in index}
    ids |= {blob_id(folder, data) for data in there}
    ids -= harmless
    lines = {line for data in there for line in identifying_lines(data)}
    stored = []
    sent: set[str] = set()
    for each, data in contents(folder, sorted(ids)) if tracked else ():
        if _is_sent(data, asked):
            sent.add(each)
            continue
        _record_match(told, of.get(each, b"git"), data)
        lines |= identifying_lines(data)
        stored += _STORED_ELSEWHERE.findall(data) if data.startswith(b"version https://git-lfs") else []
    ids -= sent
    tracked -= {path for path in tracked if path in index and index[path][0] in sent}
    if lines:
        among = among_secrets(folder, names.nameless - harmless, lines)
        for _, data in contents(folder, sorted(among - ids)):
            _record_match(told, b"git", data)
        ids |= among
    for _, data in contents(folder, sorted(names.keyed - ids - harmless)[:MOST_TOLD]):
        if not _is_sent(data, asked):
            _record_match(told, b"git", b"\n".join(keys_in(data)))
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
        for pack in packs_of(store):
            inside = ids_of(folder, pack)
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
        by = blob_id(folder, SENTENCE)
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
        if id_size(folder) != 20:
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
        run(
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
