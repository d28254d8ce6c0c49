"""Folders of extensions, and bounded reading of their files and front matter."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tui_agent.files.names import display_path
from tui_agent.files.text import clean
from tui_agent.settings.files import reason_of
from tui_agent.settings.folders import Folders

Origin = Literal["user", "project"]
Kind = Literal["skills", "commands", "agents"]
MAX_BYTES = 100_000
MAX_ENTRIES = 200
#: Folder entries examined in one place, and their depth.
MAX_LISTED, MAX_DEPTH = 5_000, 4
#: In a workspace and in the home folder.
SHARED = (".agents", ".claude")
#: `:` separates the subfolders of a command.
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}(?::[A-Za-z0-9][\w.-]{0,63}){0,3}", re.ASCII)
_TITLE = re.compile(r"[\w&.,+()'-]{1,40}(?: [\w&.,+()'-]{1,40}){1,9}")


class ExtensionFolder(Struct, frozen=True):
    """`root` is the resolved folder that its files may not leave."""

    folder: Path
    origin: Origin
    root: Path


class Problem(Struct, frozen=True):
    """An omitted extension: its file, the line (0: none), the reason, and the word that called it."""

    path: Path
    why: str
    line: int = 0
    called: str = ""

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        return f"{display_path(str(self.path))}{line}: {self.why}"


class Unusable(Exception):
    """A file that cannot be an extension."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why, line)
        self.why, self.line = why, line


def name_of(written: str, file_name: str) -> str:
    """Returns the written name; that of the file if it is a title, such as `Code Review & Tests`. Raises
    Unusable.
    """
    name = file_name if not written or _TITLE.fullmatch(written) else written
    if not NAME.fullmatch(name) or ":" in name:
        raise Unusable(f"{display_path(name[:80])} is not a name of letters, digits, - and _")
    return name


def home_folder() -> Path:
    return Path(os.path.expanduser("~"))


def places(kind: Kind, folders: Folders, workspace: Path) -> list[ExtensionFolder]:
    """Returns existing places of a kind, in order of precedence: the user's own, then the workspace's.

    A workspace's folder may be a link to another folder of the workspace. `prompts/` counts in the home
    folder only.
    """
    home, root = home_folder(), Path(os.path.realpath(workspace))
    own = [folders.config / kind, *(home / name / kind for name in SHARED)]
    if kind == "commands":
        own.append(home / ".codex" / "prompts")
    found = [ExtensionFolder(path, "user", Path(os.path.realpath(path))) for path in own]
    if root != Path(os.path.realpath(home)):
        found += [ExtensionFolder(root / name / kind, "project", root) for name in SHARED]
    seen: set[str] = set()
    kept = []
    for place in found:
        real = os.path.realpath(place.folder)
        inside = place.origin == "user" or is_inside(real, root)
        if real not in seen and inside and os.path.isdir(real):
            seen.add(real)
            kept.append(place)
    return kept


def is_inside(path: str | Path, root: Path) -> bool:
    return os.path.commonpath([os.path.realpath(path), root]) == str(root)


def entries(folder: Path, depth: int = MAX_DEPTH, *, without: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Yields files below a folder, sorted, at most `MAX_LISTED`; follows linked folders once each."""
    left = [MAX_LISTED]
    seen: set[str] = set()

    def walk(at: Path, deep: int) -> Iterator[Path]:
        real = os.path.realpath(at)
        if real in seen or deep < 0:
            return
        seen.add(real)
        try:
            found = sorted(os.scandir(at), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in found:
            if entry.name in without:
                continue
            left[0] -= 1
            if left[0] < 0:
                return
            if os.path.isdir(entry):  # `entry.is_dir` raises for a circular link.
                yield from walk(at / entry.name, deep - 1)
            else:
                yield at / entry.name

    return walk(folder, depth)


def read_text(path: Path, root: Path) -> str:
    """The resolved path must be below `root`. Raises Unusable."""
    data = read_bytes(path, root, MAX_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unusable("it is not UTF-8 text", data.count(b"\n", 0, error.start) + 1) from None


def read_bytes(path: Path, root: Path, most: int) -> bytes:
    """Reads a regular file of at most `most` bytes below `root`. Raises Unusable."""
    real = os.path.realpath(path)
    if not is_inside(real, root):
        raise Unusable(f"a link leads out of {display_path(str(root))}")
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Unusable(f"it cannot be read ({reason_of(error)})") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unusable("it is not a regular file")
        if status.st_size > most:
            raise Unusable(f"it has {status.st_size:,} bytes, more than {most:,}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise Unusable(f"it has more than {most:,} bytes")
        return data
    except OSError as error:
        raise Unusable(f"it cannot be read ({reason_of(error)})") from None
    finally:
        os.close(descriptor)


def digest_of(path: Path, root: Path, most: int) -> str:
    """SHA-256; "" for a file that cannot be read within the limits."""
    try:
        return hashlib.sha256(read_bytes(path, root, most)).hexdigest()
    except Unusable:
        return ""


Value = str | tuple[str, ...]
MAX_LINES = 500
_KEY = re.compile(r"([A-Za-z_][\w-]{0,63})[ ]*:(?:[ ]+(.*)|[ ]*)")
_BLOCK = re.compile(r"([|>])([+-]?)[1-9]?([+-]?)[ ]*(?:#.*)?")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "r": "\r", "0": "", " ": " "}


class Document(Struct, frozen=True):
    """A Markdown file with front matter."""

    fields: Mapping[str, Value]
    body: str

    def text(self, *names: str) -> str:
        """Returns the first of these fields with a value, as one line."""
        for name in names:
            value = self.fields.get(name, "")
            text = value if isinstance(value, str) else ", ".join(value)
            if text.strip():
                return " ".join(text.split())
        return ""

    def is_true(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "yes", "on")

    def items(self, *names: str) -> tuple[str, ...] | None:
        """Returns the first of these fields as a list; commas outside brackets separate items. None if
        missing.
        """
        for name in names:
            if name in self.fields:
                value = self.fields[name]
                texts = (value,) if isinstance(value, str) else value
                return tuple(item for text in texts for item in _separated(text))
        return None


def parse(text: str) -> Document:
    """Removes control characters; without front matter all of it is the body. Raises Unusable with the line."""
    text = clean(text)
    lines = text.split("\n")
    if not lines or lines[0].rstrip() != "---":
        return Document({}, text)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise Unusable("its front matter has no closing ---", 1)
    if end > MAX_LINES:
        raise Unusable(f"its front matter has more than {MAX_LINES} lines", MAX_LINES)
    body = "\n".join(lines[end + 1 :]).strip("\n")
    fields: dict[str, Value] = {}
    at = 1
    while at < end:
        line, number = lines[at], at + 1
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.fullmatch(line.rstrip())
        if found is None:
            raise Unusable("a line of its front matter is not `key: value`", number)
        key, value = found[1], (found[2] or "").strip()
        if key in fields:
            raise Unusable(f"its front matter has `{key}` twice", number)
        below = []
        while at < end and (not lines[at].strip() or lines[at][0] in " \t" or _is_item(lines[at])):
            if lines[at].startswith("\t"):
                raise Unusable("a tab indents its front matter, which YAML does not allow", at + 1)
            below.append(lines[at])
            at += 1
        fields[key] = _value(value, below, number)
    return Document(fields, body)


def _is_item(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _value(value: str, below: list[str], number: int) -> Value:
    block = _BLOCK.fullmatch(value)
    if block:
        depth = min((len(line) - len(line.lstrip(" ")) for line in below if line.strip()), default=0)
        text = "\n".join(line[depth:].rstrip() for line in below).strip("\n")
        folded = block[1] == ">"
        return "\n".join(part.replace("\n", " ") for part in text.split("\n\n")) if folded else text
    texts = [line.strip() for line in below if line.strip()]
    if value[:1] in ('"', "'"):
        return _quoted(" ".join([value, *texts]), number)
    if value.startswith("["):
        whole = " ".join([value, *texts])
        if whole.endswith("]") and whole.count("[") == 1:
            return tuple(_item(item, number) for item in _separated(whole[1:-1]))
        if "]" not in whole:
            raise Unusable("a list of its front matter has no closing ]", number)
        return whole
    if not value and texts and all(_is_item(line) for line in texts):
        return tuple(_item(line[1:].strip(), number) for line in texts)
    return _COMMENT.sub("", " ".join([value, *texts])).strip()


def _item(text: str, number: int) -> str:
    return _quoted(text, number) if text[:1] in ('"', "'") else _COMMENT.sub("", text).strip()


def _quoted(text: str, number: int) -> str:
    mark, found, at = text[0], [], 1
    while at < len(text):
        letter = text[at]
        if letter == mark and mark == "'" and text[at + 1 : at + 2] == "'":
            found.append("'")
            at += 2
        elif letter == mark:
            rest = text[at + 1 :].strip()
            if rest and not rest.startswith("#"):
                raise Unusable("text follows a quoted value of its front matter", number)
            return "".join(found)
        elif letter == "\\" and mark == '"' and at + 1 < len(text):
            found.append(_ESCAPES.get(text[at + 1], text[at : at + 2]))
            at += 2
        else:
            found.append(letter)
            at += 1
    raise Unusable("a quoted value of its front matter is not closed", number)


def _separated(text: str) -> list[str]:
    items, depth, mark, begin = [], 0, "", 0
    for at, letter in enumerate(text):
        if mark:
            mark = "" if letter == mark else mark
        elif letter in "\"'":
            mark = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            items.append(text[begin:at].strip())
            begin = at + 1
    items.append(text[begin:].strip())
    return [item for item in items if item]
