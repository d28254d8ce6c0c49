"""Ways in which a secret lies in a folder, most of them under a name that tells nothing.

name = DISGUISES["hard link"](root, "notes.txt")      # what a person or a model would ask for
assert CANARY not in …
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

#: Stands in every secret; 34 letters, so that a token of GitHub's can be made of it.
CANARY = "CANARYq7Zw9Kx2Lm4Np6Rt8Vb1Yd3Fg5Hj"
_SETTINGS = f"USER=me\nPASSWORD={CANARY}\n"
_KEY = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7", CANARY * 2, f"aB3{CANARY}Zq=="])
PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{_KEY}\n-----END PRIVATE KEY-----\n"

Disguise = Callable[[Path, str], str]


def _plain(called: str, root: Path, name: str) -> str:
    path = root / called
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_SETTINGS)
    return called


def _secret(root: Path, called: str = ".env") -> Path:
    return root / _plain(called, root, "")


def _link(root: Path, name: str) -> str:
    (root / name).symlink_to(_secret(root).name)
    return name


def _absolute_link(root: Path, name: str) -> str:
    (root / name).symlink_to(_secret(root))
    return name


def _chain(root: Path, name: str) -> str:
    _secret(root)
    (root / "one.txt").symlink_to(".env")
    (root / "two.txt").symlink_to("one.txt")
    (root / name).symlink_to("two.txt")
    return name


def _through_secret_name(root: Path, name: str) -> str:
    """The file itself tells nothing; a link on the way to it does."""
    (root / "values.dat").write_text(_SETTINGS)
    (root / ".env").symlink_to("values.dat")
    (root / name).symlink_to(".env")
    return name


def _linked_folder(root: Path, name: str) -> str:
    _secret(root, f".aws/{name}")
    (root / "conf").symlink_to(".aws")
    return f"conf/{name}"


def _out(root: Path, name: str) -> str:
    outside = root.parent / "outside.env"
    outside.write_text(_SETTINGS)
    (root / name).symlink_to(outside)
    return name


def _hard_link(root: Path, name: str) -> str:
    os.link(_secret(root), root / name)
    return name


def _hard_link_to_link(root: Path, name: str) -> str:
    """A link to a file that has the name of a secret only by another hard link."""
    os.link(_secret(root, ".ssh/id_rsa"), root / "plain.dat")
    (root / name).symlink_to("plain.dat")
    return name


def _content(text: str, root: Path, name: str) -> str:
    (root / name).write_text(f"first = 1\n{text}\nlast = 2\n")
    return name


DISGUISES: dict[str, Disguise] = {
    "its name": partial(_plain, ".env"),
    "letter case": partial(_plain, ".ENV.Production"),
    "a backup": partial(_plain, "id_rsa.old~"),
    "a copy": partial(_plain, "auth (1).json"),
    "a program's own": partial(_plain, "gh/hosts.yml"),
    "a note": partial(_plain, "passwords.txt"),
    "a link": _link,
    "an absolute link": _absolute_link,
    "a chain of links": _chain,
    "a link by a secret name": _through_secret_name,
    "a linked folder": _linked_folder,
    "a link that leads out": _out,
    "a hard link": _hard_link,
    "a link to a hard link": _hard_link_to_link,
    "a token in a text": partial(_content, f"token: ghp_{CANARY}x9"),
    "a key in a text": partial(_content, PRIVATE_KEY),
}
