"""What a command wrote, read from its layer: files that are new, changed, deleted or have another mode."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tui_agent.trial.beneath import Beneath
from tui_agent.trial.plan import MEGABYTE, Seed
from tui_agent.trial.reading import Before, Comparison, Found

#: A larger file is listed without its content.
MAX_CONTENT = 5 * MEGABYTE

#: Size, time and mode of each file of a copy when it was made, by its relative path.
Copied = Mapping[str, tuple[int, int, int]]
Kind = Literal["new", "changed", "deleted", "mode", "link", "special"]


@dataclass(frozen=True, slots=True)
class Written:
    """One path that a command left in another state than it found it.

    after: the content; None if there is none, or it is too large. executable: of a regular file afterwards. target: of
    a link. meanwhile: the file in the folder changed since the view was made, so that it is not what the command saw.
    """

    path: str
    kind: Kind
    after: bytes | None = None
    executable: bool = False
    target: str = ""
    size: int = 0
    meanwhile: bool = False


def written(layer: int, root: str, seeds: Iterable[Seed], since: float) -> list[Written]:
    """What is in the layer of a workspace (a descriptor of its folder), in the order of the paths. Blocking.

    since: when the view was made, in seconds since the epoch. What git and caches keep is left out.
    """
    with Beneath(layer, own=True) as there, Beneath(root) as real:
        return _told(_comparison(there, real, root, seeds, since).of_layer())


def written_to_copy(
    copy: str, root: str, seeds: Iterable[Seed], files: Copied, since: float
) -> list[Written]:
    """The same of a copy of a workspace, where `files` says what it held. Blocking."""
    with Beneath(copy, own=True) as there, Beneath(root) as real:
        return _told(_comparison(there, real, root, seeds, since).of_copy(files))


def state_of(status: os.stat_result) -> tuple[int, int, int]:
    """Size, time and mode: where they are the same, a copy was not written."""
    return status.st_size, status.st_mtime_ns, status.st_mode


def _comparison(layer: Beneath, real: Beneath, root: str, seeds: Iterable[Seed], since: float) -> Comparison:
    """What was in place of files counts as what was there; what is only owned is what it was."""
    before = {
        seed.path: Before(seed.kind, seed.content, seed.mode)
        for seed in seeds
        if seed.overlay in ("", root) and seed.kind != "owned"
    }
    return Comparison(layer, real, before, since, MAX_CONTENT)


def _told(found: Iterable[Found]) -> list[Written]:
    return [Written(*one) for one in found]  # ty: ignore[invalid-argument-type]
