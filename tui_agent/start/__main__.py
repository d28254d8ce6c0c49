"""`python -m tui_agent.start SECONDS`: the host of processes like this one, unless one runs already."""

from __future__ import annotations

import fcntl
import gc
import os
import sys
from contextlib import suppress
from pathlib import Path

import tui_agent
from tui_agent.control import launcher, sockets
from tui_agent.errors import SessionError
from tui_agent.files.numbers import whole_number
from tui_agent.start import LOCK

#: Without this memory, in bytes, no host runs.
LEAST_MEMORY = 1_000_000_000


def main() -> int:
    name = launcher.host_name(sys.executable, os.path.dirname(os.path.abspath(tui_agent.__file__)))
    memory = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):
        memory.append(whole_number(Path("/sys/fs/cgroup/memory.max").read_text().strip()))
    if not name or "CI" in os.environ or min(memory) < LEAST_MEMORY:
        return 1
    try:
        folder = sockets.made_folder()
        lock = _locked(folder / f"{name}{LOCK}")
        for path in folder.glob(f"host-*{LOCK}"):
            with suppress(OSError):  # held by a host that runs
                ended = _locked(path)
                path.with_suffix("").unlink(missing_ok=True)
                path.unlink()
                os.close(ended)
    except (SessionError, OSError):
        return 1
    gc.disable()
    from tui_agent.start.host import serve  # its imports take half a second

    return serve(folder, name, lock, float(whole_number(sys.argv[1])))


def _locked(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_ino != path.lstat().st_ino:
            raise BlockingIOError
    except OSError:
        os.close(lock)
        raise
    return lock


if __name__ == "__main__":
    sys.exit(main())
