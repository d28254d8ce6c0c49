"""Three texts into one: what both sides did to a common base, by `git merge-file`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from msgspec import Struct

from tui_agent.errors import ChildFailed, EditFailed

#: A merge of more than this takes longer than anybody waits for.
TIMEOUT = 60.0
#: git's own exit statuses above this are failures, not numbers of conflicts.
_MOST_CONFLICTS = 127


class Merged(Struct, frozen=True):
    """The merged text; with `conflicts` it holds git's markers (yours, base, theirs) around each of them."""

    text: str
    conflicts: int = 0


def merge(base: str, ours: str, theirs: str, marker: int = 7) -> Merged:
    """What `ours` and `theirs` made of `base`, both kept where they do not touch.

    A conflict's markers have `marker` characters. Blocking: it may run a process.
    Raises `ChildFailed` where git is missing, `EditFailed` for what is no text.
    """
    if ours == theirs or theirs == base:
        return Merged(ours)
    if ours == base:
        return Merged(theirs)
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as folder:
        return _merged(Path(folder), {"yours": ours, "base": base, "theirs": theirs}, marker)


def _merged(folder: Path, sides: dict[str, str], marker: int) -> Merged:
    command = ["git", "merge-file", "-p", "--diff3", f"--marker-size={marker}"]
    for name, text in sides.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        command.extend(("-L", name))
    try:
        done = subprocess.run(
            [*command, "--", *sides],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError as error:
        raise ChildFailed(
            "git cannot be found", "install git: changes to newer files are merged by it"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EditFailed("the merge took too long", "apply the change by hand") from error
    if done.returncode > _MOST_CONFLICTS or done.returncode < 0:
        why = done.stderr.decode("utf-8", "replace").strip()[:200]
        raise EditFailed(f"the texts cannot be merged ({why})", "apply the change by hand")
    return Merged(done.stdout.decode("utf-8", "surrogatepass"), done.returncode)


def _environment(folder: Path) -> dict[str, str]:
    """No configuration, no repository and no language of the person's can change what a merge does."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
