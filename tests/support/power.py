"""A disk that is slow, full for a while, or loses what was not synced: `power.c`, loaded below SQLite and Python."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def built(folder: Path) -> Path | None:
    """The library, compiled into a folder; None where there is no C compiler, or what it made cannot be loaded."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder / "power.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, check=False)
    return library if done.returncode == 0 else None


def remember(folders: Iterable[Path], shadow: Path) -> None:
    """What is there now is on the disk."""
    shutil.rmtree(shadow, ignore_errors=True)
    shadow.mkdir()
    for path in _files(folders):
        (shadow / _name(path)).write_bytes(path.read_bytes())


def cut_power(folders: Iterable[Path], shadow: Path) -> None:
    """Leave of each file what it held when it was synced last; nothing of one that never was.

    Names stay as they are, as on file systems that keep these in order and not what the files hold.
    """
    for path in _files(folders):
        kept = shadow / _name(path)
        if path.name.endswith("-shm"):
            path.unlink()
        elif not kept.exists() or kept.read_bytes() != path.read_bytes():
            path.write_bytes(kept.read_bytes() if kept.exists() else b"")


def _files(folders: Iterable[Path]) -> list[Path]:
    found = (path for folder in folders for path in folder.rglob("*"))
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _name(path: Path) -> str:
    status = path.stat()
    return f"{status.st_dev}-{status.st_ino}"
