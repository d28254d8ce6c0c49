"""Finds blobs with secrets by every path they had in a commit, reachable or not.

Blobs have no names: all commits in the object store, including unreachable ones and stashes, are compared
with their parents for the paths of new blobs. Blobs only staged are judged by content.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tui_agent.files import sensitive_paths
from tui_agent.files.git_folder import GitFolder, read_regular
from tui_agent.files.masking import hits, may_hold_key
from tui_agent.files.numbers import whole_number
from tui_agent.files.operating_system import read_start
from tui_agent.files.sensitive_paths import is_secret
from tui_agent.git.object_stores import names_in_git, object_stores
from tui_agent.git.process import Result, started
from tui_agent.git.repository import LONG_SECONDS, git

MOST_OBJECTS: Final = 6_000_000
_COMMITS: Final = 20_000
_PATHS: Final = 500
#: A new pack with more objects causes a complete search.
_FEW: Final = 20_000
_MOST_READ: Final = 1 << 16
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
        if len(words) == 3 and words[1] == b"blob" and whole_number(words[2]) <= _MOST_READ:
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
