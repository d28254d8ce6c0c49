"""A plan: which files and folders a request needs, as the model or the built-in planner wrote it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

FallbackKind = Literal["ask_user", "skip", "create_new"]
MAX_PATTERNS = 5


class FileAction(Struct, frozen=True):
    """One file (or, with `all`, one batch of files) that is wanted, and how to look for it.

    `patterns` are tried in order, the first that matches wins. `fallback` says what happens when none does.
    """

    name: str
    patterns: tuple[str, ...]
    reason: str = ""
    required: bool = True
    fallback: FallbackKind = "ask_user"
    all: bool = False


class DirectoryAction(Struct, frozen=True):
    """A folder whose listing is wanted; `filter` is a pattern for names, empty for every name."""

    path: str
    recursive: bool = False
    filter: str = ""


class Plan(Struct, frozen=True):
    """`source` is who made it: `model`, or `words` for the built-in planner."""

    source: Literal["model", "words"] = "words"
    files: tuple[FileAction, ...] = ()
    directories: tuple[DirectoryAction, ...] = ()
    #: What was mended or left out while it was read, a sentence each.
    faults: tuple[str, ...] = ()
