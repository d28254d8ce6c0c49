"""Secret values of a session, collected from files and updated when they change.

Text is masked on entry into the conversation. Sent text never changes: a value found later is masked only
in new text and exports.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tui_agent.files.folder_scan import encoding_of
from tui_agent.files.git_folder import repository_around
from tui_agent.files.lazy_regex import late
from tui_agent.files.masking import may_hold_key
from tui_agent.files.names import display_path, is_git
from tui_agent.files.operating_system import read_start
from tui_agent.files.secret_files import SecretFiles
from tui_agent.files.secret_values import SecretValues, Value, values_of_bytes
from tui_agent.files.sensitive_paths import is_secret

_OF_OTHERS = frozenset(
    {"node_modules", "site-packages", "dist-packages", "__pycache__", ".tox", ".nox", ".hg", ".svn"}
)
MOST_FOLDERS, MOST_SECRETS, MOST_BYTES = 5_000, 500, 1_000_000
MOST_OTHERS, MOST_OTHER_BYTES, LARGEST_OTHER = 3_000, 8_000_000, 256_000
#: A value of words is public in so many project files or in a sample.
COMMON_IN = 3
_SAMPLE = late(
    r"(?i).*\.(?:example|sample|template|tmpl|dist|defaults)(?:\.[^/]*)?|(?:.*/)?(?:example|sample|template)\.env"
)

_Stamp = tuple[int, int, int]


class _Folder(NamedTuple):
    """A folder at a change time: subfolders, files with secret names, other files, with display names."""

    changed: int
    folders: tuple[str, ...]
    secrets: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...]


class _CachedValues(NamedTuple):
    """A file's values and SHA-256. `named`: all values were considered."""

    stamp: _Stamp
    named: bool
    digest: str
    values: tuple[Value, ...]

    def __repr__(self) -> str:
        return "_CachedValues(…)"


class KnownSecrets:
    """Values in memory. Methods that read files block."""

    def __init__(self, *roots: str, judge: SecretFiles | None = None) -> None:
        """`judge` provides additional secrets in one of the roots."""
        self._roots = [os.path.realpath(root) for root in dict.fromkeys(roots) if root]
        self._judge = judge
        self._around: list[str] | None = None
        self._folders: dict[str, _Folder] = {}
        self._files: dict[str, _CachedValues] = {}
        #: All values of this session by the file's digest: commands may have copied files that are gone.
        self._ever: dict[str, tuple[str, _CachedValues]] = {}
        self._lock = threading.Lock()
        self._key: object = None
        self._sent: set[str] = set()
        self._values = SecretValues()
        self._met: set[str] = set()
        self._told = False

    def __repr__(self) -> str:
        return f"KnownSecrets({len(self._values)})"

    def add(self, name: str, data: bytes) -> None:
        """Adds another secret's bytes, such as one only in git. Blocking."""
        held = _read(data[:MOST_BYTES], (0, 0, 0), named=True)
        if held.values:
            with self._lock:
                self._ever.setdefault(held.digest, (name, held))

    @property
    def values(self) -> SecretValues:
        return self._values

    def look(
        self, decisions: Mapping[str, str] | None = None, between: Callable[[], object] = lambda: None
    ) -> SecretValues:
        """Blocking; of unchanged files, checks only the times. Calls `between` before each file.
        `decisions`: choices by SHA-256; permitted files contribute no values.
        """
        with self._lock:
            held, others = self._values_by_file(between)
            self._sent = sent = _sent(decisions or {})
            key = (
                frozenset((name, one.digest) for name, one in held),
                frozenset(sent & {one.digest for _, one in held}),
                frozenset((path, one.stamp) for path, one in others)
                if any(value.plain for _, one in held for value in one.values)
                else None,
            )
            if key != self._key:
                shown_whole = {value.data for _, one in held if one.digest in sent for value in one.values}
                plain = {value.data for _, one in held for value in one.values if value.plain} - shown_whole
                hidden = shown_whole | (_common(plain, [path for path, _ in others]) if plain else set())
                sources: dict[str, list[Value]] = {}
                for name, one in held:
                    sources.setdefault(name, []).extend(
                        value for value in one.values if value.data not in hidden
                    )
                self._values = SecretValues(sources)
                self._key = key
            return self._values

    def begin(self, decisions: Mapping[str, str]) -> None:
        """Calls `look` once after each decision. Blocking."""
        if self._key is None or _sent(decisions) != self._sent:
            self.look(decisions)

    def masked(self, text: str) -> str:
        """`pending_notice` then reports matches."""
        clean, names = self._values.masked(text)
        self._met |= names
        return clean

    def pending_notice(self) -> str:
        """Once per session, otherwise ""."""
        if self._told or not self._met:
            return ""
        self._told = True
        names = sorted(self._met)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        which = ", ".join(map(display_path, names[:3])) + more
        return f"Values from {which} are masked in what the model gets, in commands' output too"

    def _values_by_file(
        self, between: Callable[[], object]
    ) -> tuple[list[tuple[str, _CachedValues]], list[tuple[str, _CachedValues]]]:
        secrets, others = self._paths()
        before, self._files = self._files, {}
        found: list[tuple[str, _CachedValues]] = []
        for path, name in secrets[:MOST_SECRETS]:
            between()
            if held := self._look_at(path, before, MOST_BYTES, named=True):
                found.append((name, held))
        for one in self._judge.last if self._judge else ():
            path = os.path.join(self._judge.root, one.path) if self._judge else ""
            whole = one.why != "content"
            if path not in self._files and (held := self._look_at(path, before, MOST_BYTES, named=whole)):
                found.append((one.path, held))
        left, plain = MOST_OTHER_BYTES, []
        for path, name in others[:MOST_OTHERS]:
            if path in self._files:
                continue
            between()
            held = self._look_at(path, before, min(LARGEST_OTHER, left), named=False)
            if held is not None:
                left -= held.stamp[1]
                plain.append((path, held))
                if held.values:
                    found.append((name, held))
        now = {one.digest for _, one in found}
        found += [pair for digest, pair in self._ever.items() if digest not in now]
        for name, one in found[:MOST_SECRETS]:
            if one.values:
                self._ever.setdefault(one.digest, (name, one))
        while len(self._ever) > 2 * MOST_SECRETS:
            self._ever.pop(next(iter(self._ever)))
        return found, plain

    def _paths(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        seen, self._folders = self._folders, {}
        secrets: list[tuple[str, str]] = []
        others: list[tuple[str, str]] = []
        if self._around is None:
            self._around = [around for root in self._roots if (around := repository_around(root))]
        for root in dict.fromkeys((*self._roots, *self._around)):
            waiting = [root]
            while waiting and len(self._folders) < MOST_FOLDERS:
                place = waiting.pop(0)
                if place in self._folders:
                    continue
                try:
                    changed = os.stat(place).st_ctime_ns
                    entry = seen.get(place)
                    if entry is None or entry.changed != changed:
                        entry = _entries(root, place, changed)
                except OSError:
                    continue
                self._folders[place] = entry
                secrets += entry.secrets
                others += entry.others if root in self._roots else ()
                waiting += entry.folders
        return secrets, others

    def _look_at(
        self, path: str, before: dict[str, _CachedValues], most: int, *, named: bool
    ) -> _CachedValues | None:
        try:
            status = os.stat(path)
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return None
            held = before.get(path)
            if held is None or held.stamp != stamp or held.named != named:
                descriptor = os.open(
                    path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
                )  # does not block on a pipe
                with open(descriptor, "rb") as file:
                    held = _read(file.read(most), stamp, named=named)
        except OSError:
            return None
        self._files[path] = held
        return held


def _sent(decisions: Mapping[str, str]) -> set[str]:
    return {digest for digest, choice in decisions.items() if choice == "send"}


def _read(data: bytes, stamp: _Stamp, *, named: bool) -> _CachedValues:
    looked = named or encoding_of(data) not in ("", "utf-8") or may_hold_key(data)
    values = values_of_bytes(data, named=named) if looked else ()
    return _CachedValues(stamp, named, hashlib.sha256(data).hexdigest(), tuple(values))


def _entries(root: str, place: str, changed: int) -> _Folder:
    folders, secrets, others = [], [], []
    with os.scandir(place) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = entry.path[len(root) :].lstrip("/")
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _OF_OTHERS and not is_git(entry.name):
                    folders.append(entry.path)
            elif is_secret(name):
                secrets.append((entry.path, name))
            elif entry.is_file(follow_symlinks=False):
                others.append((entry.path, name))
    return _Folder(changed, tuple(folders), tuple(secrets), tuple(others))


def _common(values: set[bytes], paths: Sequence[str]) -> set[bytes]:
    """Values also used elsewhere in the project: as a word of a sample or in several files."""
    counts = dict.fromkeys(values, 0)
    words = {value: re.compile(rb"(?<!\w)" + re.escape(value) + rb"(?!\w)") for value in values}
    for path in paths:
        most = COMMON_IN if _SAMPLE.fullmatch(path) else 1
        try:
            data = read_start(path, LARGEST_OTHER)
        except OSError:
            continue
        for value in (value for value in values if value in data):
            if counts[value] < COMMON_IN and words[value].search(data):
                counts[value] += most
    return {value for value, count in counts.items() if count >= COMMON_IN}
