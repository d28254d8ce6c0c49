"""An outline of the workspace for the system prompt: folders with counts, the top of the tree first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tui_agent.context.blocks import name

#: A path costs about this many bytes a token; the outline need not be exact, only bounded.
BYTES_A_TOKEN = 4


def outline(paths: Iterable[str], max_tokens: int) -> str:
    """Top-level files and every folder with the number of files below it, the shallow ones first.

    At most about `max_tokens` long; a last line says how many folders did not fit.
    """
    files, folders = _survey(paths)
    lines = [*map(name, files), *(f"{name(path)}/ ({count})" for path, count in folders)]
    kept: list[str] = []
    room = max_tokens * BYTES_A_TOKEN
    for line in lines:
        room -= len(line.encode(errors="replace")) + 1
        if room < 0:
            kept.append(f"… and {len(lines) - len(kept)} more")
            break
        kept.append(line)
    return "\n".join(kept)


def _survey(paths: Iterable[str]) -> tuple[list[str], list[tuple[str, int]]]:
    files: list[str] = []
    below: Counter[str] = Counter()
    for path in paths:
        folder, slash, _ = path.rpartition("/")
        if not slash:
            files.append(path)
        while folder:
            below[folder] += 1
            folder = folder.rpartition("/")[0]
    folders = sorted(below.items(), key=lambda item: (item[0].count("/"), item[0]))
    return sorted(files), folders
