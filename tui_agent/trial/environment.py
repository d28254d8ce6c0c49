"""The variables that a command sees: those that programs need by name, what the person adds, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

_PASSED = ("PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ", "USER", "LOGNAME", "SHELL", "VIRTUAL_ENV")
_FAMILIES = ("LC_*",)
_TOOLS = (
    "PYENV_*",
    "NVM_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_HOME",
    "GOROOT",
    "GOPATH",
    "JAVA_HOME",
)
#: Names that are passed only where the person wrote them out in full.
_TOLD = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "SSH_AUTH_SOCK", "DBUS_*", "DISPLAY", "DOCKER_HOST")
_FIXED = {
    "TUI_AGENT_TRIAL": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
}
#: Virtual environments as people name them.
VIRTUAL = (".venv", "venv")


def variables(
    root: str, places: Mapping[str, str], environ: Mapping[str, str], more: Iterable[str] = ()
) -> tuple[dict[str, str], str]:
    """The variables, and the workspace's virtual environment that was put first on the path, relative ("" if none).

    places: HOME and TMPDIR. more: names or patterns from `trial.env`; a pattern passes no key and no address of the
    desktop's services.
    """
    chosen = {name: value for name, value in environ.items() if _passes(name, tuple(more))}
    chosen |= {**_FIXED, **places}
    chosen.setdefault("PATH", os.defpath)
    if "VIRTUAL_ENV" in chosen:
        return chosen, ""
    for name in VIRTUAL:
        folder = os.path.join(root, name)
        if os.path.exists(f"{folder}/pyvenv.cfg") and os.path.isdir(f"{folder}/bin"):
            chosen |= {"VIRTUAL_ENV": folder, "PATH": f"{folder}/bin:{chosen['PATH']}"}
            return chosen, name
    return chosen, ""


def _passes(name: str, more: tuple[str, ...]) -> bool:
    if name in more or name in _PASSED:
        return True
    if any(fnmatchcase(name, pattern) for pattern in _TOLD):
        return False
    return any(fnmatchcase(name, pattern) for pattern in (*_FAMILIES, *_TOOLS, *more))
