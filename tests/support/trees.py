"""Folders of files and git repositories, as small as a test needs them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

SECONDS = 20.0


def make_tree(root: Path, files: Iterable[str] | Mapping[str, str]) -> Path:
    """Files below `root`, empty or with the text that is given; a name that ends in `/` is an empty folder."""
    texts = files if isinstance(files, Mapping) else dict.fromkeys(files, "")
    root.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def run_git(root: Path, *arguments: str) -> str:
    """git as a person would run it; its output. Raises where it fails."""
    who = ("-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always")
    environment = {name: value for name, value in os.environ.items() if name != "GIT_DIR"}
    told = subprocess.run(
        ["git", *who, *arguments], cwd=root, env=environment, check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


def make_repository(
    root: Path, files: Iterable[str] | Mapping[str, str] = (), *, commit: bool = True
) -> Path:
    """A repository with these files, committed unless `commit` is false."""
    make_tree(root, files)
    run_git(root, "init", "-q", "-b", "main")
    if commit:
        run_git(root, "add", "-A", "-f")
        run_git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


async def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait until the condition holds. Fails when it does not within `SECONDS`."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 what is waited for is on disk or in another process
            await asyncio.sleep(0.02)
