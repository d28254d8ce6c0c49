"""Three texts into one: what both sides did to a common base, by `git merge-file`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import ChildFailed, EditFailed
from tui_agent.git.process import NOT_FOUND, run_git

#: A merge of more than this takes longer than anybody waits for.
TIMEOUT = 60.0
#: git's own exit statuses above this are failures, not numbers of conflicts.
_MOST_CONFLICTS = 127


class Merged(Struct, frozen=True):
    """The merged text; with `conflicts` (127 for more) it holds git's markers (yours, base, theirs) around each."""

    text: str
    conflicts: int = 0


def union(base: str, ours: str, theirs: str) -> str:
    """Both sides of a conflict, one after the other, with the lines that they share only once. Blocking.

    Raises `ChildFailed` where git is missing, `EditFailed` for what is not text.
    """
    if ours == theirs:
        return ours
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        sides = {"yours": ours, "base": base, "theirs": theirs}
        return _merged(Path(folder), sides, "--union").text


def merge(base: str, ours: str, theirs: str, marker: int = 7) -> Merged:
    """What `ours` and `theirs` made of `base`, both kept where they do not touch.

    A conflict's markers have `marker` characters. Blocking: it may run a process.
    Raises `ChildFailed` where git is missing, `EditFailed` for what is not text.
    """
    if ours == theirs or theirs == base:
        return Merged(ours)
    if ours == base:
        return Merged(theirs)
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        sides = {"yours": ours, "base": base, "theirs": theirs}
        return _merged(Path(folder), sides, "--diff3", f"--marker-size={marker}")


def _merged(folder: Path, sides: dict[str, str], *options: str) -> Merged:
    command = ["merge-file", "-p", *options]
    for name, text in sides.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        command.extend(("-L", name))
    variables = {"HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    try:
        done = run_git(str(folder), (*command, "--", *sides), variables, seconds=TIMEOUT)
    except ChildFailed as error:
        raise EditFailed("the merge took too long", "apply the change by hand") from error
    if done.status == NOT_FOUND and not done.out:  # with a text it is so many conflicts, or more
        raise ChildFailed("git cannot be found", "install git: changes to newer files are merged by it")
    if done.status > _MOST_CONFLICTS or done.status < 0:
        why = done.err.decode("utf-8", "replace").strip()[:200]
        raise EditFailed(f"the texts cannot be merged ({why})", "apply the change by hand")
    return Merged(done.out.decode("utf-8", "surrogatepass"), done.status)
