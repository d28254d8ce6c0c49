"""Real projects from the package registries: fetched by the registry's own client, unpacked, made ready once."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: Where they lie: never committed. The variable names another folder.
FOLDER = Path(os.environ.get("TUI_AGENT_PROJECTS") or ROOT / "build" / "projects")
_SOURCES = """Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
#: What is made in a project and is not its own.
_MADE = (".venv/", "node_modules/", "vendor/", "build/", "target/", "*.egg-info/", "__pycache__/")


class RealProject(msgspec.Struct, frozen=True, rename={"source": "from"}):
    """One of `projects.toml`, whose head says what the fields are."""

    name: str
    source: str
    check: str
    path: str
    before: str
    wrong: str
    right: str
    red: tuple[str, str, str]
    prepare: tuple[str, ...] = ()


class NotHere(NamedTuple):
    """Why a project cannot be had on this machine."""

    why: str


class _Listed(msgspec.Struct):
    project: list[RealProject]


def listed() -> list[RealProject]:
    return msgspec.toml.decode((HERE / "projects.toml").read_bytes(), type=_Listed).project


def made_ready(project: RealProject) -> Path | NotHere:
    """Its folder, a repository with all in it committed; fetched, if it is not there."""
    folder = FOLDER / project.name
    done = FOLDER / f"{project.name}.ready"
    if done.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    registry, _, package = project.source.partition(":")
    try:
        with tempfile.TemporaryDirectory() as fetched:
            archive = {"pypi": _from_pypi, "npm": _from_npm, "debian": _from_debian}[registry](
                package, Path(fetched)
            )
            _unpack(archive, folder)
        for command in project.prepare:
            _run(command, folder)
    except (OSError, StopIteration, subprocess.SubprocessError) as error:
        return NotHere(f"{type(error).__name__}: {error}"[:200])
    _run("git init -q", folder)
    (folder / ".git/info/exclude").write_text("\n".join(_MADE) + "\n")
    _run("git add -A", folder)
    _run("git -c user.name=a -c user.email=a@example.org commit -q -m Untouched", folder)
    done.touch()
    return folder


def as_it_was(folder: Path) -> None:
    """Undo whatever was changed in it, but for what it needs to be checked."""
    _run("git checkout -q -- . && git clean -qfdx -e .venv -e node_modules -e vendor -e '*.egg-info'", folder)


def _run(command: str, folder: Path) -> None:
    subprocess.run(
        command,
        shell=True,
        cwd=folder,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=900,
    )


def _from_pypi(package: str, to: Path) -> Path:
    name = package.partition("==")[0]
    _run(f"python3 -m pip download -q --no-deps --no-binary {name} {package}", to)
    return next(to.glob("*.tar.gz"))


def _from_npm(package: str, to: Path) -> Path:
    _run(f"npm pack --silent {package}", to)
    return next(to.glob("*.tgz"))


def _from_debian(package: str, to: Path) -> Path:
    """The archive of the authors, without what Debian adds."""
    (to / "lists/partial").mkdir(parents=True)
    (to / "parts").mkdir()
    (to / "parts/src.sources").write_text(_SOURCES)
    options = f"-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts={to}/parts -o Dir::State::lists={to}/lists"
    _run(f"apt-get {options} update", to)
    _run(f"apt-get {options} -q source --download-only {package} || true", to)  # of it, one archive is enough
    return next(one for one in to.glob("*.orig.tar.*") if not one.name.endswith(".asc"))


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files, tempfile.TemporaryDirectory(dir=folder.parent) as unpacked:
        files.extractall(unpacked, filter="data")
        (top,) = Path(unpacked).iterdir()
        for path in top.iterdir():
            shutil.move(path, folder / path.name)
