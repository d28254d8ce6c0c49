"""Edits that people made: the differences between two published versions of packages, hunk by hunk."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from random import Random

import msgspec
from support.edit_files import Case, Hunk

#: Fetched once, with the registries' ordinary clients; git ignores it.
FOLDER = Path(__file__).parents[2] / "build" / "versions"
#: An earlier and a later version of each: Python with templates, scripts and styles; scripts and styles.
WHEELS = (
    ("flask", "3.0.0", "3.1.0"),
    ("werkzeug", "2.3.0", "3.0.0"),
    ("jinja2", "3.0.3", "3.1.4"),
    ("click", "8.0.4", "8.1.7"),
    ("requests", "2.28.0", "2.32.3"),
    ("rich", "12.6.0", "13.7.1"),
    ("sphinx", "7.2.6", "7.4.7"),
    ("django", "4.2", "5.0"),
    ("mkdocs", "1.4.3", "1.6.0"),
    ("docutils", "0.19", "0.21.2"),
    ("pytest", "7.4.4", "8.2.2"),
    ("setuptools", "68.0.0", "70.0.0"),
    ("sqlparse", "0.4.4", "0.5.1"),
)
TARBALLS = (
    ("express", "4.17.1", "4.19.2"),
    ("commander", "9.5.0", "12.1.0"),
    ("eslint", "8.40.0", "8.57.0"),
    ("bootstrap", "5.2.3", "5.3.3"),
)
_PIP = (
    "-m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12"
)
#: Of a file, the most bytes; of a hunk, the most lines on each side; of a package, the most files.
_MOST_BYTES, _MOST_LINES, _MOST_FILES = 60_000, 25, 60
_ENDS = (
    ".py",
    ".js",
    ".ts",
    ".mjs",
    ".css",
    ".scss",
    ".html",
    ".md",
    ".rst",
    ".txt",
    ".json",
    ".yml",
    ".toml",
)


class Changed(msgspec.Struct):
    """A file in two versions: the lines of the earlier one, and the hunks that lead to the later one."""

    path: str
    lines: tuple[str, ...]
    hunks: tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...]
    ending: str
    ended: bool


def fetch(
    wheels: Iterable[tuple[str, ...]] = WHEELS, tarballs: Iterable[tuple[str, ...]] = TARBALLS
) -> list[str]:
    """Fetch what is not there; the names of the packages that could not be had (no network, no npm)."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = [
        (kind, name, version)
        for kind, packages in (("wheel", wheels), ("npm", tarballs))
        for name, *versions in packages
        for version in versions
    ]
    return [
        f"{name} {version}"
        for kind, name, version in wanted
        if _archive(kind, name, version) is None and not _fetched(kind, name, version)
    ]


def _fetched(kind: str, name: str, version: str) -> bool:
    command = [sys.executable, *_PIP.split(), "--dest", ".", f"{name}=={version}"]
    if kind == "npm":
        command = ["npm", "pack", "--silent", f"{name}@{version}"]
    try:
        subprocess.run(command, cwd=FOLDER, capture_output=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return _archive(kind, name, version) is not None


def _archive(kind: str, name: str, version: str) -> Path | None:
    begin = f"{name}-{version}{'-' if kind == 'wheel' else '.tgz'}"
    return next((one for one in FOLDER.iterdir() if one.name.lower().startswith(begin)), None)


def _texts(archive: Path) -> dict[str, str]:
    """The text files of an archive, by their paths without the folder that names the version."""
    return {
        path: data.decode()
        for path, data in _members(archive)
        if path.endswith(_ENDS) and ".min." not in path and len(data) <= _MOST_BYTES and _is_text(data)
    }


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".tgz":
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and (file := tar.extractfile(member)) is not None:
                    yield member.name.partition("/")[2], file.read()
        return
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if ".dist-info/" not in name and not name.endswith("/"):
                yield name, packed.read(name)


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and "\0" not in text and max(map(len, text.split("\n"))) < 400


def _changed(path: str, old: str, new: str) -> Changed | None:
    """The small hunks between two texts whose lines all have one ending."""
    ending = "\r\n" if "\r\n" in old else "\n"
    if "\r" in old.replace(ending, "") or "\r" in new.replace(ending, ""):
        return None
    ended = old.endswith(ending)
    before, after = (text.removesuffix(ending).split(ending) for text in (old, new))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    hunks = tuple(
        (one, tuple(before[one:two]), tuple(after[three:four]))
        for tag, one, two, three, four in matcher.get_opcodes()
        if tag != "equal" and max(two - one, four - three) <= _MOST_LINES
    )
    return Changed(path, tuple(before), hunks, ending, ended) if hunks else None


@cache
def changed() -> tuple[Changed, ...]:
    """All files that differ between the versions that are there. Raises FileNotFoundError without any."""
    index = FOLDER / "index.json"
    if not index.exists():
        found: list[Changed] = []
        for kind, packages in (("wheel", WHEELS), ("npm", TARBALLS)):
            for name, *versions in packages:
                archives = [_archive(kind, name, version) for version in versions]
                if None not in archives:
                    found += _between(*(_texts(archive) for archive in archives if archive))
        if not found:
            raise FileNotFoundError(f"no versions of packages in {FOLDER}")
        new = index.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(found))
        new.replace(index)
    return tuple(msgspec.json.decode(index.read_bytes(), type=list[Changed]))


def _between(old: dict[str, str], new: dict[str, str]) -> list[Changed]:
    both = [path for path in sorted(old) if path in new and old[path] != new[path]]
    both = both[:: max(1, len(both) // _MOST_FILES)]
    return [one for path in both if (one := _changed(path, old[path], new[path])) is not None]


def case(draw: Random, twins: bool = False) -> Case:
    """One to three of the hunks of a file. With `twins` the lines around the first stand in the file twice."""
    one = draw.choice(changed())
    count = min(len(one.hunks), draw.choice((1, 1, 1, 2, 3)))
    hunks = [Hunk(*hunk) for hunk in sorted(draw.sample(one.hunks, count))]
    hunks = [hunk for at, hunk in enumerate(hunks) if not at or hunk.start > hunks[at - 1].end + 1]
    lines = one.lines
    if twins:
        around = lines[max(0, hunks[0].start - 4) : hunks[0].start + 8]
        lines = (*lines, *around, f"the last of {draw.randrange(99)} lines")
    return Case(one.path, lines, tuple(hunks), one.ending, one.ended)
