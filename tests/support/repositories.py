"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    """Run git there, as somebody with no settings; its output."""
    environment = {
        **os.environ,
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with these files in its first commit."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "First")
    return folder
