"""A file system that takes `A` and `a` for one name, simulated below one folder: it keeps the case it was given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: System calls by how many names they take first, and what says which folder each of those stands in.
_ONE = ("open", "stat", "unlink", "mkdir", "rmdir", "readlink")
_TWO = ("rename", "replace", "link")


def ignore_case(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Let every call below `root`, and its own name, find what is there in any case."""
    real = {name: getattr(os, name) for name in (*_ONE, *_TWO, "listdir")}

    def on_disk(path: Any, folder: int | None) -> Any:
        """The name under which the folder has it, else the one that was given."""
        if not isinstance(path, str | os.PathLike):
            return path
        text = os.fspath(path)
        head, _, tail = text.rpartition("/")
        if folder is None and not f"{text}/".casefold().startswith(f"{root}/".casefold()):
            return path
        if folder is None and text.casefold() == str(root).casefold():
            return str(root)
        try:
            names = real["listdir"](head or folder)
        except OSError:
            return path
        found = (
            tail if tail in names else next((one for one in names if one.casefold() == tail.casefold()), tail)
        )
        return f"{head}/{found}" if head else found

    def one(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda path, *more, **named: call(on_disk(path, named.get("dir_fd")), *more, **named)

    def two(call: Callable[..., Any]) -> Callable[..., Any]:
        def both(source: Any, target: Any, **named: Any) -> Any:
            return call(
                on_disk(source, named.get("src_dir_fd")), on_disk(target, named.get("dst_dir_fd")), **named
            )

        return both

    for name in _ONE:
        monkeypatch.setattr(os, name, one(real[name]))
    for name in _TWO:
        monkeypatch.setattr(os, name, two(real[name]))
