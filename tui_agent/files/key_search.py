"""Content search for keys, in one file or in a low-priority child process.

Request: a JSON line with paths. Response: a JSON line with results by path.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.files.masking import hits, may_hold_key

LARGEST = 4_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: Byte-order marks of UTF-16 and UTF-32; longest first: one is a prefix of another.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
#: Encodings without a mark: bytes per character, index of the non-zero byte.
_WIDE = (("utf-32-le", 4, 0), ("utf-32-be", 4, 3), ("utf-16-le", 2, 0), ("utf-16-be", 2, 1))
_BEGINNING = 8_000
_OURS = str(Path(__file__).parents[2])
_PROGRAM = f"import sys; sys.path.insert(0, {_OURS!r}); from tui_agent.files.key_search import main; main()"

#: The SHA-256 of a file's bytes, and each kind of key with its first line.
Keys = tuple[str, list[tuple[str, int]]]


def read_text(path: str) -> bytes | None:
    """Returns a regular text file of limited size; None for others."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return None
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            data = file.read(LARGEST)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if encoding_of(data) else None


def encoding_of(data: bytes) -> str:
    """Returns the encoding, also of UTF-16 and UTF-32 without a mark (nine of ten characters must be
    Western); "" for binary data."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    start = data[:_BEGINNING]
    if b"\0" not in start:
        return "utf-8"
    for encoding, width, place in _WIDE:
        zeros = [start[at::width].count(0) / (len(start[at::width]) or 1) for at in range(width)]
        if zeros[place] < 0.1 and all(share > 0.9 for at, share in enumerate(zeros) if at != place):
            return encoding
    return ""


def in_letters(data: bytes) -> str:
    """Preserves every possible character of a key."""
    return data.decode(encoding_of(data) or "utf-8", "replace")


def keys_in(path: str) -> Keys | None:
    """Blocking."""
    data = read_text(path)
    if not data or (encoding_of(data) == "utf-8" and not may_hold_key(data)):
        return None
    text = in_letters(data)
    kinds: dict[str, int] = {}
    for hit in hits(text):
        kinds.setdefault(hit.what, text.count("\n", 0, hit.start) + 1)
    return (hashlib.sha256(data).hexdigest(), list(kinds.items())) if kinds else None


class KeySearch:
    """The search child. Methods raise OSError if it has exited."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
        )

    def keys_in(self, paths: Sequence[str]) -> dict[str, Keys]:
        """Blocking."""
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(paths).encode() + b"\n")
            self._child.stdin.flush()
            found = json.loads(self._child.stdout.readline() or b"null")
        except ValueError as error:
            raise OSError("the search for keys broke off") from error
        if found is None:
            raise OSError("the search for keys ended")
        return {
            path: (digest, [(what, line) for what, line in kinds]) for path, (digest, kinds) in found.items()
        }

    def close(self) -> None:
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):
                pipe.close() if pipe else None
        self._child.wait()


def main() -> None:
    with suppress(OSError):
        os.nice(19)
    for line in sys.stdin.buffer:
        found = ((path, keys_in(path)) for path in json.loads(line))
        sys.stdout.write(json.dumps({path: keys for path, keys in found if keys}) + "\n")
        sys.stdout.flush()
