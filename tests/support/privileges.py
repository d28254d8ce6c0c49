"""Being nobody for a while, so that permissions mean something even where the tests run as root."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def unprivileged() -> Generator[Path]:
    """A folder of one's own, and no right to anything else; the rights come back at the end."""
    folder = Path(os.path.realpath(tempfile.mkdtemp()))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, _NOBODY, _NOBODY)
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for inner, _, _ in os.walk(folder):
            os.chmod(inner, 0o700)
        shutil.rmtree(folder, ignore_errors=True)
