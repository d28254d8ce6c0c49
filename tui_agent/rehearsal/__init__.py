"""The rehearsal: a bundled sample project and a recorded model, without network access or a key."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tui_agent.errors import ChildFailed, FileError
from tui_agent.git.process import run_git

FOLDER = Path(__file__).parent

#: Two paths are wrong, to demonstrate the search: one is found by name, the other by a part of it.
FIRST_REQUEST = (
    "Use the timeout from shop/settings.py for both API calls, "
    "in shop/api/orders.py and shop/api/payments.py."
)
CHECK_NAME, CHECK_COMMAND = "tests", "python3 -m unittest"

PREFIX = "tui-agent-demo-"
AUTHOR, ADDRESS, DATE = "Bookshop", "bookshop@example.com", "2025-01-15T09:00:00+00:00"
#: Created by installers beside Python files.
LEFT_OUT = "__pycache__"


def recording() -> Path:
    """The file of recorded replies, in the format of `--replay`."""
    return FOLDER / "recording.jsonl"


def copy_project(into: Path | None = None) -> Path:
    """Copies the sample project to the empty folder `into`, or a temporary one.

    With git the copy is a repository with one commit, otherwise plain files. Raises `FileError` if the
    folder is not writable.
    """
    try:
        target = Path(into or tempfile.mkdtemp(prefix=PREFIX)).resolve()
        _copy(FOLDER / "project", target)
    except OSError as error:
        where = into or tempfile.gettempdir()
        raise FileError(
            f"The sample project cannot be copied to {where}: {error}", "free some space or give permission"
        ) from error
    steps = (
        ("init", "-q", "--template=", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "-q", "--no-verify", "--no-gpg-sign", "-m", "A bookshop's client"),
    )
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", AUTHOR), ("EMAIL", ADDRESS), ("DATE", DATE))
    }
    try:
        done = all(run_git(str(target), step, who, seconds=10).ok for step in steps)
        for key, value in (
            ("user.name", AUTHOR),
            ("user.email", ADDRESS),
        ):
            if done and not run_git(str(target), ("config", "--get", key), {}, seconds=10).ok:
                run_git(str(target), ("config", key, value), {}, seconds=10)
    except ChildFailed:
        done = False
    if not done:
        shutil.rmtree(target / ".git", ignore_errors=True)
    return target


def _copy(source: Path, target: Path) -> None:
    """Copies contents without permissions, because an installation can be read-only."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.name == LEFT_OUT:
            continue
        if entry.is_dir():
            _copy(entry, target / entry.name)
        else:
            shutil.copyfile(entry, target / entry.name)
